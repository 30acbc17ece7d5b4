// Short-time transforms on one core: 60 s of mono at 22.05 kHz there and back. One row a case, times real time by the
// time that the core worked:
//   stft  2048 / 512   forward 30000 x   inverse 25000 x

#include "support/cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <warptone/stft.h>

enum { RATE_HZ = 22050, SECONDS = 60, REPEATS = 10 };

static int bench_case(int n_fft, int hop)
{
    const int64_t n = (int64_t)RATE_HZ * SECONDS;
    wt_stft *stft;
    if (wt_stft_create(&(wt_stft_config){.n_fft = n_fft, .hop = hop}, &stft)) {
        fprintf(stderr, "bench_stft: %s\n", wt_last_error());
        return 1;
    }
    const int64_t n_frames = wt_stft_frames(stft, n);
    float *x = malloc((size_t)n * sizeof *x), *out = malloc((size_t)(n_frames * wt_stft_bins(stft)) * 2 * sizeof *out);
    if (!x || !out) {
        fprintf(stderr, "bench_stft: out of memory\n");
        return 1;
    }
    for (int64_t i = 0; i < n; i++) x[i] = (float)(i * 7919 % 2000) / 1000 - 1;
    double best[2] = {1e30, 1e30};
    int failed = 0;
    for (int repeat = 0; repeat < 2 * REPEATS; repeat++) {
        const double begin = bench_cpu_s();
        failed |= repeat % 2 ? wt_stft_inverse(stft, out, n_frames, n, x) : wt_stft_forward(stft, x, n, out);
        const double seconds = bench_cpu_s() - begin;
        if (seconds < best[repeat % 2]) best[repeat % 2] = seconds;
    }
    printf("stft  %4d / %-4d  forward %6.0f x   inverse %6.0f x\n", n_fft, hop, SECONDS / best[0], SECONDS / best[1]);
    wt_stft_destroy(stft);
    free(x), free(out);
    return failed;
}

int main(void)
{
    return bench_case(2048, 512) | bench_case(1024, 256) | bench_case(400, 160) | bench_case(4096, 1024);
}
