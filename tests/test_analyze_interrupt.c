// A signal ends `warptone analyze` within about a second, also while an op is busy for minutes, and nothing is left.
#include "../hosts/atomic_file.h"
#include "support/analyze_check.h"
#include "support/audio_files.h"
#include "support/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
enum { N_NOT_WORKERS = 2 }; // threads of a program: TSan has one of its own
#else
enum { N_NOT_WORKERS = 1 };
#endif

#ifdef WT_SANITIZED
static const double late_s = 10; // a sanitizer's ends take longer
#else
static const double late_s = 1.5; // 0.6 on a quiet machine
#endif

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int count_entries(const char *path)
{
    int n = 0;
    DIR *folder = opendir(path);
    if (!folder) return 0;
    while (readdir(folder)) n++;
    closedir(folder);
    return n - 2; // . and ..
}

static pid_t start(const char *feature, const char *in, const char *out, const char *told)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid) return pid;
    const int fd = open(told, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 1), dup2(fd, 2);
    execl(analyze_program, "warptone", "analyze", "--backend", "cpu", "--json", "-f", feature, "--iterations",
          "1000000", "--components", "200", "-j", "1", in, out, NULL);
    _exit(127);
}

/// How long after the signal it ended. It leaves nothing, and says what it had begun.
static double end_busy(void **state, const char *feature, int number)
{
    int status;
    char in[4096], out[4096], told[4096], tasks[64], text[4096];
    snprintf(in, sizeof in, "%s", analyze_tones_file(state, "in.wav"));
    snprintf(out, sizeof out, "%s", test_path(state, "out.npz"));
    snprintf(told, sizeof told, "%s", test_path(state, "told.txt"));
    const pid_t pid = start(feature, in, out, told);
    snprintf(tasks, sizeof tasks, "/proc/%d/task", (int)pid);
    while (count_entries(tasks) <= N_NOT_WORKERS && waitpid(pid, &status, WNOHANG) == 0)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    const double begin_s = now_s();
    assert_int_equal(kill(pid, number), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    const double took_s = now_s() - begin_s;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + number);
    FILE *file = fopen(told, "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_non_null(strstr(text, "\"not_done\": 1"));
    assert_non_null(strstr(text, "interrupted"));
    assert_int_equal(count_entries(test_path(state, ".")), 2); // in.wav, told.txt
    return took_s;
}

static void a_busy_op_is_left(void **state)
{
    static const struct {
        const char *feature;
        int number;
    } cases[] = {{"nmf", SIGTERM}, {"griffin_lim", SIGINT}, {"rms,nmf", SIGTERM}};
    if (access(analyze_program, X_OK)) skip();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double soonest_s = end_busy(state, cases[k].feature, cases[k].number);
        for (int n = 1; n < 3 && soonest_s > late_s; n++) // a busy machine stalls now and then
            soonest_s = fmin(soonest_s, end_busy(state, cases[k].feature, cases[k].number));
        if (soonest_s > late_s)
            fail_msg("%s ended %.2f s after the signal, at the soonest of 3", cases[k].feature, soonest_s);
    }
}

static void what_was_begun_is_removed(void **state)
{
    int status;
    char path[4096];
    mkdir(test_path(state, "begun"), 0700);
    snprintf(path, sizeof path, "%s", test_path(state, "begun"));
    const pid_t pid = fork();
    if (!pid) {
        wt__atomic_file files[40], kept;
        char name[4200];
        for (int k = 0; k < 40; k++) {
            snprintf(name, sizeof name, "%s/%d.npz", path, k);
            if (wt__atomic_file_open(name, &files[k])) _exit(1);
        }
        snprintf(name, sizeof name, "%s/kept.npz", path);
        if (wt__atomic_file_open(name, &kept) || wt__atomic_file_commit(&kept, false)) _exit(2);
        wt__atomic_file_discard(&files[7]);
        if (count_entries(path) != 40) _exit(3);
        wt__atomic_file_abandon_all();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(count_entries(path), 1);
    assert_int_equal(unlink(test_path(state, "begun/kept.npz")), 0);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_op_is_left),
        cmocka_unit_test(what_was_begun_is_removed),
    };
    if (!find_program(analyze_program, sizeof analyze_program)) return 1;
    return cmocka_run_group_tests_name("analyze: signals", tests, test_folder_create, test_folder_remove);
}
