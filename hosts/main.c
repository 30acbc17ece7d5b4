#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/names.h>

typedef struct command {
    const char *name, *summary;
    command_function function;
} command;

static const command commands[] = {
#define COMMAND_ROW(name, summary) {#name, summary, cmd_##name},
    COMMAND_LIST(COMMAND_ROW)
#undef COMMAND_ROW
};

enum { N_COMMANDS = (int)(sizeof commands / sizeof *commands) };

int command_fail(const char *name, wt_status status)
{
    fprintf(stderr, "warptone %s: %s\n", name, wt_last_error());
    return exit_code_of(status);
}

static int print_help(FILE *out)
{
    fprintf(out, "usage: warptone COMMAND [options] [arguments]\n\n"
                 "A real-time audio engine for NVIDIA GPUs; without one everything runs on the CPU.\n\n"
                 "commands:\n");
    for (int k = 0; k < N_COMMANDS; k++) fprintf(out, "  %-12s %s\n", commands[k].name, commands[k].summary);
    fprintf(out, "\n  warptone COMMAND --help   the command's options and examples\n"
                 "  warptone --version        the version\n\n"
                 "environment:\n"
                 "  WARPTONE_BACKEND          auto (a usable GPU, else the CPU), cuda or cpu\n"
                 "  WARPTONE_CACHE            folder of compiled kernels, instead of ~/.cache/warptone\n"
                 "  WARPTONE_CACHE_LIMIT_MB   its size, 512\n"
                 "  WARPTONE_NVRTC, WARPTONE_CUBLASLT   the library files to open\n"
                 "  WARPTONE_PRESETS          folder of presets, looked in before those that came with it\n"
                 "  TMPDIR                    where analyze maps long files, /var/tmp\n"
                 "  NO_COLOR                  set: no colours\n\n"
                 "exit codes:\n"
                 "  0    everything was done\n"
                 "  1    some of the work failed, or a file cannot be read or written\n"
                 "  2    the command line is wrong, whatever the inputs\n"
                 "  3    an input is not as it should be, or too short or too long\n"
                 "  4    a device, driver or feature is missing\n"
                 "  130  interrupted by SIGINT (Ctrl-C); 143 by SIGTERM\n");
    return EXIT_OK;
}

static const command *find_command(const char *name)
{
    for (int k = 0; k < N_COMMANDS; k++)
        if (!strcmp(commands[k].name, name)) return &commands[k];
    return NULL;
}

static int refuse(const char *name)
{
    const char *names[N_COMMANDS];
    char shown[256];
    for (int k = 0; k < N_COMMANDS; k++) names[k] = commands[k].name;
    fprintf(stderr, "warptone: unknown command \"%s\"; the nearest is \"%s\" (warptone --help lists all)\n",
            wt_show_text(name, shown, sizeof shown), wt_nearest_name(name, names, N_COMMANDS));
    return EXIT_USAGE;
}

// `help` alone, or of a command.
static int help(int argc, char **argv)
{
    if (argc < 3) return print_help(stdout);
    const command *c = find_command(argv[2]);
    return c ? c->function(2, (char *[]){argv[2], "--help", NULL}) : refuse(argv[2]);
}

static int run(int argc, char **argv)
{
    if (argc < 2 && getenv("NSM_URL")) return cmd_live(1, (char *[]){"live", NULL}); // as session managers start it
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) return print_help(stdout);
    if (!strcmp(argv[1], "--version")) {
        printf("warptone %s\n", WARPTONE_VERSION);
        return EXIT_OK;
    }
    if (!strcmp(argv[1], "help")) return help(argc, argv);
    const command *c = find_command(argv[1]);
    return c ? c->function(argc - 1, argv + 1) : refuse(argv[1]);
}

int main(int argc, char **argv)
{
    int code = run(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && code == EXIT_OK) {
        perror("warptone: cannot write to the standard output");
        code = EXIT_FAILED;
    }
    return code;
}
