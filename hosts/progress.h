/// A progress line for long work, on standard error; silent when that is not a terminal.
#ifndef WT_PROGRESS_H
#define WT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <warptone/clock.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One line that is drawn over and over, at most 20 times a second. Not thread-safe: the thread that collects the
/// results moves it. All functions: [main]
typedef struct wt_progress {
    const char *verb; ///< "processing"; borrowed until the end
    int64_t n_items;  ///< files in all; 0 = not known, 1 or less is not shown
    double total;     ///< what there is to do, in `unit`; 0 = not known: then items are the measure
    const char *unit; ///< "s" = seconds of audio, shown with times real time; else for example "MB"
    wt_clock clock;   ///< zero = the machine's
    int fd;           ///< 0 = standard error, when it is a terminal
    int columns;      ///< 0 = the terminal's width

    int64_t start_ns, drawn_ns; // set by begin
    int shown;                  // columns of the line that stands there, 0 = none
} wt_progress;

void wt_progress_begin(wt_progress *progress);
/// `items` done in all, `done` of `total`, and what is being worked on (its end is kept when it is too long).
void wt_progress_move(wt_progress *progress, int64_t items, double done, const char *current);
/// Remove the line, before other text is printed; the next move draws it again.
void wt_progress_clear(wt_progress *progress);
/// Remove the line for good.
void wt_progress_end(wt_progress *progress);

/// The line without cursor movements, at most `columns` characters; what move draws. `seconds` since begin.
void wt_progress_format(const wt_progress *progress, int64_t items, double done, double seconds, const char *current,
                        int columns, char *line, int line_bytes);

#ifdef __cplusplus
}
#endif
#endif
