/// The terminal view of a live session. `live_view_text` is a pure function of what it shows; `live_view_run`
/// (cmd_live_view.c) gathers that about 20 times a second, draws it and takes the keys.
#ifndef WT_LIVE_VIEW_H
#define WT_LIVE_VIEW_H

#include "live_session.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LIVE_VIEW_CHANNELS = 16, ///< of a side; more are not drawn
    LIVE_VIEW_PARAMS = 256,
    LIVE_VIEW_READINGS = 8,
    LIVE_VIEW_BARS = 24, ///< of the histogram
    LIVE_VIEW_PARTITIONS = 8,
};

typedef struct live_view_level {
    float peak_db, held_db, rms_db; ///< dB of full scale, -INFINITY = silence
} live_view_level;

typedef struct live_view_reading {
    char name[64]; ///< "limiter/gain_reduction_db"
    float value;
} live_view_reading;

typedef struct live_view_partition {
    char name[32];
    int n_sms;
    double busy; ///< 0 .. 1; below 0 = not known yet
} live_view_partition;

/// What one page shows.
typedef struct live_view_page {
    live_session_stats stats;
    live_view_level in[LIVE_VIEW_CHANNELS], out[LIVE_VIEW_CHANNELS];
    int n_in, n_out;
    live_param params[LIVE_VIEW_PARAMS];
    int n_params, selected;
    live_view_reading readings[LIVE_VIEW_READINGS];
    int n_readings;
    int64_t bar_from_ns, bar_to_ns; ///< ends of the histogram's axis, which is logarithmic
    double bars[LIVE_VIEW_BARS];    ///< shares of all blocks, their sum is 1; 0 when there are none
    live_view_partition partitions[LIVE_VIEW_PARTITIONS];
    int n_partitions;
    bool help;
    const char *message; ///< one line at the foot: what a key did or why it did not, else what went wrong; NULL = none
} live_view_page;

typedef struct live_view_size {
    int columns, rows; ///< the text has at most `rows` lines of at most `columns` cells
    bool utf8;         ///< box and block characters; else ASCII
    bool color;        ///< SGR escapes, which take no cell
} live_view_size;

/// Write the page with a NUL, lines ended by "\n", the last one too; returns its bytes, or what they would be.  [any]
size_t live_view_text(const live_view_page *page, const live_view_size *size, char *text, size_t text_bytes);

/// The same as one line, for what is no terminal.  [any]
size_t live_view_line(const live_view_page *page, char *text, size_t text_bytes);

/// Show the session until it ends, a signal comes, `q` is pressed or `seconds` (0 = no end) are over. The screen is put
/// back on every way out. Where standard input or output is no terminal, or TERM is "dumb", a line is printed each
/// second instead.  [main]
WT_CHECKED wt_status live_view_run(live_session *session, double seconds);

#ifdef __cplusplus
}
#endif
#endif
