/// What the tests of the live engine on a device share: one chain that a failed test takes down, and chains to play.
#ifndef WT_LIVE_DEVICE_H
#define WT_LIVE_DEVICE_H

#include "device_check.h"

#include <stdbool.h>
#include <warptone/live.h>

#define LIVE_RATE 48000.0
enum { N_LIVE_CHAINS = 5, LIVE_FRAMES = 12000 };

typedef struct live_chain {
    const char *name;
    wt_chain_desc desc;
} live_chain;

extern const live_chain live_chains[N_LIVE_CHAINS];

/// The test's chain; NULL = none. finish_failed_live is a teardown that destroys it, so that a test that fails leaves
/// no kernel behind.
extern wt_live *live_playing;
int finish_failed_live(void **state);
#define LIVE_TEST(name) cmocka_unit_test_teardown(name, finish_failed_live)

bool live_on_gpu(wt_device *device);
wt_live_config live_config_on(wt_device *device, wt_live_path path, int channels);

/// live_playing with `desc` (NULL = none), in freewheel, which waits for every answer; and its end.
wt_live *patient_live(const wt_live_config *config, const wt_chain_desc *desc);
void finish_live(wt_live *live);

wt_live_stats live_stats_of(const wt_live *live);

/// Up to five seconds; then the test fails.
void wait_for_path(const wt_live *live, wt_live_path path);

/// Planar audio ([channels][stride]) equal to the bit on the CPU backend, to 90 dB on a GPU.
void assert_same_audio(wt_device *device, const float *want, const float *got, int n_frames, int channels, int stride);
/// The same with another bound on a GPU.
void assert_near_audio(wt_device *device, const float *want, const float *got, int n_frames, int channels, int stride,
                       double want_db);

#endif
