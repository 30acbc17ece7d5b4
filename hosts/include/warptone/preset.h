/// Presets: chains as YAML files.
///
///     name: voice-clean
///     description: one sentence
///     channels: 2                # of the input; left out = any
///     nodes:
///       - {node: biquad, id: low_cut, shape: highpass, frequency_hz: 80}
///       - {node: mix, inputs: [low_cut, in], gain2_db: -6}
///     output: mix                # left out = the last node
///
/// Further keys of a node are the parameters and options of its type. Paths of files are relative to the preset's folder.
#ifndef WARPTONE_PRESET_H
#define WARPTONE_PRESET_H

#include <warptone/chain.h>
#include <warptone/live.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_PRESET_MAX_BYTES (1 << 20)

typedef struct wt_preset wt_preset;

/// Read a preset file, or the preset of that name in the preset folders: $WARPTONE_PRESETS, then beside the program
/// (presets, ../presets, ../share/warptone/presets), then below the prefix it was installed to.
/// Errors: WT_ERR_FILE, WT_ERR_NOT_FOUND with the nearest name, WT_ERR_FORMAT; every sentence carries file and line.
/// [any but rt]
WT_CHECKED wt_status wt_preset_load(const char *name_or_path, wt_preset **preset);

/// The same from memory; `path` stands in messages and its folder before relative paths.  [any but rt]
WT_CHECKED wt_status wt_preset_parse(const char *path, const char *text, size_t length, wt_preset **preset);

void wt_preset_destroy(wt_preset *preset); ///< NULL is allowed.

const char *wt_preset_name(const wt_preset *preset);        ///< borrowed until the preset is destroyed
const char *wt_preset_description(const wt_preset *preset); ///< "" when it has none
const char *wt_preset_path(const wt_preset *preset);
int wt_preset_channels(const wt_preset *preset);            ///< 0 = any
const wt_chain_desc *wt_preset_chain(const wt_preset *preset);
bool wt_preset_needs_gpu(const wt_preset *preset);          ///< a node of it runs on CUDA only

/// Build its chain. Of `config` the loader and fault are filled in here. Errors: those of wt_chain_create with file and
/// line before them; WT_ERR_BAD_ARG when the preset wants another number of channels.  [worker]
WT_CHECKED wt_status wt_preset_build(const wt_preset *preset, const wt_chain_config *config, wt_chain **chain);

/// Play it in a live engine with `channels` at its input. Errors: those of wt_live_load, and as wt_preset_build.
/// [worker]
WT_CHECKED wt_status wt_preset_load_live(const wt_preset *preset, wt_live *live, int channels);
/// The loader of audio files that presets' chains use, for wt_live_config. `user` is not used.  [worker]
WT_CHECKED wt_status wt_preset_load_audio(void *user, const char *path, double rate_hz, float **audio, int *channels,
                                          int *n_frames);
/// The text it was read from; borrowed until the preset is destroyed.
const char *wt_preset_text(const wt_preset *preset, size_t *length);

/// Names of all presets in the preset folders, sorted; caller frees the array with wt_preset_names_free.
WT_CHECKED wt_status wt_preset_names(char ***names, int *n_names);
void wt_preset_names_free(char **names, int n_names);

#ifdef __cplusplus
}
#endif
#endif
