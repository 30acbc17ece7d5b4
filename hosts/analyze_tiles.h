/// Files too long to be loaded: analyze_tiles.c  tile by tile; analyze_whole.c  what their tiles must know of all;
/// analyze_source.c  their samples in order.
#ifndef WT_ANALYZE_TILES_H
#define WT_ANALYZE_TILES_H

#include "analyze_run.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- analyze_tiles.c

int analyze_tile(const analyze_options *options); ///< samples
/// How many samples the features will see of a channel.  [worker]
WT_CHECKED wt_status analyze_length(const analyze_options *options, const char *path, int64_t *n);
/// Can this output be written tile by tile? Else the arrays are gathered in files before. And do tiles cost the
/// features no more than the whole does? Others are held up to ANALYZE_HELD tiles.
bool analyze_writes_tiles(const analyze_options *options, const char *output);
bool analyze_tiles_are_cheap(const analyze_options *options);
enum { ANALYZE_HELD = 8 };
/// One file of about `n` samples, tile by tile. Errors: as for a whole file.  [worker]
WT_CHECKED wt_status analyze_in_tiles(const analyze_options *options, analyze_place *place, process_item *item,
                                      int64_t n);

// ---- analyze_source.c

/// A file's signal in order: folded, at the rate asked for.
typedef struct analyze_source analyze_source;
WT_CHECKED wt_status analyze_source_open(const analyze_options *options, const char *path, analyze_source **source);
void analyze_source_close(analyze_source *source); ///< NULL is allowed.
int analyze_source_channels(const analyze_source *source);
int analyze_source_rate_hz(const analyze_source *source);
wt_audio_info analyze_source_info(const analyze_source *source); ///< of the file, as far as it is read
/// The next `n` samples into rows `stride` apart; *n_got is less only at the end.
WT_CHECKED wt_status analyze_source_read(analyze_source *source, float *out, int64_t stride, int64_t n,
                                         int64_t *n_got);

// ---- analyze_tiles.c, to analyze_whole.c

/// A long signal in tiles.
typedef struct analyze_walk {
    const analyze_options *options; // all features
    analyze_place *place;
    const char *path;
    int64_t n, n_frames;     // samples; frames
    int64_t n_own, n_beside; // frames of a tile, and before and behind them
    int rate_hz, channels;
    analyze_whole *whole;    // [channels]
    float *pcm;              // [channels][room]
    int64_t room;
    int64_t n_read;     // samples that there were
    wt_audio_info info; // of the file, where a walk saw its end
    bool keep_samples;          // of the first channel, [n], mapped
    float *samples;
} analyze_walk;

/// `n` samples of the walk's pcm: the frames `first` .. of the signal, `count` of them or, of the last tile (count -1),
/// all there are, are the tile's columns `from` ...
typedef wt_status (*analyze_visit)(void *user, const analyze_walk *walk, int64_t n, const analyze_part *part);
/// Visit every tile. Where the file ends too early the walk ends: n_read says so.
WT_CHECKED wt_status analyze_walk_along(analyze_walk *walk, analyze_visit visit, void *user);
/// A channel of the tile; on the calling thread.
analyze_signal analyze_tile_signal(const analyze_walk *walk, int64_t n, int c);

// ---- analyze_whole.c

/// Learn what the features' tiles need, and gather the rows of those that want rows: their arrays go to `gathered`,
/// [n_features] of them each, empty for those that go in tiles. Caller frees the arrays, also after an error.
WT_CHECKED wt_status analyze_whole_learn(analyze_walk *walk, analyze_result *gathered);

#ifdef __cplusplus
}
#endif
#endif
