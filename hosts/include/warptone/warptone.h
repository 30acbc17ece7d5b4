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

#endif
