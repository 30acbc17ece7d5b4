"""Judges of the tokenizers: hashes of the ids that other implementations give to 10,240 made-up strings.

    python3.11 -m venv venv && venv/bin/pip install tokenizers==0.21.4 sentencepiece==0.2.3 tiktoken==0.14.0 regex==2026.11.15
    venv/bin/python tests/golden/make_tokenizers.py ../shared/data

(tokenizers 0.23.3 gives the same ids, but decodes "<s>" of a normalized added token as "\\u2581<s>")

writes tokenizers.tsv: a column for each vocabulary, a row for each GROUP strings: the FNV-1a hash (32 bits) of their
counts and ids. The strings come from `strings()`, which tests/test_tokenizer.c repeats: words of many scripts, code,
spaces, emoji, special tokens, any characters and broken UTF-8 of tokenizer_corpus.json, in an order that a linear
congruential generator (Knuth, MMIX) gives. `--show NAME ROW` prints the row's strings and ids.

Also tokenizer_parts.json: made-up tokenizers with every part that is read, and the published files, with one hash of
the ids of the first N_PARTS strings and one of the texts that these ids decode to.
"""
import json
import os
import sys

GROUP, N_STRINGS, N_PARTS = 32, 10240, 640
HERE = os.path.dirname(os.path.abspath(__file__))


class Draw:
    def __init__(self, seed):
        self.state = seed

    def __call__(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        return (self.state >> 33) % n


def strings(corpus, specials):
    draw = Draw(2026)

    def part():
        kind = draw(16)
        if kind < 5:
            return corpus["words"][draw(len(corpus["words"]))].encode()
        if kind < 7:
            return b" " + corpus["words"][draw(len(corpus["words"]))].encode()
        if kind < 9:
            low, high = corpus["ranges"][draw(len(corpus["ranges"]))]
            return "".join(chr(low + draw(high - low + 1)) for _ in range(1 + draw(6))).encode()
        if kind < 11:
            return corpus["spaces"][draw(len(corpus["spaces"]))].encode() * (1 + draw(3))
        if kind == 11:
            return b" " * (1 + draw(40))
        if kind == 12:
            return "".join(chr(48 + draw(10)) for _ in range(1 + draw(9))).encode()
        if kind == 13:
            return "".join(chr(33 + draw(94)) for _ in range(1 + draw(8))).encode()
        if kind == 14:
            return bytes(128 + draw(128) for _ in range(1 + draw(3)))
        special = corpus["specials"][draw(len(corpus["specials"]))].encode()
        return special if specials else b""

    for _ in range(N_STRINGS):
        yield b"".join(part() for _ in range(1 + draw(12)))


def fnv(hash_, value):
    for byte in (value & 0xffffffff).to_bytes(4, "little"):
        hash_ = (hash_ ^ byte) * 0x01000193 & 0xffffffff
    return hash_


def from_json(path):
    from tokenizers import Tokenizer
    description = json.load(open(path))
    model = description["model"]  # llama2's has three merges of tokens with spaces, which no text reaches; the package
    model["merges"] = [m for m in model["merges"] if isinstance(m, list) or m.count(" ") == 1]  # would refuse the file
    tokenizer = Tokenizer.from_str(json.dumps(description))
    return lambda text: tokenizer.encode(text).ids


def from_sentencepiece(path):
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=path)
    return lambda text: [model.bos_id()] + model.encode(text)


def from_tiktoken(path):
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe
    ranks = load_tiktoken_bpe(path)
    names = ["<|begin_of_text|>", "<|end_of_text|>"] + [f"<|reserved_special_token_{i}|>" for i in range(4)]
    names += ["<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>"]
    names += [f"<|reserved_special_token_{i}|>" for i in range(5, 251)]
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")  # meta-llama/llama3, tokenizer.py
    encoding = tiktoken.Encoding("llama3", pat_str=pattern, mergeable_ranks=ranks,
                                 special_tokens={name: len(ranks) + i for i, name in enumerate(names)})
    return lambda text: [len(ranks)] + encoding.encode(text, allowed_special="all")


def from_llama2c(path):
    """karpathy/llama2.c, run.c, encode(): the best-scored pair, leftmost first, until none is left."""
    import struct
    data, at, ids, scores = open(path, "rb").read(), 4, {}, []
    while at < len(data):
        score, length = struct.unpack_from("<fi", data, at)
        ids.setdefault(data[at + 8:at + 8 + length], len(scores))
        scores.append(score)
        at += 8 + length
    names = {i: name for name, i in ids.items()}

    def encode(text):
        tokens = []
        for char in (" " + text if text else ""):
            char = char.encode()
            tokens += [ids[char]] if char in ids else [byte + 3 for byte in char]
        while True:
            best = None
            for i in range(len(tokens) - 1):
                merged = ids.get(names[tokens[i]] + names[tokens[i + 1]] if min(tokens[i:i + 2]) > 258 else b"\0none")
                if merged is not None and (best is None or scores[merged] > scores[best[1]]):
                    best = i, merged
            if best is None:
                return [1] + tokens
            tokens[best[0]:best[0] + 2] = [best[1]]
    return encode


# column, file, reader, are special tokens in the strings
VOCABULARIES = [
    ("gpt2", "tokenizers/gpt2/tokenizer.json", from_json, True),
    ("llama2", "tokenizers/llama2/tokenizer.json", from_json, True),
    ("llama2_spm", "llm/llama2-tokenizer.model", from_sentencepiece, False),
    ("llama3", "tokenizers/llama3/tokenizer.model", from_tiktoken, True),
    ("mistral", "tokenizers/mistral/tokenizer.model.v1", from_sentencepiece, False),
    ("phi2", "tokenizers/phi-2/tokenizer.json", from_json, True),
    ("qwen3", "tokenizers/qwen3/tokenizer.json", from_json, True),
    ("whisper", "tokenizers/whisper-multilingual/tokenizer.json", from_json, True),
    ("whisper_v3", "tokenizers/whisper-large-v3/tokenizer.json", from_json, True),
    ("tinystories", "llm/TinyStories-656K/models/story/tokenizer.json", from_json, True),
    ("stories260k", "llm/stories260K/tok512.bin", from_llama2c, False),
]


def small_model():
    from tokenizers.pre_tokenizers import ByteLevel
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    names += sorted(ByteLevel.alphabet()) + [" ", "\n", "\u2581", "\u4f60", "th", "he", "the", "in", "er", "ll", "\u0120t", "\u0120the",
                                             "\u2581t", "\u2581the", "  ", "    ", "Hello", "oo", "12", "\u00c3\u00a9"]
    return {"type": "BPE", "unk_token": "<unk>", "vocab": {name: i for i, name in enumerate(dict.fromkeys(names))},
            "merges": [["t", "h"], ["h", "e"], ["th", "e"], ["i", "n"], ["e", "r"], ["l", "l"], ["\u0120", "t"], ["\u0120t", "he"],
                       ["\u2581", "t"], ["\u2581t", "he"], [" ", " "], ["  ", "  "], ["o", "o"], ["1", "2"], ["\u00c3", "\u00a9"]]}


# How published models cut words: Llama 3, GPT-4o, DeepSeek-V3 (their tokenizer.json).
ENDINGS, GAPS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CUTS = [
    ("llama 3", [ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + GAPS],
     {"ignore_merges": True}),
    ("gpt-4o", [rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDINGS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDINGS}?|"
                r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + GAPS], {}),
    ("deepseek", [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                  r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
                  r" ?[\p{P}\p{S}]+[\r\n]*|" + GAPS], {}),
]


def part_cases():
    def added(**flags):
        token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        return [token | {"id": 1, "content": "<s>"} | flags, token | {"id": 2, "content": "</s>", "special": False}]

    def sequence(key, *parts):
        return {"type": "Sequence", key: list(parts)}

    def split(behavior, pattern={"Regex": r"\s+|\d"}, invert=False):
        return sequence("pretokenizers", {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}, level)

    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    level_decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    llama = sequence("decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                     {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0})
    yield "level", {"pre_tokenizer": level | {"use_regex": True, "add_prefix_space": True}, "decoder": level_decoder}, {}
    for behavior in ("Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        yield f"split {behavior}", {"pre_tokenizer": split(behavior), "decoder": level_decoder}, {}
        yield f"split {behavior} inverted", {"pre_tokenizer": split(behavior, {"String": "l"}, True), "decoder": level_decoder}, {}
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield name, {"normalizer": {"type": name}, "pre_tokenizer": level, "decoder": level_decoder, "added_tokens": added(normalized=True)}, {}
    yield "strip", {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}, "pre_tokenizer": level, "decoder": level_decoder}, {}
    yield "digits", {"pre_tokenizer": sequence("pretokenizers", {"type": "Digits", "individual_digits": False}, level)}, {}
    yield "single digits", {"pre_tokenizer": sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, level)}, {}
    yield "whitespace", {"pre_tokenizer": sequence("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}, level)}, {}
    yield "words", {"pre_tokenizer": sequence("pretokenizers", {"type": "Whitespace"}, level), "decoder": level_decoder}, {}
    for behavior in ("Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        yield f"punctuation {behavior}", {
            "pre_tokenizer": sequence("pretokenizers", {"type": "Punctuation", "behavior": behavior}, level)}, {}
    for side in ("left", "right"):
        yield f"strip {side}", {
            "normalizer": {"type": "Strip", "strip_left": side == "left", "strip_right": side == "right"},
            "pre_tokenizer": level, "decoder": level_decoder, "added_tokens": added()}, {}
    for name, more in (("Roberta", {"trim_offsets": True, "add_prefix_space": False}), ("Bert", {})):
        ends = {"type": f"{name}Processing", "sep": ["</s>", 2], "cls": ["<s>", 1]} | more
        yield name, {"pre_tokenizer": level, "decoder": level_decoder, "added_tokens": added(), "post_processor": ends}, {}
    yield "several normalizers", {
        "normalizer": sequence(
            "normalizers", {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
            {"type": "Replace", "pattern": {"Regex": r"\s{2,}"}, "content": " "},
            {"type": "Strip", "strip_left": True, "strip_right": False}),
        "pre_tokenizer": level, "decoder": level_decoder, "added_tokens": added(normalized=True)}, {}
    for name, patterns, flags in CUTS:
        cuts = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in patterns]
        yield name, {"pre_tokenizer": sequence("pretokenizers", *cuts, level), "decoder": level_decoder,
                     "added_tokens": added()}, flags
    for flag in ("lstrip", "rstrip", "single_word", "normalized"):
        yield flag, {"pre_tokenizer": level, "decoder": level_decoder, "added_tokens": added(**{flag: True})}, {}
    for scheme in ("always", "first", "never"):
        meta = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}
        yield f"metaspace {scheme}", {"pre_tokenizer": meta, "decoder": meta, "added_tokens": added()}, {"byte_fallback": True}
    yield "metaspace whole", {"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}}, {}
    prefixed = sequence("normalizers", {"type": "Prepend", "prepend": "\u2581"}, spaces)
    yield "unknown", {"normalizer": prefixed, "decoder": llama}, {}
    yield "fused unknown", {"normalizer": prefixed, "decoder": llama}, {"fuse_unk": True}
    yield "fallback", {"normalizer": prefixed, "decoder": llama, "added_tokens": added(normalized=True)}, {"byte_fallback": True}
    yield "ignored merges", {"pre_tokenizer": level | {"use_regex": True}, "decoder": level_decoder}, {"ignore_merges": True}
    yield "regex replace", {"normalizer": {"type": "Replace", "pattern": {"Regex": "l+"}, "content": "<s>"}, "pre_tokenizer": level,
                            "added_tokens": added(normalized=True)}, {}
    yield "template", {"pre_tokenizer": level, "decoder": level_decoder, "added_tokens": added(), "post_processor": sequence(
        "processors", {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                                  {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [],
         "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}})}, {}


def write_parts(data, corpus):
    from tokenizers import Tokenizer
    model, cases = small_model(), []
    empty = {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "added_tokens": []}
    cases = [{"name": name, "parts": empty | parts, "model": flags} for name, parts, flags in part_cases()]
    cases += [{"name": name, "file": path} for name, path, reader, _ in VOCABULARIES if reader is from_json]
    for case in cases:
        if "file" in case:
            description = json.load(open(os.path.join(data, case["file"])))
            merges = description["model"]["merges"]
            description["model"]["merges"] = [m for m in merges if isinstance(m, list) or m.count(" ") == 1]
        else:
            description = {"version": "1.0", "truncation": None, "padding": None} | case["parts"] | {"model": model | case["model"]}
        tokenizer = Tokenizer.from_str(json.dumps(description))
        ids_hash = text_hash = 0x811c9dc5
        for string, _ in zip(strings(corpus, True), range(N_PARTS)):
            ids = tokenizer.encode(string.decode(errors="replace")).ids
            for token in [len(ids)] + ids:
                ids_hash = fnv(ids_hash, token)
            for byte in tokenizer.decode(ids, skip_special_tokens=False).encode():
                text_hash = fnv(text_hash, byte)
        case |= {"ids": f"{ids_hash:08x}", "text": f"{text_hash:08x}"}
    with open(os.path.join(HERE, "tokenizer_parts.json"), "w") as file:
        json.dump({"model": model, "cases": cases}, file, separators=(",", ":"))
        file.write("\n")


def main():
    data, rows = sys.argv[1], [["" for _ in VOCABULARIES] for _ in range(N_STRINGS // GROUP)]
    corpus = json.load(open(os.path.join(HERE, "tokenizer_corpus.json")))
    for column, (name, path, reader, specials) in enumerate(VOCABULARIES):
        if sys.argv[2:] and sys.argv[3] != name:
            continue
        encode, hash_ = reader(os.path.join(data, path)), 0x811c9dc5
        for i, string in enumerate(strings(corpus, specials)):
            ids = encode(string.decode(errors="replace"))
            hash_ = fnv(hash_, len(ids))
            for token in ids:
                hash_ = fnv(hash_, token)
            if sys.argv[2:] and i // GROUP == int(sys.argv[4]):
                print(string, *ids)
            if i % GROUP == GROUP - 1:
                rows[i // GROUP][column], hash_ = f"{hash_:08x}", 0x811c9dc5
    if sys.argv[2:]:
        return
    write_parts(data, corpus)
    with open(os.path.join(HERE, "tokenizers.tsv"), "w") as file:
        print(*(f"{name}={path}" for name, path, _, _ in VOCABULARIES), sep="\t", file=file)
        for row in rows:
            print(*row, sep="\t", file=file)


if __name__ == "__main__":
    main()
