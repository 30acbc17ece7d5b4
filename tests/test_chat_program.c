// warptone chat and generate with TinyStories-656K, as scripts and terminals use them.
#include "support/audio_files.h"
#include "support/llm_files.h"
#include "support/testing.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <warptone/device.h>

static char program[4096], model[1024];
static char out[1 << 16];

static void need_model(void) { need_story_model(program, model, sizeof model); }

/// Run `warptone ARGUMENTS --model MODEL < INPUT`: stdout to `out`.
static int run(const char *arguments, const char *input)
{
    return run_command(out, sizeof out, "printf '%s' | '%s' %s --backend cpu --model '%s' 2>/dev/null", input, program,
                       arguments, model);
}

// ---- generate

static json_t *generated(const char *arguments)
{
    char all[1024];
    snprintf(all, sizeof all, "generate --json %s", arguments);
    assert_int_equal(run(all, "Once upon a time"), 0);
    json_t *answer = json_loads(out, 0, NULL);
    if (!answer) fail_msg("no JSON: %s", out);
    return answer;
}

static const char *text_of(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));
    assert_non_null(text);
    return text;
}

/// A strategy changes the steps, not the text; a stop string cuts it; quantised weights still tell a story.
static void generate_takes_strategies_stops_and_quantising(void **state)
{
    (void)state;
    need_model();
    json_t *single = generated("-n 60"), *guessed = generated("-n 60 --strategy lookahead --guesses 3");
    assert_string_equal(text_of(guessed, "text"), text_of(single, "text"));
    assert_true(json_equal(json_object_get(guessed, "logprobs"), json_object_get(single, "logprobs")));
    assert_true(json_integer_value(json_object_get(json_object_get(guessed, "guesses"), "guessed")) > 0);
    assert_int_equal(json_array_size(json_object_get(single, "ids")), 60);
    assert_string_equal(text_of(single, "end"), "length");

    json_t *stopped = generated("-n 60 --stop zebra --stop ' in a'");
    const char *whole = text_of(single, "text"), *cut = strstr(whole, " in a");
    assert_non_null(cut);
    assert_int_equal(strlen(text_of(stopped, "text")), cut - whole);
    assert_memory_equal(text_of(stopped, "text"), whole, (size_t)(cut - whole));
    assert_string_equal(text_of(stopped, "end"), "stop");

    json_t *small = generated("-n 60 --quantize int8"), *exact = generated("-n 60 --quantize int8 --exact");
    assert_int_equal(json_array_size(json_object_get(small, "ids")), 60);
    assert_memory_equal(text_of(exact, "text"), whole, 20); // the first words of the story are the same
    assert_int_equal(run("generate --quantize int9", ""), 2);
    assert_int_equal(run("generate --strategy draft", ""), 2);
    assert_int_equal(run("generate --strategy magic", ""), 2);
    json_decref(single), json_decref(guessed), json_decref(stopped), json_decref(small), json_decref(exact);
}

static double number_of(const json_t *array, size_t k) { return json_number_value(json_array_get(array, k)); }

/// A context that is full is moved on; the most probable tokens are told, the first of them is the one taken; a token
/// that is banned is not; the cache's types change little.
static void generate_takes_caches_biases_and_logprobs(void **state)
{
    (void)state;
    need_model();
    json_t *kept = generated("-n 80 --context 40 --keep 4"), *full = generated("-n 80 --context 40");
    assert_string_equal(text_of(kept, "end"), "length");
    assert_true(json_integer_value(json_object_get(kept, "dropped")) > 40);
    assert_string_equal(text_of(full, "end"), "context");
    json_t *told = generated("-n 5 --logprobs 3"), *ids = json_object_get(told, "ids");
    for (size_t k = 0; k < 5; k++) {
        const json_t *top = json_array_get(json_object_get(told, "top"), k), *first = json_array_get(top, 0);
        assert_int_equal(json_array_size(top), 3);
        assert_true(number_of(first, 0) == number_of(ids, k));
        assert_true(number_of(first, 1) == number_of(json_object_get(told, "logprobs"), k));
        assert_true(number_of(json_array_get(top, 1), 1) <= number_of(first, 1));
    }
    char banned[64];
    snprintf(banned, sizeof banned, "-n 1 --bias %d=-inf", (int)number_of(ids, 0));
    json_t *other = generated(banned), *half = generated("-n 5 --logprobs 3 --cache bf16 --batch 2");
    const json_t *second = json_array_get(json_array_get(json_object_get(told, "top"), 0), 1);
    assert_true(number_of(json_object_get(other, "ids"), 0) == number_of(second, 0));
    assert_true(fabs(number_of(json_object_get(half, "logprobs"), 0) -
                     number_of(json_object_get(told, "logprobs"), 0)) < 0.01); // nats, measured 0.00003
    assert_int_equal(run("generate --cache f64", ""), 2);
    assert_int_equal(run("generate --bias 3", ""), 2);
    assert_int_equal(run("generate --bias 99999999=1", ""), 2);
    assert_int_equal(run("generate --context 4 --ids 1,2,3,4", ""), 2);
    assert_int_equal(run("generate --prompt x --ids 1", ""), 2);
    assert_int_equal(run("generate --strategy ngram --draft elsewhere", ""), 2);
    assert_int_equal(run("generate --ids 1,2 -n 3", ""), 0);
    assert_int_equal(strspn(out, "0123456789 "), strlen(out)); // tokens in, tokens out
    json_t *numbers = generated("--ids 1,2 -n 3");
    assert_true(json_is_null(json_object_get(numbers, "text")));
    json_decref(numbers);
    assert_int_equal(run("generate --context 5", "Once upon a time there was a"), 3); // an input too long
    json_decref(kept), json_decref(full), json_decref(told), json_decref(other), json_decref(half);
}

/// Each line of many has the answer that it has alone; one that is too long has a sentence.
static void generate_answers_lines_together(void **state)
{
    (void)state;
    static const char *const prompts[] = {"Once upon a time", "", "The dog", "Lily saw a", "Once upon a hill"};
    char input[4096] = "", want[5][512], arguments[256];
    size_t length = 0;
    int n_answers = 0, n_errors = 0;
    need_model();
    for (int k = 0; k < 5; k++) {
        length += (size_t)snprintf(input + length, sizeof input - length, "%s\\n", prompts[k]);
        if (!*prompts[k]) continue;
        snprintf(arguments, sizeof arguments, "generate --json -n 20 --context 64 --prompt '%s'", prompts[k]);
        assert_int_equal(run(arguments, ""), 0);
        json_t *alone = json_loads(out, 0, NULL);
        snprintf(want[k], sizeof want[k], "%s", text_of(alone, "text"));
        json_decref(alone);
    }
    for (int k = 0; k < 100; k++) length += (size_t)snprintf(input + length, sizeof input - length, "dog ");
    assert_int_equal(run("generate --lines 3 -n 20 --context 64", input), 1); // some of the work failed
    char *rest = NULL;
    for (char *text = strtok_r(out, "\n", &rest); text; text = strtok_r(NULL, "\n", &rest)) {
        json_t *answer = json_loads(text, 0, NULL);
        if (!answer) fail_msg("no JSON: %s", text);
        const int line = (int)json_integer_value(json_object_get(answer, "line"));
        if (json_object_get(answer, "error")) {
            assert_int_equal(line, 6);
            n_errors++;
        } else {
            assert_in_range(line, 1, 5);
            assert_string_equal(text_of(answer, "text"), want[line - 1]);
            n_answers++;
        }
        json_decref(answer);
    }
    assert_int_equal(n_answers, 4);
    assert_int_equal(n_errors, 1);
    assert_int_equal(run("generate --lines 2 --prompt x", ""), 2);
    assert_int_equal(run("generate --logprobs 2", "x"), 2);
}

/// The second of two lines comes to its stop string long before the first is through.
static void lines_are_answered_at_the_same_time(void **state)
{
    (void)state;
    int lines[2];
    need_model();
    for (int n = 1; n <= 2; n++) {
        char arguments[64];
        snprintf(arguments, sizeof arguments, "generate --lines %d -n 60 --context 80 --stop Billy", n);
        assert_int_equal(run(arguments, "Once upon a time\\nThe dog\\n"), 0);
        const char *rest = out;
        for (int k = 0; k < 2; k++) {
            json_t *answer = json_loads(rest, JSON_DISABLE_EOF_CHECK, NULL);
            if (!answer) fail_msg("no JSON: %s", rest);
            lines[k] = (int)json_integer_value(json_object_get(answer, "line"));
            assert_string_equal(text_of(answer, "end"), lines[k] == 2 ? "stop" : "length");
            json_decref(answer);
            rest = strchr(rest, '\n') + 1;
        }
        assert_int_equal(lines[0], n);
        assert_int_equal(lines[1], 3 - n);
    }
    assert_int_equal(run("generate --lines 8 --batch 4", "x"), 2);
}

/// Run `warptone ARGUMENTS --model PATH < /dev/null`: both its outputs to `out`.
static int run_on(const char *arguments, const char *path)
{
    return run_command(out, sizeof out, "'%s' %s --backend cpu --model '%s' 2>&1 < /dev/null", program, arguments,
                       path);
}

/// The model's generation_config says how long an answer is where no option does.
static void answers_are_as_long_as_the_model_says(void **state)
{
    static const struct {
        const char *says, *options;
        size_t n;
    } cases[] = {{"{}", "", 256},
                 {"{\"max_new_tokens\": null}", "", 256},
                 {"{\"max_new_tokens\": 7}", "", 7},
                 {"{\"max_new_tokens\": 7}", "-n 9", 9}};
    static llm_file file;
    char arguments[128];
    if (access(program, X_OK)) skip();
    llm_llama_add(&file, NULL, NULL, 5);
    llm_file_write(&file, test_path(state, "model.safetensors"));
    llm_config_write(test_path(state, "config.json"), NULL);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        test_spill(test_path(state, "generation_config.json"), cases[k].says, strlen(cases[k].says));
        snprintf(arguments, sizeof arguments, "generate --json --ids 1,2,3 --ignore-eos %s", cases[k].options);
        assert_int_equal(run_on(arguments, test_path(state, "")), 0);
        json_t *answer = json_loads(out, 0, NULL);
        assert_string_equal(text_of(answer, "end"), "length");
        assert_int_equal(json_array_size(json_object_get(answer, "ids")), cases[k].n);
        json_decref(answer);
    }
}

// ---- models that are none

/// Each gets one sentence that names the file, and an exit code that is not 0.
static void bad_models_get_a_sentence(void **state)
{
    static const struct {
        const char *name, *text, *model; ///< a file of the folder and what is in it, NULL = none; PATH in the folder
        const char *sentence;            ///< after the folder's path
    } cases[] = {
        {NULL, NULL, "none", "/none: No such file or directory"},
        {NULL, NULL, "", "/ has no weights, want model.safetensors, model.safetensors.index.json or one *.gguf"},
        {"config.json", "{\"model_type\": \"bloom\"}", "",
         "//config.json: \"model_type\" is \"bloom\", want one of gpt2, llama, mistral, mixtral, qwen2, qwen3, "
         "qwen3_moe"},
        {"config.json", "{\"model_type\": \"lla", "",
         "//config.json: JSON line 1 column 19: premature end of input near '\"lla'"},
        {"a.gguf", "GGUF", "a.gguf", "/a.gguf ends within GGUF's header"},
        {"a.gguf", "no such file", "a.gguf", "/a.gguf does not begin with GGUF: not such a file"},
        {"a.safetensors", "short", "a.safetensors",
         "/a.safetensors has 5 bytes, want the 8 of safetensors' header length"},
    };
    if (access(program, X_OK)) skip();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char path[1100], want[2400];
        if (cases[k].name) test_spill(test_path(state, cases[k].name), cases[k].text, strlen(cases[k].text));
        snprintf(path, sizeof path, "%s", test_path(state, cases[k].model));
        for (int chat = 0; chat < 2; chat++) {
            assert_int_not_equal(run_on(chat ? "chat" : "generate --prompt hi", path), 0);
            snprintf(want, sizeof want, "warptone %s: %.*s%s\n", chat ? "chat" : "generate",
                     (int)(strlen(test_path(state, "")) - 1), test_path(state, ""), cases[k].sentence);
            assert_string_equal(out, want);
        }
        if (cases[k].name) assert_int_equal(unlink(test_path(state, cases[k].name)), 0);
    }
}

/// A tokenizer of another model has tokens that this one has not.
static void a_tokenizer_of_another_model_is_told(void **state)
{
    (void)state;
    char arguments[2048];
    need_model();
    const char *other = shared_data("tokenizers/gpt2/tokenizer.json");
    if (!other) skip();
    snprintf(arguments, sizeof arguments, "generate --prompt hello --tokenizer '%s'", other);
    assert_int_not_equal(run_on(arguments, model), 0);
    assert_non_null(strstr(out, "warptone generate: generate: the tokenizer's token 2048, \""));
    assert_non_null(strstr(out, ", is none of the model's, want 0..2047\n"));
}

// ---- a GPU

static json_t *ids_by(const char *backend, const char *options, const char *path)
{
    if (run_command(out, sizeof out, "'%s' generate --json --ids 1,2,3 -n 40 --backend %s %s --model '%s' 2>&1",
                    program, backend, options, path))
        fail_msg("%s, %s: %s", backend, options, out);
    json_t *answer = json_loads(out, 0, NULL), *ids = json_incref(json_object_get(answer, "ids"));
    json_decref(answer);
    assert_int_equal(json_array_size(ids), 40);
    return ids;
}

/// With weights and a cache of F32 the tokens are the CPU's; every kind of weights gives as many.
static void a_gpu_answers_as_the_cpu(void **state)
{
    static const char *const same[] = {"", "--temperature 0.8 --top-k 20 --seed 3",
                                       "--strategy ngram --keep-guessing --exact-guesses", "--logprobs 3 --batch 2"};
    static const char *const any[] = {"--quantize fp8", "--quantize int8 --strategy jacobi", "--quantize int4",
                                      "--cache fp8"};
    static llm_file file;
    char path[1100], options[256];
    if (!wt_device_count() || access(program, X_OK)) {
        print_message("skipped: %s\n", wt_last_error());
        skip();
    }
    llm_llama_add(&file, NULL, NULL, 5);
    llm_file_write(&file, test_path(state, "a.safetensors"));
    llm_config_write(test_path(state, "config.json"), NULL);
    snprintf(path, sizeof path, "%s", test_path(state, "a.safetensors"));
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        snprintf(options, sizeof options, "--ignore-eos --cache f32 %s", same[k]);
        json_t *want = ids_by("cpu", options, path), *got = ids_by("cuda", options, path);
        if (!json_equal(got, want)) fail_msg("%s: other tokens on the GPU", options);
        json_decref(want), json_decref(got);
    }
    for (size_t k = 0; k < sizeof any / sizeof *any; k++) {
        snprintf(options, sizeof options, "--ignore-eos %s", any[k]);
        json_decref(ids_by("cuda", options, path));
    }
}

// ---- chat through pipes

static char template_option[1200];

static const char *with_template(void **state, const char *text, const char *arguments)
{
    test_spill(test_path(state, "chat.jinja"), text, strlen(text));
    snprintf(template_option, sizeof template_option, "chat --template '%s' %s", test_path(state, "chat.jinja"),
             arguments);
    return template_option;
}

static const char plain_template[] = "{% for m in messages %}{{ m['content'] }} {% endfor %}";

static void a_conversation_goes_through_pipes(void **state)
{
    need_model();
    const char *arguments = with_template(state, plain_template, "-n 8 --temperature 0");
    assert_int_equal(run(arguments, "Once upon a time\\n/history\\n/undo\\n/history\\n/quit\\nnever\\n"), 0);
    char *first = strchr(out, '\n');
    assert_non_null(first);
    char answer[256], want[1024];
    snprintf(answer, sizeof answer, "%.*s", (int)(first - out), out);
    assert_true(strlen(answer) > 8);
    snprintf(want, sizeof want, "%s\nuser: Once upon a time\nassistant: %s\n", answer, answer);
    assert_string_equal(out, want);
    // the same question gives the same answer in a new conversation; unknown commands and empty lines change nothing
    assert_int_equal(run(arguments, "/nothing\\n\\nOnce upon a time\\n/clear\\nOnce upon a time\\n"), 0);
    snprintf(want, sizeof want, "%s\n%s\n", answer, answer);
    assert_string_equal(out, want);
    assert_int_equal(run("chat", "x\\n"), 3); // TinyStories has no template
}

static void a_conversation_is_saved_and_loaded(void **state)
{
    need_model();
    char input[2048];
    snprintf(input, sizeof input, "/system Be brief.\\nLily\\n/save %s\\n", test_path(state, "talk.json"));
    assert_int_equal(run(with_template(state, plain_template, "-n 4"), input), 0);
    json_t *saved = json_load_file(test_path(state, "talk.json"), 0, NULL);
    assert_int_equal(json_array_size(saved), 3);
    json_decref(saved);
    snprintf(input, sizeof input, "/load %s\\n/history\\n/load /nowhere\\n/history\\n", test_path(state, "talk.json"));
    assert_int_equal(run(with_template(state, plain_template, "-n 4"), input), 0);
    assert_int_equal(strncmp(out, "system: Be brief.\nuser: Lily\nassistant: ", 40), 0);
    const size_t half = strlen(out) / 2;
    assert_memory_equal(out, out + half, half); // twice the same: what cannot be loaded changes nothing
}

/// A template that ends with <think>: all that comes is thinking, which pipes do not get unless asked.
static void thinking_is_hidden_or_shown(void **state)
{
    need_model();
    static const char thinks[] = "{% for m in messages %}{{ m['content'] }} {% endfor %}<think>\n";
    assert_int_equal(run(with_template(state, thinks, "-n 8"), "Lily\\n"), 0);
    assert_string_equal(out, "\n");
    assert_int_equal(run(with_template(state, thinks, "-n 8 --thinking show"), "Lily\\n"), 0);
    assert_true(strlen(out) > 8);
    assert_int_equal(run(with_template(state, thinks, "-n 8 --thinking loud"), "Lily\\n"), 2);
}

/// With a context that is full the first questions leave the prompt and not the file; a message that is too long for
/// it, or has a byte of zero, is refused, loses nothing of what was said, and is told by the exit code.
static void a_full_context_loses_nothing(void **state)
{
    need_model();
    char arguments[512], input[4096] = "";
    size_t length = 0;
    remove(test_path(state, "kept.json"));
    snprintf(arguments, sizeof arguments, "-n 8 --context 48 --history %s", test_path(state, "kept.json"));
    for (int k = 0; k < 6; k++)
        length += (size_t)snprintf(input + length, sizeof input - length, "Once upon a time %d\\n", k);
    assert_int_equal(run(with_template(state, plain_template, arguments), input), 0);
    json_t *before = json_load_file(test_path(state, "kept.json"), 0, NULL);
    assert_int_equal(json_array_size(before), 12);
    length = 0;
    for (int k = 0; k < 60; k++) length += (size_t)snprintf(input + length, sizeof input - length, "long ");
    snprintf(input + length, sizeof input - length, "\\nwith \\0 in it\\n/retry\\n");
    assert_int_equal(run(with_template(state, plain_template, arguments), input), 1);
    json_t *after = json_load_file(test_path(state, "kept.json"), 0, NULL);
    assert_true(json_equal(after, before)); // the most probable tokens again
    json_decref(before), json_decref(after);
}

// ---- chat in a terminal

typedef struct terminal {
    pid_t child;
    int fd;
    size_t n;
} terminal;

/// The program with these arguments, the first of them its name.
static terminal open_with(const char *const *arguments)
{
    terminal t = {.fd = posix_openpt(O_RDWR | O_NOCTTY)};
    char name[128];
    assert_true(t.fd >= 0 && !grantpt(t.fd) && !unlockpt(t.fd) && !ptsname_r(t.fd, name, sizeof name));
    fflush(stdout);
    t.child = fork();
    assert_true(t.child >= 0);
    if (t.child) return t;
    setsid();
    const int fd = open(name, O_RDWR); // the controlling terminal of the new session
    if (fd < 0) _exit(99);
    ioctl(fd, TIOCSCTTY, 0);
    for (int k = 0; k < 3; k++) dup2(fd, k);
    execv(program, (char *const *)arguments);
    _exit(98);
}

static terminal open_terminal(void **state, const char *text, const char *tokens, const char *quantize)
{
    char path[1024], history[1024];
    snprintf(path, sizeof path, "%s", test_path(state, "chat.jinja"));
    snprintf(history, sizeof history, "%s", test_path(state, "kept.json"));
    test_spill(path, text, strlen(text));
    return open_with((const char *[]){"warptone", "chat", "--backend", "cpu", "--model", model, "--template", path,
                                      "-n", tokens, "--ignore-eos", "--context", "50000", "--quantize", quantize,
                                      "--history", history, NULL});
}

/// Read until `what` has come after `from`; the place behind it. Ten seconds are far more than it takes.
static size_t expect(terminal *t, size_t from, const char *what)
{
    for (;;) {
        out[t->n] = 0;
        const char *at = from <= t->n ? strstr(out + from, what) : NULL;
        if (at) return (size_t)(at - out) + strlen(what);
        struct pollfd p = {.fd = t->fd, .events = POLLIN};
        if (poll(&p, 1, 10000) <= 0) fail_msg("no \"%s\" in %s", what, out);
        const ssize_t n = read(t->fd, out + t->n, sizeof out - 1 - t->n);
        if (n <= 0) fail_msg("no \"%s\" before the end in %s", what, out);
        t->n += (size_t)n;
    }
}

static void type(const terminal *t, const char *keys)
{
    assert_int_equal(write(t->fd, keys, strlen(keys)), strlen(keys));
}

static int close_terminal(terminal *t)
{
    int status = 0;
    while (poll(&(struct pollfd){.fd = t->fd, .events = POLLIN}, 1, 10000) > 0 && read(t->fd, out, 512) > 0) {
    }
    if (waitpid(t->child, &status, 0) < 0) status = -1;
    close(t->fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_terminal_gets_progress_prompts_speed_and_dim_thinking(void **state)
{
    need_model();
    terminal t = open_terminal(state, "{{ messages[-1]['content'] }}{% if messages|length == 1 %}<think>{% endif %}",
                               "5", "int8");
    size_t at = expect(&t, 0, "quantising 1 of "); // a line that is written over
    at = expect(&t, at, "> ");
    type(&t, "Lily\n");
    at = expect(&t, at, "Lily");
    at = expect(&t, at, "\033[2m"); // dim
    at = expect(&t, at, "\033[22m");
    at = expect(&t, at, "tok/s");
    at = expect(&t, at, "> ");
    type(&t, "Tom\n");
    const size_t end = expect(&t, at, "tok/s");
    assert_null(strstr(out + at, "\033[2m")); // no thinking now
    expect(&t, end, "> ");
    type(&t, "\004"); // Ctrl-D
    assert_int_equal(close_terminal(&t), 0);
}

/// How long the answer is that --history has kept; 0 = it has no question with an answer.
static size_t kept_answer(void **state)
{
    json_t *all = json_load_file(test_path(state, "kept.json"), 0, NULL);
    const char *question = json_string_value(json_object_get(json_array_get(all, 0), "content"));
    const size_t n = json_string_length(json_object_get(json_array_get(all, 1), "content"));
    const bool good = json_array_size(all) == 2 && question && !strcmp(question, "Once upon a time");
    json_decref(all);
    return good ? n : 0;
}

/// Ctrl-C ends the answer and not the conversation; at the prompt it ends that.
static void add_gptq(llm_file *file, const char *stem, int rows, int columns, uint64_t *seed, float *wide)
{
    (void)seed, (void)wide; // all weights are 0
    llm_file_add(file, stem, "qweight", "I32", 4, columns / 8, rows);
    llm_file_add(file, stem, "qzeros", "I32", 4, columns / 32, rows / 8);
    llm_file_add(file, stem, "scales", "F16", 2, columns / 32, rows);
}

static void a_terminal_gets_progress_of_packed_weights(void **state)
{
    static llm_file file, plain;
    if (access(program, X_OK)) skip();
    llm_llama_add(&plain, &file, add_gptq, 5);
    llm_file_write(&plain, test_path(state, "model.safetensors")); // frees its tensors
    llm_file_write(&file, test_path(state, "model.safetensors"));
    llm_config_write(test_path(state, "config.json"), "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32}");
    terminal t = open_with((const char *[]){"warptone", "generate", "--backend", "cpu", "--model",
                                            test_path(state, ""), "--ids", "1", "-n", "2", "--ignore-eos", NULL});
    const size_t at = expect(&t, 0, "unpacking 1 of 2 layers\r");
    expect(&t, at, "unpacking 2 of 2 layers\r\n");
    assert_int_equal(close_terminal(&t), 0);
}

static void an_answer_is_stopped_by_ctrl_c(void **state)
{
    need_model();
    terminal t = open_terminal(state, plain_template, "100000", "none");
    size_t at = expect(&t, 0, "> ");
    type(&t, "Once upon a time\n");
    at = expect(&t, at, "Once upon a time");
    at = expect(&t, at, "the"); // the answer is under way
    type(&t, "\003");
    at = expect(&t, at, "> ");
    type(&t, "/history\n");
    at = expect(&t, at, "assistant: "); // what came is kept
    expect(&t, at, "> ");
    type(&t, "\003");
    assert_int_equal(close_terminal(&t), 130);
    assert_true(kept_answer(state) > 0);
}

/// What ends other programs ends this one while it answers; what was said is kept, and gone on with.
static void an_answer_and_the_chat_are_ended_by_sigterm(void **state)
{
    need_model();
    static const int signals[] = {SIGTERM, SIGHUP};
    for (int k = 0; k < 2; k++) {
        remove(test_path(state, "kept.json"));
        terminal t = open_terminal(state, plain_template, "100000", "none");
        size_t at = expect(&t, 0, "> ");
        type(&t, "Once upon a time\n");
        at = expect(&t, at, "Once upon a time");
        expect(&t, at, "the"); // the answer is under way
        kill(t.child, signals[k]);
        assert_int_equal(close_terminal(&t), 128 + signals[k]);
        assert_true(kept_answer(state) > 0);
    }
    terminal t = open_terminal(state, plain_template, "5", "none");
    size_t at = expect(&t, 0, "> ");
    type(&t, "/history\n");
    at = expect(&t, at, "user: Once upon a time");
    at = expect(&t, at, "assistant: ");
    expect(&t, at, "> ");
    type(&t, "\004");
    assert_int_equal(close_terminal(&t), 0);
}

static int begin(void **state)
{
    (void)state;
    return !find_program(program, sizeof program);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generate_takes_strategies_stops_and_quantising),
        cmocka_unit_test(generate_takes_caches_biases_and_logprobs),
        cmocka_unit_test(generate_answers_lines_together),
        cmocka_unit_test(lines_are_answered_at_the_same_time),
        IN_FOLDER(answers_are_as_long_as_the_model_says),
        IN_FOLDER(bad_models_get_a_sentence),
        cmocka_unit_test(a_tokenizer_of_another_model_is_told),
        IN_FOLDER(a_gpu_answers_as_the_cpu),
        IN_FOLDER(a_conversation_goes_through_pipes),
        IN_FOLDER(a_conversation_is_saved_and_loaded),
        IN_FOLDER(thinking_is_hidden_or_shown),
        IN_FOLDER(a_full_context_loses_nothing),
        IN_FOLDER(a_terminal_gets_progress_prompts_speed_and_dim_thinking),
        IN_FOLDER(a_terminal_gets_progress_of_packed_weights),
        IN_FOLDER(an_answer_is_stopped_by_ctrl_c),
        IN_FOLDER(an_answer_and_the_chat_are_ended_by_sigterm),
    };
    return cmocka_run_group_tests_name("chat program", tests, begin, NULL);
}
