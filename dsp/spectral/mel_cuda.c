// A mel plan on a GPU: one kernel from samples to bands, and where a limit below the largest band is wanted a second
// one over the bands, which reads that maximum from the device: nothing waits for the host.

#include "mel_slopes.h"
#include "mel_tables.h"
#include "mel_wide.h"
#include "spectrum_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct wt__mel_cuda {
    wt__spectrum_cuda spectrum;
    wt_kernel *mel, *limit, *product;
    wt_buffer *bands, *slopes, *peaks; // begins, lengths, weights and the matrix; slopes; one integer a signal
    wt_launch launch, finish;
    wt_spectrum_mel_args args;
    wt_spectrum_finish_args finish_args;
    wt__mel_wide *wide; // where no block holds what these kernels need, or transforms are to be in double
};

// Whether columns are even, odd, even .. about the matrix's middle, but for rounding: those of a cosine transform.
static bool is_mirrored(const float *matrix, int n_mels, int n_out)
{
    float largest = 0, worst = 0;
    for (int m = 0; m < n_mels; m++)
        for (int k = 0; k < n_out; k++) {
            const float x = matrix[m * n_out + k], mirror = matrix[(n_mels - 1 - m) * n_out + k];
            largest = fmaxf(largest, fabsf(x));
            worst = fmaxf(worst, fabsf(k % 2 ? x + mirror : x - mirror));
        }
    return n_mels > 1 && worst <= 0x1p-22f * largest;
}

// How spectrum_product takes the matrix: its rows in groups of eight columns, and these in steps of eight rows.
static void group_columns(const float *matrix, int n_mels, int n_out, wt_spectrum_finish_args *args)
{
    const bool mirrored = is_mirrored(matrix, n_mels, n_out);
    args->n_even = mirrored ? ((n_out + 1) / 2 + 7) / 8 : 0;
    args->n_groups = mirrored ? args->n_even + (n_out / 2 + 7) / 8 : (n_out + 7) / 8;
    args->n_steps = ((mirrored ? (n_mels + 1) / 2 : n_mels) + 7) / 8;
}

// Column j of group g.
static int column_of(const wt_spectrum_finish_args *args, int g, int j)
{
    if (!args->n_even) return 8 * g + j;
    return g < args->n_even ? 2 * (8 * g + j) : 2 * (8 * (g - args->n_even) + j) + 1;
}

// To the nearest number of 11 bits.
static float tf32_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000) & ~0x1fff;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// What a lane has of a step: two rows, then their rests.
static void fill_lane(const wt_spectrum_finish_args *args, const float *matrix, int n_out, int g, int step, int lane,
                      float *to)
{
    const int k = column_of(args, g, lane / 4), n_rows = args->n_even ? (args->n_mels + 1) / 2 : args->n_mels;
    for (int i = 0; i < 2; i++) {
        const int m = 8 * step + lane % 4 + 4 * i;
        const float x = k < n_out && m < n_rows ? matrix[m * n_out + k] : 0;
        to[i] = tf32_of(x), to[2 + i] = tf32_of(x - to[i]);
    }
}

// The tables, with the matrix's columns in their groups.
static wt_status upload_bands(const wt_mel *m, const float *matrix, int n_out, wt__mel_cuda *c)
{
    wt_spectrum_finish_args *finish = &c->finish_args;
    finish->n_mels = m->config.bank.n_mels;
    if (n_out) group_columns(matrix, finish->n_mels, n_out, finish);
    const int pieces = finish->n_groups * finish->n_steps;
    const size_t count = (size_t)pieces * 128;
    float *grouped = calloc(count + 1, sizeof *grouped);
    if (!grouped) return wt_fail(WT_ERR_NO_MEMORY, "mel: a matrix of %zu words", count);
    for (int i = 0; i < pieces * 32; i++)
        fill_lane(finish, matrix, n_out, i / 32 / finish->n_steps, i / 32 % finish->n_steps, i % 32, grouped + 4 * i);
    wt_status status = wt__mel_tables_upload(m, grouped, count, &c->bands, &c->args, finish);
    free(grouped);
    return status;
}

static wt_status fill_args(const wt_mel *m, int n_out, wt__mel_cuda *c)
{
    const wt_mel_config *f = &m->config;
    wt_status status = wt_buffer_create(m->device, WT_MEMORY_DEVICE, (size_t)f->n_signals * sizeof(int), &c->peaks);
    if (!status) status = wt__mel_slopes_upload(m, c->spectrum.n_fft, &c->slopes, &c->args.slopes);
    if (status) return status;
    c->args.frames = c->spectrum.args;
    c->args.frames.n_samples = f->n_samples;
    c->args.frames.n_frames = (int)m->n_frames;
    wt__mel_tables_fill(m, n_out, (int *)wt_buffer_address(c->peaks), &c->args, &c->finish_args);
    return WT_OK;
}

static wt_status plan_launches(const wt_mel *m, int n_out, wt__mel_cuda *c)
{
    const int n_mels = m->config.bank.n_mels, n_signals = m->config.n_signals;
    const size_t sums = (size_t)n_mels * (size_t)(c->spectrum.frames + 1) * sizeof(float) + sizeof(int);
    const size_t room =
        (size_t)wt__spectrum_sequences(c->spectrum.n_fft) * (size_t)c->args.slopes.room * 2 * sizeof(float);
    c->launch = (wt_launch){.block = {c->spectrum.threads}, .shared_bytes = room + sums};
    const size_t rows = (c->finish_args.n_even ? 16 : 8) * (size_t)c->finish_args.n_steps;
    c->finish = (wt_launch){.block = {256}, .shared_bytes = rows * WT_SPECTRUM_PRODUCT_ROW * sizeof(float)};
    const size_t most = wt_device_get_info(m->device)->shared_bytes;
    if (c->launch.shared_bytes > most || c->finish.shared_bytes > most)
        return wt_fail(WT_ERR_UNSUPPORTED,
                       "mel: %d bands of n_fft %d take %zu bytes of shared memory, this GPU has %zu", n_mels,
                       c->spectrum.n_fft, c->launch.shared_bytes, most);
    wt_status status = wt__spectrum_cuda_grid("mel", m->n_lines, m->n_frames, c->spectrum.frames, &c->launch.grid[0]);
    if (status) return status;
    return n_out ? wt__spectrum_cuda_grid("mel", m->n_lines, m->n_frames, WT_SPECTRUM_PRODUCT, &c->finish.grid[0])
                 : wt__spectrum_cuda_grid("mel", n_signals, m->n_lines / n_signals * m->n_frames * n_mels, 1024,
                                          &c->finish.grid[0]);
}

static wt_status make_fused(const wt_mel *mel, const float *matrix, int n_out, wt__mel_cuda *c)
{
    wt_status status = wt__spectrum_cuda_create("mel", mel->device, mel->slots[0].stft, &c->spectrum);
    if (!status) status = upload_bands(mel, matrix, n_out, c);
    if (!status) status = fill_args(mel, n_out, c);
    if (!status) status = plan_launches(mel, n_out, c);
    if (!status) status = wt_module_get_kernel(c->spectrum.module, "spectrum_mel", &c->mel);
    if (!status) status = wt_module_get_kernel(c->spectrum.module, "spectrum_limit", &c->limit);
    if (!status) status = wt_module_get_kernel(c->spectrum.module, "spectrum_product", &c->product);
    return status;
}

wt_status wt__mel_cuda_create(const wt_mel *mel, const float *matrix, int n_out, wt__mel_cuda **cuda)
{
    wt__mel_cuda *c = *cuda = calloc(1, sizeof *c); // the plan's destroy takes it back, also half built
    if (!c) return wt_fail(WT_ERR_NO_MEMORY, "mel: CUDA plan");
    const bool wide = mel->config.stft.precise && !mel->config.float_on_gpu;
    wt_status status = wide ? WT_ERR_UNSUPPORTED : make_fused(mel, matrix, n_out, c);
    return status == WT_ERR_UNSUPPORTED ? wt__mel_wide_create(mel, matrix, n_out, &c->wide) : status;
}

void wt__mel_cuda_destroy(wt__mel_cuda *cuda)
{
    if (!cuda) return;
    wt__mel_wide_destroy(cuda->wide);
    wt__spectrum_cuda_release(&cuda->spectrum);
    wt_buffer_destroy(cuda->bands);
    wt_buffer_destroy(cuda->slopes);
    wt_buffer_destroy(cuda->peaks);
    free(cuda);
}

wt_status wt__mel_cuda_enqueue(const wt_mel *mel, wt_stream *stream, uintptr_t pcm, uintptr_t bands, uintptr_t product)
{
    const wt__mel_cuda *c = mel->cuda;
    if (c->wide) return wt__mel_wide_enqueue(c->wide, stream, pcm, bands, product);
    wt_spectrum_mel_args args = c->args;
    wt_spectrum_finish_args finish = c->finish_args;
    args.frames.pcm = (const float *)pcm;
    args.out = finish.mel = (float *)bands;
    finish.out = (float *)product;
    // Bytes of 0x80 make an integer below that of any decibel.
    wt_status status = mel->finish || product
                           ? wt_stream_fill(stream, c->peaks, 0, 0x80, (size_t)mel->config.n_signals * sizeof(int))
                           : WT_OK;
    if (!status) status = wt_kernel_launch(c->mel, stream, &c->launch, &WT_ARG(args), 1);
    if (status || !(mel->finish || product)) return status;
    return wt_kernel_launch(product ? c->product : c->limit, stream, &c->finish, &WT_ARG(finish), 1);
}
