#include "support/llm_files.h"
#include "support/testing.h"

#include <stdlib.h>
#include <unistd.h>

// The example of docs/llm.md, which lies in docs/embed_llm.c: that it compiles, and does what it says.
#define main embed_llm_main
#include "../docs/embed_llm.c"
#undef main

/// Run the program; what it writes to stdout to `text`.
static int run(char **argv, char *text, size_t size)
{
    char path[] = "/tmp/warptone-embed-XXXXXX";
    const int out = mkstemp(path), kept = dup(STDOUT_FILENO);
    assert_true(out >= 0 && kept >= 0);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    const int code = embed_llm_main(3, argv);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    const ssize_t n = pread(out, text, size - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(out), close(kept);
    unlink(path);
    return code;
}

static void its_answer_is_the_story(void **state)
{
    (void)state;
    char model[1024], text[4096];
    need_story_model("/", model, sizeof model);
    assert_int_equal(run((char *[]){"embed_llm", model, "Once upon a time", NULL}, text, sizeof text), 0);
    if (strncmp(text, ", a little girl named Lily lived in a small house with her mom", 62)) fail_msg("%s", text);
    assert_true(strlen(text) > 300);
}

static void a_model_that_is_not_there_is_told(void **state)
{
    (void)state;
    char text[64];
    assert_int_equal(run((char *[]){"embed_llm", "/nowhere", "x", NULL}, text, sizeof text), 1);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_answer_is_the_story),
        cmocka_unit_test(a_model_that_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
