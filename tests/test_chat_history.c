// The conversation of warptone chat: what of it becomes the prompt, and what is taken back.
#include "../hosts/chat_history.h"
#include "support/testing.h"

#include <stdlib.h>

static void messages_are_left_out_in_pairs(void **state)
{
    (void)state;
    chat_history *h;
    const char *role, *text;
    char *prompt;
    bool thinks;
    assert_ok(chat_history_create(
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}<think>\n", "<s>", NULL, &h));
    assert_ok(chat_history_set_system(h, "sys"));
    for (int k = 0; k < 2; k++) {
        assert_ok(chat_history_add(h, "user", k ? "q2" : "q1", 2));
        assert_ok(chat_history_add(h, "assistant", k ? "a2" : "a1", 2));
    }
    assert_ok(chat_history_add(h, "user", "q3", 2));
    assert_fails(chat_history_take_answer(h, &prompt), WT_ERR_BAD_ARG, "there is no answer to try again");
    assert_true(chat_history_leave_out(h, 1));
    assert_ok(chat_history_render(h, false, &prompt, &thinks));
    assert_string_equal(prompt, "<s>[system]sys[user]q2[assistant]a2[user]q3<think>");
    assert_true(thinks);
    free(prompt);
    assert_true(chat_history_leave_out(h, 2));
    assert_false(chat_history_leave_out(h, 3)); // the system's and the last
    assert_int_equal(chat_history_left_out(h), 2);
    assert_int_equal(chat_history_count(h), 6); // they are only out of the prompt
    chat_history_at(h, 1, &role, &text);
    assert_string_equal(text, "q1");
    assert_ok(chat_history_set_system(h, "other"));
    chat_history_at(h, 0, &role, &text);
    assert_string_equal(text, "other");
    for (int k = 0; k < 3; k++) assert_true(chat_history_undo(h));
    assert_int_equal(chat_history_left_out(h), 0);
    assert_false(chat_history_undo(h));
    chat_history_clear(h);
    assert_int_equal(chat_history_count(h), 1);
    assert_ok(chat_history_set_system(h, ""));
    assert_int_equal(chat_history_count(h), 0);
    assert_int_equal(chat_history_add(h, "user", "\xff", 1), WT_ERR_FORMAT);
    chat_history_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_are_left_out_in_pairs)};
    return cmocka_run_group_tests_name("chat history", tests, NULL, NULL);
}
