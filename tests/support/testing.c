#include "support/testing.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((constructor)) static void choose_tests(void)
{
    const char *pattern = getenv("WARPTONE_TEST");
    if (pattern) cmocka_set_test_filter(pattern);
}

double snr_db(const float *reference, const float *got, size_t count)
{
    double signal = 0, error = 0;
    for (size_t n = 0; n < count; n++) {
        double difference = (double)got[n] - reference[n];
        signal += (double)reference[n] * reference[n];
        error += difference * difference;
    }
    if (!isfinite(error)) return -300;
    if (error == 0) return 300;
    return 10 * log10(signal / error);
}

const char *shared_data(const char *relative)
{
    static char path[4096];
    const char *folder = getenv("WARPTONE_TEST_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared/data", relative);
    return access(path, R_OK) == 0 ? path : NULL;
}

float noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*seed >> 32) * 0x1p-31f;
}

int run_command(char *out, size_t out_bytes, const char *format, ...)
{
    char command[16384];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    assert_in_range(length, 0, sizeof command - 1);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    out[fread(out, 1, out_bytes - 1, pipe)] = 0;
    const int status = pclose(pipe);
    if (!WIFEXITED(status)) fail_msg("%s: ended with %#x", command, status);
    return WEXITSTATUS(status);
}

bool find_program(char *program, size_t size)
{
    static const char name[] = "/../warptone";
    const ssize_t length = readlink("/proc/self/exe", program, size - sizeof name);
    if (length <= 0) return false;
    program[length] = 0;
    strcpy(strrchr(program, '/'), name);
    return true;
}
