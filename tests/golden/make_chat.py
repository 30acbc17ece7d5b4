"""Judge of the chat templates: what transformers' own environment (jinja2, sandboxed) renders.

    python3.11 -m venv venv && venv/bin/pip install transformers==5.23.0 jinja2==3.1.6
    venv/bin/python tests/golden/make_chat.py ../shared/data

writes chat.json: cases with a template (or the name of a file below ../shared/data, whose result is then kept as its
length and FNV-1a hash of 32 bits), what goes in, and what comes out or that it is refused.

Published templates kept here: TinyLlama-1.1B-Chat, Mistral-7B-Instruct-v0.1 and Mixtral-8x7B-Instruct (Apache-2.0),
Phi-3-mini-4k-instruct (MIT), and Llama 2's as transformers 4.43 had it in tokenization_llama.py (Apache-2.0). They were
compared in November 2026 with what public repositories quote of the models' tokenizer_config.json: TinyLlama's,
Mistral's and Phi-3's (its line 119) are equal to the character; of Mixtral's only the part without the check of roles
was found, and is equal. LLAMA3 is the format of Meta's documentation of Llama 3 written as a template, for what the
hub's file says was not at hand; those of 3.1 and 3.2 and both Qwens are files.
"""
import datetime
import json
import os
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

DATE = datetime.datetime(2026, 1, 31, 12, 34, 56)
TINYLLAMA = """{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"""
MISTRAL = """{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token + ' ' }}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"""
MIXTRAL = MISTRAL.replace("eos_token + ' ' }}", "eos_token}}")
PHI3 = """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"""
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% elif false == true and not '<<SYS>>' in messages[0]['content'] %}{% set loop_messages = messages %}{% set system_message = 'You are a helpful assistant.' %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'system' %}{{ '<<SYS>>\n' + content.strip() + '\n<</SYS>>\n\n' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""
LLAMA3 = """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""
FILES = ["tokenizers/qwen2.5/chat_template.jinja", "tokenizers/qwen2.5/tokenizer_config.json",
         "tokenizers/qwen3/tokenizer_config.json", "tokenizers/truth/Qwen-Qwen2.5-7B-Instruct.jinja",
         "tokenizers/truth/Qwen-Qwen3-0.6B.jinja", "tokenizers/truth/meta-llama-Llama-3.1-8B-Instruct.jinja",
         "tokenizers/truth/meta-llama-Llama-3.2-3B-Instruct.jinja"]

USER = {"role": "user", "content": "What is 2 + 2? <b>\u00fc \U0001f600 \"quoted\" it's"}
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": [1.5, True, None, "\u00e9\n</x>"]}}}
TALKS = {
    "user": [USER],
    "system": [{"role": "system", "content": "  Be brief.\n"}, USER],
    "turns": [USER, {"role": "assistant", "content": " Four. \n"}, {"role": "user", "content": "Sure?"}],
    "system_turns": [{"role": "system", "content": "Be kind."}, USER, {"role": "assistant", "content": "4"},
                     {"role": "user", "content": "\n\nThanks "}],
    "thinking": [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nFour."}, {"role": "user", "content": "Sure?"},
                 {"role": "assistant", "content": "Yes", "reasoning_content": "quite"}],
    "tool": [{"role": "system", "content": "Use tools."}, USER, {"role": "assistant", "content": "", "tool_calls": [CALL]},
             {"role": "tool", "content": "4"}, {"role": "tool", "content": "5"}, {"role": "assistant", "content": "Four."}],
    "bad_turns": [USER, USER],
}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds <numbers> & more \u00fc", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "array", "items": {}}}, "required": ["a"]}}}]

# One feature each; the variables are those of VARIABLES.
VARIABLES = {"n": 7, "x": 2.5, "s": "  Hello, W\u00f6rld  ", "e": "", "t": True, "none_": None, "l": [3, 1, 2], "words": ["b", "A", "c", "a"],
             "d": {"b": 1, "a": {"c": [1, 2]}, "items": 5}, "big": 1e22, "small": 1.5e-7, "people": [
                 {"name": "Ann", "age": 31, "tags": ["x"]}, {"name": "bob", "age": 25, "ok": True}, {"name": "Cy", "age": 31, "ok": False}]}
SNIPPETS = r"""
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 7 % -3 }} {{ 1 / 3 }} {{ 10 / 5 }}
{{ 'a' ~ 1 ~ none ~ true ~ 2.0 }} {{ 'ab' * 3 }} {{ [1, 2] + [3] }} {{ (1,) }} {{ (1, 'a') }} {{ {'a': 1, 2: 'b'} }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ true == 1 }} {{ none == false }}
{{ 2 in l }} {{ 9 not in l }} {{ 'ell' in s }} {{ 'a' in d }} {{ not 1 in l }} {{ 'x' if n > 5 else 'y' }}[{{ 'x' if n < 5 }}]
{{ n is defined and m is not defined }} {{ none_ is none }} {{ n is number }} {{ s is string }} {{ d is mapping }} {{ l is iterable }} {{ t is boolean }} {{ l is sequence }} {{ n is odd }} {{ n is divisibleby 7 }} {{ n is equalto 7 }} {{ n is in [7] }} {{ x is float }} {{ x is integer }} {{ t is true }} {{ s is sameas s }} {{ m is undefined }}
{{ s | trim }}|{{ s | trim | upper }}|{{ s | lower }}|{{ s.strip() | title }}|{{ 'hELLO wORLD' | capitalize }}|{{ s | length }}|{{ 'stra\u00dfe' | upper }}|{{ "they're bill's" | title }}|{{ "they're bill's".title() }}
{{ m | default('D') }} {{ e | default('D') }} {{ e | default('D', true) }} {{ e | d('D', boolean=true) }} {{ m }}{{ m | length }}{{ m | list }}
{{ l | sort }} {{ l | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ people | sort(attribute='age') | map(attribute='name') | join(', ') }}
{{ l | first }} {{ l | last }} {{ l | sum }} {{ l | min }} {{ l | max }} {{ l | reverse | list }} {{ 'abc' | reverse }} {{ words | unique | list }} {{ l | join('-') }} {{ [] | first }}
{{ people | selectattr('ok') | map(attribute='name') | list }} {{ people | rejectattr('ok', 'defined') | map(attribute='name') | list }} {{ people | selectattr('age', 'equalto', 31) | list | length }} {{ l | select('odd') | list }} {{ l | reject('>', 1) | list }} {{ words | map('upper') | list }} {{ people | map(attribute='ok', default='?') | list }} {{ people | map(attribute='tags.0') | list }}
{{ d | tojson }} {{ d | tojson(indent=2) }} {{ l | tojson(indent=4) }} {{ [] | tojson(indent=2) }} {{ {} | tojson }} {{ s | tojson }} {{ '<a href="x">&\'\t\u00e9\x01' | tojson }} {{ '\u00e9\U0001f600' | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ [1, 2] | tojson(separators=(',', ':')) }} {{ big | tojson }} {{ small | tojson }} {{ 100.0 | tojson }} {{ none | tojson }}
{{ d['items'] }} {% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {{ d.get('z') }} {{ d.get('z', 3) }} {{ d.a.c[1] }} {{ d['a']['c'][-1] }} {{ d.keys() | list }} {{ d.values() | list }} {{ d | items | list }} {{ d | dictsort(by='key') | length }} {{ d | length }} {{ d.zz }} {{ d.a['q'] is defined }}
{{ 'abcdef'[1:3] }} {{ 'abcdef'[::-1] }} {{ l[1:] }} {{ l[:-1] }} {{ l[::2] }} {{ l[-1] }} {{ 'a\u00f6\u4f60b'[1:3] }} {{ 'abc'[5:] }} {{ l[10] is defined }} {{ 'abcdef'[-2:0:-1] }} {{ 'abcdef'[-100:100] }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c d'.split(' ', 2) }} {{ 'a.b.c'.rsplit('.', 1) }} {{ 'a\nb\r\nc\n'.splitlines() }} {{ 'xxaxx'.strip('x') }} {{ 'xxaxx'.lstrip('x') }} {{ 'xxaxx'.rstrip('x') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abab'.replace('a', 'c', 1) }} {{ 'ab'.replace('', '-') }} {{ 'abab'.find('b') }} {{ 'abab'.rfind('b') }} {{ 'abab'.count('ab') }} {{ ', '.join(words) }} {{ '12'.isdigit() }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.upper().lower().capitalize() }}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('x', 'y') }}{{ loop.changed(i > 1) }} {% endfor %}
{% for i in [] %}a{% else %}none{% endfor %}{% for i in range(10) if i % 3 == 0 %}{{ i }}/{{ loop.length }} {% endfor %}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}{% for a, b in [[1, 2], (3, 4)] %}{{ a * b }},{% endfor %}{% for c in 'h\u00f6' %}{{ c }}.{% endfor %}{% for k in d %}{{ k }}{% endfor %}
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% elif i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in l %}{% for j in l %}{{ loop.depth }}{{ i * j }} {% endfor %}{% endfor %}
{% set a = 1 %}{% for i in l %}{% set a = a + i %}{{ a }}{% endfor %}{{ a }}{% set ns = namespace(a=1, b='x') %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{% if true %}{% set a = 5 %}{% endif %}{{ a }}
{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set block %}x{{ a }}y{% endset %}[{{ block }}]{% set up | upper | replace('A', 'B') %}abc{% endset %}{{ up }}
{% macro f(a, b=2, c='z') %}({{ a }},{{ b }},{{ c }}){% endmacro %}{{ f(1) }}{{ f(1, c=3) }}{{ f(b=5, a=4) }}{% macro g() %}{{ f(n) }}<{{ caller() }}>{% endmacro %}{% call g() %}inner {{ n }}{% endcall %}{% macro h(x) %}{% if x %}{{ x }}{{ h(x - 1) }}{% endif %}{% endmacro %}{{ h(3) }}
{% macro rec(v) -%} {%- if v is mapping -%} { {%- for k, w in v | dictsort -%} {{ k }}:{{ rec(w) }}{{ "," if not loop.last }} {%- endfor -%} } {%- elif v is iterable and v is not string -%} [{% for w in v %}{{ rec(w) }}{% endfor %}] {%- else -%} {{ v | tojson }} {%- endif -%} {%- endmacro %}{{ rec({'b': [1, 2], 'a': {'c': 'x'}}) }}
a  {%- if true -%}  b  {%- endif -%}  c {{- ' d ' -}} e {# comment #} f {#- comment -#} g
  {% if true %}  \n  x\n  {% endif %}\n  y {% if true %} z{% endif %}\n\n\n{{ 1 }}\n{{ 2 }}\n  {%+ if true %}k{% endif %}{% if true +%}\nl{% endif %}\n   {# c #}   \n m\n
{% raw %}{{ not }} {% if %}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  |
{% with a = 1, b = n %}{{ a + b }}{% endwith %}{% filter upper %}abc{% endfilter %}{% generation %}gen{% endgeneration %}{% filter indent(2) %}a\nb\n\nc{% endfilter %}
{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %a %A %j') }}
{{ 3.0 }} {{ 1e22 }} {{ 1.5e-7 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 123456789.125 }} {{ -0.0001 }} {{ 1_000 }} {{ 5 | float }} {{ '3.7' | int }} {{ 'x' | int(9) }} {{ 3.7 | int }} {{ '4' | int + 1 }} {{ 2.567 | round(2) }} {{ 7 | round }} {{ 7 | round(2) }} {{ 7 | round(0, 'ceil') }} {{ -5 | abs }} {{ [1, 'a', none, 1.0, true, "it's", '\n'] }}
{{ 'a' 'b' }} {{ "q\"uo\\te\u00e9\x41\q" }} {{ '{{' }} {{ "}}" }} {{ {'a': {'b': 1}}.a.b }} {{ [[1, 2], [3]][0][1] }} {{ (1 + 2) * 3 }} {{ not true or true and false }} {{ -n }} {{ - 2 ** 2 }} {{ n|string + 'x' }} {{ 1 if false else 2 if false else 3 }} {{ none or 'z' }} {{ 0 and 1 }} {{ 'a' and '' }}
{{ raise_exception('it is ' ~ n) }}
{{ m.x }}
{{ m + 'x' }}
{{ 'a' + 1 }}
{{ none.x }}[{{ n.x }}]
{{ none | selectattr('x', 'equalto', 1) | list }}{{ 0 | select | list }}{{ false | reject('odd') | list }}{{ none | rejectattr('x') | list | length }}{{ none | map('upper') | list }}{{ 0 | map(attribute='x') | join }}
{{ 5 | select | list }}
{{ none | length }}
{{ 1 // 0 }}
{{ foo() }}
{% for i in 5 %}{% endfor %}
{{ 'x' | nofilter }}
{{ 1 is notest }}
{% if true %}
{{ 1 + }}
{% endfor %}
{{ 'abc }}
{% nothing %}
{% for a, b in [[1, 2, 3]] %}{% endfor %}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{{ l[0 }}
{{ m | tojson }}
{% set l.x = 1 %}
{{ (1, 2 }}
{# open
{{ 2.5 is odd }} {{ 2.5 is even }} {{ 3.0 is odd }} {{ -3 is odd }} {{ 4.0 is even }} {{ true is odd }} {{ [1, 2.5, 3] | select('odd') | list }}
{{ d.items() }} {{ d.keys() }} {{ {}.values() }} {{ d.items()[0] }}[{{ d.keys() is sequence }} {{ d.keys() is iterable }} {{ 'a' in d.keys() }} {{ d.values() | length }} {{ d.items() | first }} {{ d.keys() | last }} {{ d.keys() | reverse | list }} {{ d.keys() | sort | join('+') }}
{{ d.items() | tojson }}
{{ d.keys() + ['c'] }}
{{ d.keys()[1:] }}
{{ (1, 2) | list }} {{ (1, 2) | reverse | list }} {{ (1, 2) * 2 }} {{ 2 * 'ab' }} {{ 2 * (1,) }} {{ 0 * [1] }} {{ (1, 2) + (3,) }} {{ (1, 2)[:1] }}
{{ (1, 2) + [3] }}
{{ 2.675 | round(2) }} {{ 0.125 | round(2) }} {{ 2.5 | round }} {{ -3.5 | round }} {{ 1234.5 | round(-2) }} {{ 1250 | round(-2) }} {{ 7 | round(-1) }} {{ 2.341 | round(1, 'ceil') }} {{ 2.567 | round(1, 'floor') }} {{ 1e300 | round(3) }}
{{ '{}'.format(n) }} {{ '<a{}>{{}}</a{}>'.format('x', none) }} {{ '{1}{0}{1}'.format('a', 2.0) }} {{ '{k}-{p.age}-{p[name]}-{0[1]}'.format(l, k=e, p=people[0]) }} {{ '{}'.format(m) }}|{{ 'h\u00f6'.format() }}
{{ '{} {}'.format(1) }}
{{ '{'.format(1) }}
{{ '}'.format(1) }}
{{ people | selectattr('name', 'in', ['Ann', 'Cy']) | map(attribute='age') | sum }} {{ [{'a': 1}, {'a': 2}] | sum(attribute='a') }} {{ ['a', 'b'] | join }} {{ people | join(', ', attribute='name') }} {{ '<&>' | e }} {{ 5 | string | length }} {{ dict(a=1) }} {{ words | list | length }} {{ 'abc' | list }} {{ 'A' is upper }} {{ 'a' is lower }} {{ 4 is even }} {{ 4 is ge 3 }} {{ 4 is lt(3) }} {{ none is callable }} {{ {'x': 1} == {'x': 1.0} }} {{ (1, 2) == [1, 2] }}
{{ '<a>' | safe + '<b>' }} {{ '<b>' + '<a>' | safe }} {{ '<a>' | e + '<b>' | safe }} {{ '<a>' | safe ~ '<b>' }} {{ ('<a>' | safe) * 2 + '&' }} {{ 2 * ('"' | e) + '"' }} {{ n | e + '<' }} {{ none | e }} {{ m | e }}|{{ l | e }}
{{ '<&>' | e | e }} {{ '<&>' | e | forceescape }} {{ '<&>' | safe | e }} {{ '<' | escape is escaped }} {{ '<' is escaped }} {{ ('<' | e + 'x') is escaped }} {{ ('<' | e ~ 'x') is escaped }} {{ n is escaped }} {{ '<' | e is string }} {{ '<' | e == '&lt;' }} {{ '&lt;' in ['<' | e] }} {{ '<' | e | length }}
{{ ['<' | e, '"' | safe, '<'] }} {{ {'<' | e: '>' | e} }} {{ words | map('e') | list }} {{ ['<', '>'] | map('escape') | join }} {{ (['<' | e] | join('<')) is escaped }} {{ ['<' | e] | tojson }}
{% set a = '<i> <j>' | safe %}{{ a.split() }} {{ a.split(' ', 1) }} {{ a.rsplit(' ', 1) }} {{ 'a\nb' | safe | list }} {{ a.splitlines() }} {{ a[1] + '<' }} {{ a[1:3] + '<' }} {{ (a | first) + '<' }} {{ (a | last) + '<' }} {{ (a | reverse) + '<' }}{% for c in a[:2] %}{{ c + '<' }}{% endfor %}
{% set a = ' <i> ' | safe %}{{ a.strip() + '<' }} {{ (a | trim) + '<' }} {{ a.upper() + '<' }} {{ (a | upper) + '<' }} {{ (a | title) + '<' }} {{ a.title() + '<' }} {{ (a | capitalize) + '<' }} {{ a.replace('i', '<') + '<' }} {{ (a | replace('i', '<')) + '<' }} {{ a.removeprefix(' <') + '<' }} {{ (a | indent(1)) + '<' }} {{ (a | string) + '<' }} {{ (a | default('x')) + '<' }}
{{ '<{}>{k}'.format('<', k='>' | e) }} {{ ('<{}>{k}' | safe).format('<', k='>' | e) + '<' }} {{ ', '.join(['<', '>' | e]) + '<' }} {{ (', ' | safe).join(['<', '>' | e, 3]) + '<' }} {{ (' ' | e).count(' ') }} {{ ('<' | e).find('l') }} {{ ('a' | safe).isdigit() }}
{% macro f(a) %}{{ a }}<{% endmacro %}{{ (f('<' | e) + '<') is escaped }} {% set b %}<{{ '<' | e }}{% endset %}{{ b is escaped }} {% set c | e %}<b>{% endset %}{{ c + '<' }} {% filter e %}<b>{% endfilter %} {% set ns = namespace(a='<' | e) %}{{ ns.a + '<' }} {{ ['a' | safe, 'B', 'c'] | sort }} {{ ['a' | safe, 'a'] | unique | list }}
{{ '<' | e + 1 }}
""".strip().split("\n")
SNIPPETS = [s if s.count("\\n") < 5 else s.replace("\\n", "\n") for s in SNIPPETS]


def fnv(data):
    value = 0x811c9dc5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xffffffff
    return f"{value:08x}"


def render(template, options):
    try:
        compiled = _compile_jinja_template(template)
        compiled.globals["strftime_now"] = DATE.strftime
        given = {"bos_token": options.get("bos", ""), "eos_token": options.get("eos", "")} | options.get("variables", {})
        return compiled.render(messages=options["messages"], tools=options.get("tools"), documents=None,
                               add_generation_prompt=not options.get("no_generation_prompt", False), **given)
    except Exception as error:
        print(f"refused: {template[-60:]!r}: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def main():
    cases = []

    def add(name, template, file=None, **options):
        out = render(template, options)
        case = {"name": name, "file": file} if file else {"name": name, "template": template}
        case |= {k: v for k, v in options.items() if not (k == "variables" and v is VARIABLES)}
        if options.get("variables") is VARIABLES:
            case["snippet"] = True
        if out is not None:
            case |= {"size": len(out.encode()), "hash": fnv(out.encode())} if file else {"out": out}
        cases.append(case)

    for name, template, bos, eos in [("tinyllama", TINYLLAMA, "<s>", "</s>"), ("mistral", MISTRAL, "<s>", "</s>"),
                                     ("mixtral", MIXTRAL, "<s>", "</s>"), ("phi3", PHI3, "<s>", "<|endoftext|>"),
                                     ("llama2", LLAMA2, "<s>", "</s>"),
                                     ("llama3", LLAMA3, "<|begin_of_text|>", "<|eot_id|>")]:
        for talk in TALKS:
            add(f"{name} {talk}", template, messages=TALKS[talk], bos=bos, eos=eos)
        add(f"{name} tools", template, messages=TALKS["user"], tools=TOOLS, bos=bos, eos=eos)
        add(f"{name} closed", template, messages=TALKS["turns"], bos=bos, eos=eos, no_generation_prompt=True)
    for file in FILES:
        template = open(os.path.join(sys.argv[1], file)).read()
        if file.endswith(".json"):
            template = json.loads(template)["chat_template"]
        for talk in TALKS:
            add(f"{file} {talk}", template, file, messages=TALKS[talk], bos="<|begin_of_text|>", eos="<|eot_id|>")
        add(f"{file} tools", template, file, messages=TALKS["tool"][:3], tools=TOOLS, bos="<B>", variables={"date_string": "31 Jan 2026"})
        add(f"{file} silent", template, file, messages=TALKS["system_turns"], tools=TOOLS, variables={"enable_thinking": False})
        add(f"{file} closed", template, file, messages=TALKS["thinking"], no_generation_prompt=True, variables={"tools_in_user_message": False})
    for i, snippet in enumerate(SNIPPETS):
        add(f"snippet {i}", snippet, messages=[], variables=VARIABLES)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat.json"), "w") as out:
        json.dump({"date": DATE.isoformat(), "variables": VARIABLES, "cases": cases}, out, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
