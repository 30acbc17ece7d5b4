/// Presets: chains as YAML files.
///
///     name: voice-clean
///     description: one sentence
///     channels: 2                # of the input; left out = any
///     nodes:
///       - {node: biquad, id: low_cut, shape: highpass, frequency_hz: 80}
///       - {node: mix, inputs: [low_cut, in], gain2_db: -6}
///     output: mix                # left out = the last node
///     midi:                      # docs/midi.md
///       - {cc: 7, param: low_cut/frequency_hz, min: 40, max: 400, curve: log}
///       - {program: 3, preset: hall}
///
/// Further keys of a node are the parameters and options of its type. Paths of files are relative to the preset's
/// folder.
#ifndef WARPTONE_PRESET_H
#define WARPTONE_PRESET_H

#include <warptone/chain.h>
#include <warptone/live.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WT_PRESET_MAX_BYTES (1 << 20)

typedef struct wt_preset wt_preset;

// clang-format off
/// What moves a parameter: X(code, key in the preset, largest number, may be `any`)
#define WT_MIDI_SOURCE_LIST(X)                                                                        \
    X(WT_MIDI_CC,       "cc",       119,   0) /* a controller */                                      \
    X(WT_MIDI_CC14,     "cc14",     31,    0) /* a pair of controllers, n and n + 32: 14 bits */       \
    X(WT_MIDI_NRPN,     "nrpn",     16382, 0) /* a non-registered parameter number: 14 bits */        \
    X(WT_MIDI_NOTE,     "note",     127,   1) /* one key: its velocity, 0 at release; any: the pitch */ \
    X(WT_MIDI_VELOCITY, "velocity", 127,   1) /* the velocity of a key, which stays at its release */ \
    X(WT_MIDI_BEND,     "bend",     -1,    1) /* the pitch wheel: 14 bits */                          \
    X(WT_MIDI_PRESSURE, "pressure", -1,    1) /* the pressure of a channel */                         \
    X(WT_MIDI_PROGRAM,  "program",  127,   0) /* a program change, from 0; chooses a preset */

/// How it moves it: X(code, name)
#define WT_MIDI_CURVE_LIST(X)                                                                  \
    X(WT_MIDI_STANDARD, "standard") /* as the parameter moves by itself: linear or log */       \
    X(WT_MIDI_LINEAR,   "linear")                                                              \
    X(WT_MIDI_LOG,      "log")                                                                 \
    X(WT_MIDI_TOGGLE,   "toggle")   /* min below the middle, else max; a key changes over */    \
    X(WT_MIDI_PICK_UP,  "pick-up")  /* standard, from when it passes the present value */
// clang-format on

#define WT_MIDI_ENUM(code, ...) code,
typedef enum wt_midi_source { WT_MIDI_SOURCE_LIST(WT_MIDI_ENUM) WT_N_MIDI_SOURCES } wt_midi_source;
typedef enum wt_midi_curve { WT_MIDI_CURVE_LIST(WT_MIDI_ENUM) WT_N_MIDI_CURVES } wt_midi_curve;
#undef WT_MIDI_ENUM

#define WT_MIDI_ANY (-1)

/// One row of a preset's MIDI map.
typedef struct wt_midi_row {
    wt_midi_source source;
    int number;         ///< as in the list, or WT_MIDI_ANY
    int channel;        ///< 1 .. 16; 0 = any
    const char *param;  ///< "node/param"; NULL for a program
    const char *preset; ///< name or path, for a program; else NULL
    float min, max;     ///< values at both ends, max may be the smaller; not a number = the parameter's own
    wt_midi_curve curve;
} wt_midi_row;

/// Read a preset file, or the preset of that name in the preset folders: $WARPTONE_PRESETS, then beside the program
/// (presets, ../presets, ../share/warptone/presets), then below the prefix it was installed to.
/// Errors: WT_ERR_FILE, WT_ERR_NOT_FOUND with the nearest name, WT_ERR_FORMAT; every sentence carries file and line.
/// [any but rt]
WT_CHECKED wt_status wt_preset_load(const char *name_or_path, wt_preset **preset);

/// The same from memory, [length] bytes, borrowed for the call; `path` stands in messages, its folder before relative
/// paths. Errors: WT_ERR_FORMAT, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_preset_parse(const char *path, const char *text, size_t length, wt_preset **preset);

void wt_preset_destroy(wt_preset *preset); ///< NULL is allowed.  [any but rt]

// ---- what stands in it, borrowed until it is destroyed  [any]

const char *wt_preset_name(const wt_preset *preset);
const char *wt_preset_description(const wt_preset *preset); ///< "" when it has none
const char *wt_preset_path(const wt_preset *preset);
int wt_preset_channels(const wt_preset *preset);            ///< 0 = any
const wt_chain_desc *wt_preset_chain(const wt_preset *preset);
const char *wt_preset_text(const wt_preset *preset);        ///< as it was read, ends with a NUL
const wt_midi_row *wt_preset_midi(const wt_preset *preset, int *n_rows); ///< NULL when it has none
bool wt_preset_needs_gpu(const wt_preset *preset);          ///< a node of it runs on CUDA only

/// Build its chain. Of `config` the loader and fault are filled in here. Errors: those of wt_chain_create with file and
/// line before them; WT_ERR_BAD_ARG when the preset wants another number of channels.  [worker]
WT_CHECKED wt_status wt_preset_build(const wt_preset *preset, const wt_chain_config *config, wt_chain **chain);

/// Play it in a live engine with `channels` at its input. Errors: those of wt_live_load, and as wt_preset_build.
/// [worker]
WT_CHECKED wt_status wt_preset_load_live(const wt_preset *preset, wt_live *live, int channels);
/// The loader of audio files that presets' chains use, for wt_live_config. `user` is not used.
/// Errors: those of wt_audio_reader_open and wt_audio_reader_read.  [worker]
WT_CHECKED wt_status wt_preset_load_audio(void *user, const char *path, double rate_hz, float **audio, int *channels,
                                          int *n_frames);

/// Do the rows of the MIDI map fit: is there each parameter in the preset's chain, each range inside the parameter's,
/// each preset of a program? Errors: WT_ERR_NOT_FOUND with the nearest name, WT_ERR_BAD_ARG; with file and line.
/// [any but rt]
WT_CHECKED wt_status wt_preset_check_midi(const wt_preset *preset, const wt_chain *chain);

/// Names of all presets in the preset folders, sorted; caller frees the array with wt_preset_names_free, also after an
/// error. Errors: WT_ERR_FILE, WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status wt_preset_names(char ***names, int *n_names);
void wt_preset_names_free(char **names, int n_names);

#ifdef __cplusplus
}
#endif
#endif
