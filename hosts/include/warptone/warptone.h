/// Everything an embedding program needs: devices, chains, presets, files, loudness.
#ifndef WARPTONE_WARPTONE_H
#define WARPTONE_WARPTONE_H

#include <warptone/audio_file.h>
#include <warptone/chain.h>
#include <warptone/device.h>
#include <warptone/kernel.h>
#include <warptone/loudness.h>
#include <warptone/preset.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WARPTONE_VERSION "0.1.0"

/// The library's own WARPTONE_VERSION, which may be another than that of the headers a program was compiled with.
/// [any]
const char *wt_version(void);

#ifdef __cplusplus
}
#endif
#endif
