/// The options of a command: a table says what there is, one call reads them all and leaves the other arguments.
#ifndef WT_OPTIONS_H
#define WT_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>
#include <warptone/device.h>
#include <warptone/status.h>

typedef enum wt_option_kind {
    WT_OPTION_FLAG,   ///< bool, set to true; takes no value
    WT_OPTION_TEXT,   ///< const char *, points into argv
    WT_OPTION_INT,    ///< int, min .. max
    WT_OPTION_NUMBER, ///< double, min .. max
    WT_OPTION_TEXTS,  ///< wt_option_texts: one each time the option is given
} wt_option_kind;

enum { WT_OPTION_MAX_TEXTS = 16 };

typedef struct wt_option_texts {
    const char *at[WT_OPTION_MAX_TEXTS]; ///< point into argv
    int n;
} wt_option_texts;

typedef struct wt_option {
    const char *name; ///< "jobs" for --jobs
    char letter;      ///< 'j' for -j, 0 for none
    wt_option_kind kind;
    void *value;          ///< what the kind says; written when the option is met
    const char *argument; ///< stands for the value in the help, "N"; NULL for a flag
    const char *help;
    double min, max; ///< of INT and NUMBER; both 0 = no bounds
} wt_option;

/// Rows of a table, LETTER 0 for none. A variable of another type than the kind's does not compile.
#define OPTION_FLAG(NAME, LETTER, VALUE, HELP)                                                                         \
    {                                                                                                                  \
        NAME, LETTER, WT_OPTION_FLAG, _Generic((VALUE), bool * : (VALUE)), NULL, HELP, 0, 0                            \
    }
#define OPTION_TEXT(NAME, LETTER, VALUE, ARGUMENT, HELP)                                                               \
    {                                                                                                                  \
        NAME, LETTER, WT_OPTION_TEXT, _Generic((VALUE), const char ** : (VALUE)), ARGUMENT, HELP, 0, 0                 \
    }
#define OPTION_INT(NAME, LETTER, VALUE, ARGUMENT, MIN, MAX, HELP)                                                      \
    {                                                                                                                  \
        NAME, LETTER, WT_OPTION_INT, _Generic((VALUE), int * : (VALUE)), ARGUMENT, HELP, MIN, MAX                      \
    }
#define OPTION_NUMBER(NAME, LETTER, VALUE, ARGUMENT, MIN, MAX, HELP)                                                   \
    {                                                                                                                  \
        NAME, LETTER, WT_OPTION_NUMBER, _Generic((VALUE), double * : (VALUE)), ARGUMENT, HELP, MIN, MAX                \
    }
#define OPTION_TEXTS(NAME, LETTER, VALUE, ARGUMENT, HELP)                                                              \
    {                                                                                                                  \
        NAME, LETTER, WT_OPTION_TEXTS, _Generic((VALUE), wt_option_texts * : (VALUE)), ARGUMENT, HELP, 0, 0            \
    }

/// Read the options of `argv` [1 .. *argc - 1], wherever they stand among the other arguments: `--name value`,
/// `--name=value`, `-n value`, `-nvalue`; after `--` nothing is an option, and `-` alone never is. What is left (and
/// argv[0]) moves to the front, and *argc counts it. `--help` and `-h` are always known and set *help.
///
/// Errors: WT_ERR_BAD_ARG naming the option (unknown ones with the nearest known), its value and what was wanted.
/// [any but rt]
WT_CHECKED wt_status wt_options_parse(const wt_option *options, int n_options, int *argc, char **argv, bool *help);

/// Write one line an option, as a help text ends with.
void wt_options_print(FILE *out, const wt_option *options, int n_options);

/// Read a list such as "80,90,100" of integers in min .. max into `values` [max_values].
/// Errors: WT_ERR_BAD_ARG naming `what`.
WT_CHECKED wt_status wt_options_list(const char *what, const char *text, int min, int max, int *values, int max_values,
                                     int *n_values);

/// Which of `words`, with spaces between, the value of --`option` is: 0 is the first, also for NULL, which is left out.
/// Errors: WT_ERR_BAD_ARG to *status and 0, unless *status is an error already: many options are read in a row.
int wt_options_word(const char *option, const char *text, const char *words, wt_status *status);

/// The value of --backend: auto (also NULL), cuda or cpu. Errors: WT_ERR_BAD_ARG.
WT_CHECKED wt_status wt_options_backend(const char *text, wt_backend *backend);

#endif
