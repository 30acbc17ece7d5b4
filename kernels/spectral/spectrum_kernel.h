// Arguments of the short-time spectra's kernels: windowed frames, two real ones to a complex transform.
#ifndef WT_SPECTRUM_KERNEL_H
#define WT_SPECTRUM_KERNEL_H
#include "fastmath_kernel.h"

#ifdef __CUDACC__
#    define WT_SPECTRUM_BOTH __host__ __device__ constexpr
#else
#    define WT_SPECTRUM_BOTH static inline
#endif

// The longest transform one thread block does: 8192 points take 68 KB of shared memory.
#define WT_SPECTRUM_MAX 8192

/// Radix of the next pass when `rest` points are left, 0 when a prime factor is above 13: powers of two in as few
/// passes of 16 and less as they need, the largest first, then odd primes.
WT_SPECTRUM_BOTH int wt__spectrum_radix(int rest)
{
    int twos = 0, odd = rest;
    if (rest == 400 || rest == 20) return 20;
    for (; odd % 2 == 0; odd /= 2) twos++;
    if (twos) {
        int passes = (twos + 3) / 4;
        return 1 << ((twos + passes - 1) / passes);
    }
    return odd % 3 == 0 ? 3 : odd % 5 == 0 ? 5 : odd % 7 == 0 ? 7 : odd % 11 == 0 ? 11 : odd % 13 == 0 ? 13 : 0;
}

/// Threads that share one transform: sixteen points each; of 400, forty.
WT_SPECTRUM_BOTH int wt__spectrum_threads(int n) { return n == 400 ? 10 : (n + 15) / 16; }

/// Pairs of frames a thread block transforms at once.
WT_SPECTRUM_BOTH int wt__spectrum_sequences(int n)
{
    return n == 400 ? 16 : wt__spectrum_threads(n) >= 128 ? 1 : 128 / wt__spectrum_threads(n);
}

/// Times a block does that, so that it writes runs of eight frames or more.
WT_SPECTRUM_BOTH int wt__spectrum_rounds(int n)
{
    return wt__spectrum_sequences(n) >= 4 ? 1 : 4 / wt__spectrum_sequences(n);
}

/// Frames of one thread block.
WT_SPECTRUM_BOTH int wt__spectrum_frames(int n) { return 2 * wt__spectrum_sequences(n) * wt__spectrum_rounds(n); }

/// Of how many points one is padding: as many as threads write apart in the first pass.
WT_SPECTRUM_BOTH int wt__spectrum_pad(int n) { return wt__spectrum_radix(n) > 16 ? wt__spectrum_radix(n) : 16; }

/// Complex numbers of shared memory a transform takes. Of 400 points so many that ten threads and the next transform's
/// ten, who read side by side, go on from bank to bank.
WT_SPECTRUM_BOTH int wt__spectrum_points(int n) { return n == 400 ? 426 : n + n / wt__spectrum_pad(n) + 1; }

/// Points of a butterfly of the last pass.
WT_SPECTRUM_BOTH int wt__spectrum_last(int n)
{
    int rest = n, radix = wt__spectrum_radix(n);
    while (rest > 1 && radix) radix = wt__spectrum_radix(rest), rest /= radix ? radix : 1;
    return radix;
}

/// 1 when a thread ends with two butterflies, those that mirror each other, and so has bins beside their mirrors.
WT_SPECTRUM_BOTH int wt__spectrum_paired(int n)
{
    const int last = wt__spectrum_last(n);
    return last && last % 2 == 0 && n / last == 2 * wt__spectrum_threads(n);
}

/// 1 when three passes can work in place (spectrum.cuh).
WT_SPECTRUM_BOTH int wt__spectrum_in_place(int n)
{
    const int threads = wt__spectrum_threads(n), last = wt__spectrum_last(n), step = n / 16;
    if (wt__spectrum_radix(n) != 16 || n % 256 || step == last || step % threads || n / last % threads) return 0;
    return wt__spectrum_radix(step) * last == step && last * 16 % threads == 0;
}

/// 1 when a thread can keep the sums of its own samples of frames a quarter of one apart (spectrum_overlap.cuh).
WT_SPECTRUM_BOTH int wt__spectrum_keeps(int n)
{
    const int threads = wt__spectrum_threads(n), last = wt__spectrum_last(n);
    return wt__spectrum_sequences(n) == 1 && n % (4 * threads) == 0 && last && n / last % threads == 0;
}

/// Blocks an SM is to hold of the kernels that transform back, or whose bins go to memory: 640 threads leave each 96
/// registers, there and back in one. Of forty points a thread has more: 480 threads leave each 128; else 384.
WT_SPECTRUM_BOTH int wt__spectrum_resident(int n)
{
    const int threads = wt__spectrum_threads(n), block = threads * wt__spectrum_sequences(n);
    const int each = (n + threads - 1) / threads, at_once = each <= 16 ? 640 : each <= 40 ? 480 : 384;
    return block < at_once ? at_once / block : 1;
}

/// Where frames lie in a batch of signals [n_lines][n_samples].
typedef struct wt_spectrum_frames {
    const float *pcm;
    const float *window;   ///< [n_fft]
    const float *twiddles; ///< pass by pass [radix - 1][m][2]
    long long n_samples;
    int n_frames, hop;
    int margin; ///< frame t begins at t hop - margin
    int pad;    ///< wt_stft_pad
} wt_spectrum_frames;

typedef struct wt_spectrum_stft_args {
    wt_spectrum_frames frames;
    float *out; ///< [n_lines][n_frames][bins], pairs when complex
    int kind;   ///< 0 complex, 1 magnitude, 2 power, 3 phase
} wt_spectrum_stft_args;

/// How blocks share lines of `length` samples that are made of overlapped frames.
typedef struct wt_spectrum_walk {
    long long length;
    const float *window;
    const float *twiddles;
    int hop, margin;
    int hops; ///< of the output that a block owns, even
    int lead; ///< frames before them that touch them, even
    int ring; ///< samples that the frames of one round touch
} wt_spectrum_walk;

typedef struct wt_spectrum_istft_args {
    wt_spectrum_walk walk;
    const float *in;             ///< [n_lines][n_frames][bins][2]
    float *out;                  ///< [n_lines][length]
    const float *squares;        ///< [hop] reciprocals of the sum of squared windows where all frames are there
    int stored_frames, n_frames; ///< frames of a line; frames that count
} wt_spectrum_istft_args;

/// 1 when bands are summed by slopes: a block has few transforms that could share the weights of a band.
WT_SPECTRUM_BOTH int wt__spectrum_sloped(int n) { return wt__spectrum_sequences(n) <= 2; }

/// Where bins' powers begin, in complex numbers, when they lie side by side, and the room a transform and they take.
WT_SPECTRUM_BOTH int wt__spectrum_base(int n) { return wt__spectrum_paired(n) ? 0 : wt__spectrum_points(n); }
WT_SPECTRUM_BOTH int wt__spectrum_room(int n)
{
    const int powers = wt__spectrum_base(n) + n / 2 + 1, points = wt__spectrum_points(n);
    return powers > points ? powers : points;
}

/// Lanes that sum bands side by side, of the threads of a transform.
WT_SPECTRUM_BOTH int wt__spectrum_lanes(int n) { return wt__spectrum_threads(n) % 32 ? wt__spectrum_threads(n) : 32; }

/// Bands' sums, prepared by dsp/spectral/mel_slopes.c. On slope s, the bins from band s - 1's peak to band s's, the one
/// band falls and the other rises. A run is a slope or a part of one; a group is as many runs as there are lanes.
/// Powers lie in rows of a number of each lane's run, an odd pitch apart.
typedef struct wt_spectrum_slopes {
    const int *places;    ///< [bins] where each power goes, in numbers; -1 = nowhere
    const int *lengths;   ///< [groups][lanes] bins of each run
    const int *rows;      ///< [groups + 1] each group's first row; groups have four rows or a multiple
    const int *runs;      ///< [n_mels + 2] each slope's first run
    const float *weights; ///< [rows][lanes][2] of a bin in the band that rises, in the one that falls
    int n_groups;         ///< 0: none of this, powers side by side
    int powers;           ///< where they begin, in numbers
    int risen, fallen;    ///< where the runs' sums go
    int room;             ///< numbers in all, of a transform
} wt_spectrum_slopes;

typedef struct wt_spectrum_mel_args {
    wt_spectrum_frames frames;
    wt_spectrum_slopes slopes;
    const int *begins;    ///< [n_mels] without slopes: the first bin of each band,
    const int *lengths;   ///< [n_mels] how many it has,
    const float *weights; ///< [longest][n_mels] and theirs
    float *out;           ///< [n_lines][n_mels][n_frames], or [n_lines][n_frames][n_mels]
    int *peaks;           ///< [n_lines / channels] of ordered bits
    int n_mels, channels, frames_first, logarithm;
    float power, amin, scale, offset; ///< logarithm: scale log2(max(x, amin)) + offset
} wt_spectrum_mel_args;

#define WT_SPECTRUM_PRODUCT     128 ///< frames of a block of spectrum_product
#define WT_SPECTRUM_PRODUCT_ROW 136 ///< floats from one of its rows to the next

/// What follows when the largest value is known: x = max(x, peak - range) * gain + offset - relative * peak, then, when
/// n_out is not 0, out[k] = sum over m of matrix[m][k] x[m].
typedef struct wt_spectrum_finish_args {
    float *mel; ///< as wt_spectrum_mel_args.out, in place
    float *out; ///< [n_lines][n_out][n_frames]
    const int *peaks;
    const float *matrix; ///< [n_groups][n_steps][32][4], at 16 bytes: of eight columns and eight rows, lane 4 g + t has
                         ///< column g's rows t and t + 4, as tf32, then what these left out
    int n_mels, n_frames, channels, n_out;
    int n_groups; ///< of eight columns of the matrix
    int n_even;  ///< the first ones, of even columns, the others of odd ones: rows are (n_mels + 1) / 2; 0: all columns
                 ///< in order, n_mels rows
    int n_steps; ///< of eight rows
    float range, gain, offset, relative;
} wt_spectrum_finish_args;

/// A float as an integer of the same order, and back (its own inverse).
WT_SHARED_FN int wt__spectrum_order(int bits) { return bits >= 0 ? bits : bits ^ 0x7fffffff; }

/// scale log2(max(x, amin)) + offset; a NaN stays one: added, since choosing between results is a branch to GCC, and
/// no loop of it would be vectors.
WT_SHARED_FN float wt__spectrum_log(float x, float amin, float scale, float offset)
{
    float limited = x > amin ? x : amin;
    return scale * wt_log2(limited) + offset + (x == x ? 0.0f : x);
}
#endif
