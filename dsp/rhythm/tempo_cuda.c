// Tempograms and tempi on a GPU: kernels/rhythm/tempo.cu.

#include "tempo_cuda.h"
#include "spectrum_cuda.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// Even, at least twice the window. A pass costs about what a third more points do: of 16 * 3^a 5^b 2^c within that, the
// one with the least points times passes (688 points: 768 in 16 * 16 * 3, not 720 in 16 * 3 * 3 * 5).
static int transform_size(int win_length)
{
    int best = 0;
    long least = LONG_MAX;
    for (int n = (2 * win_length + 15) / 16 * 16; n <= 3 * win_length + 16 && n <= WT_SPECTRUM_MAX; n += 16) {
        int passes = 0, rest = n;
        for (int radix; rest > 1 && (radix = wt__spectrum_radix(rest)) > 0; rest /= radix) passes++;
        if (rest == 1 && (long)n * passes < least) least = (long)n * passes, best = n;
    }
    return best ? best : 2 * win_length;
}

// Window and transform of a tempogram's rows, and where they lie.
static wt_status open_rows(const char *op, wt_device *device, const wt_tempogram *tempogram, wt__spectrum_cuda *s,
                           wt_tempogram_args *args)
{
    const wt_tempogram_config *c = wt__tempogram_config(tempogram);
    const int n_fft = transform_size(c->win_length);
    if (c->n_frames < 1 || c->n_frames > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "%s: n_frames %lld, want 1..%d on a GPU", op, (long long)c->n_frames, INT_MAX);
    const int64_t n_rows = wt_tempogram_rows(tempogram, c->n_frames);
    if (n_rows < 1)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %lld frames without centring, want a window of %d or more", op,
                       (long long)c->n_frames, c->win_length);
    float *window = calloc((size_t)n_fft, sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "%s: window of %d frames", op, n_fft);
    memcpy(window, wt__tempogram_window(tempogram), (size_t)c->win_length * sizeof *window);
    wt_status status = wt__spectrum_cuda_open(op, device, "kernels/rhythm/tempo.cu", n_fft, window, s);
    free(window);
    *args = (wt_tempogram_args){.window = s->args.window,
                                .twiddles = s->args.twiddles,
                                .n_frames = c->n_frames,
                                .n_rows = n_rows,
                                .length = c->win_length,
                                .begin = c->no_center ? 0 : c->win_length / 2,
                                .no_norm = c->no_norm};
    return status;
}

// ---- tempogram

struct wt__tempogram_cuda {
    wt__spectrum_cuda spectrum;
    wt_kernel *kernel;
    wt_launch launch;
    wt_tempogram_args args;
};

wt_status wt__tempogram_cuda_create(wt_device *device, const wt_tempogram *tempogram, wt__tempogram_cuda **cuda)
{
    wt__tempogram_cuda *t = *cuda = calloc(1, sizeof *t); // the plan's destroy takes it back, also half built
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "tempogram: CUDA plan");
    wt_status status = open_rows("tempogram", device, tempogram, &t->spectrum, &t->args);
    t->launch = (wt_launch){.block = {t->spectrum.threads}, .shared_bytes = t->spectrum.shared_bytes};
    if (!status)
        status = wt__spectrum_cuda_grid("tempogram", wt__tempogram_config(tempogram)->n_signals, t->args.n_rows,
                                        wt__spectrum_sequences(t->spectrum.n_fft), &t->launch.grid[0]);
    return status ? status : wt_module_get_kernel(t->spectrum.module, "tempogram", &t->kernel);
}

void wt__tempogram_cuda_destroy(wt__tempogram_cuda *cuda)
{
    if (!cuda) return;
    wt__spectrum_cuda_release(&cuda->spectrum);
    free(cuda);
}

wt_status wt__tempogram_cuda_enqueue(const wt__tempogram_cuda *cuda, wt_stream *stream, const float *envelope,
                                     float *out)
{
    wt_tempogram_args args = cuda->args;
    args.envelope = envelope, args.out = out;
    return wt_kernel_launch(cuda->kernel, stream, &cuda->launch, &WT_ARG(args), 1);
}

// ---- tempo

struct wt__tempo_cuda {
    wt__spectrum_cuda spectrum;
    wt_buffer *tables; // prior [length], the window's autocorrelation [length], cosines [n_fft]
    wt_buffer *sums;
    wt_kernel *power, *choose;
    wt_launch power_launch, choose_launch;
    wt_tempogram_args rows;
    wt_tempo_args args;
};

static wt_status make_tables(wt_device *device, const wt_tempo_choice *choice, wt__tempo_cuda *t)
{
    const size_t length = (size_t)choice->length, n_fft = (size_t)t->spectrum.n_fft, count = 2 * length + n_fft;
    double *table = malloc(count * sizeof *table);
    if (!table) return wt_fail(WT_ERR_NO_MEMORY, "tempo: %zu numbers of tables", count);
    memcpy(table, choice->prior, length * sizeof *table);
    memcpy(table + length, choice->window, length * sizeof *table);
    for (size_t k = 0; k < n_fft; k++)
        table[2 * length + k] = cos(2 * 3.14159265358979323846 * (double)k / (double)n_fft);
    wt_status status = wt__op_upload(device, table, count * sizeof *table, &t->tables);
    free(table);
    if (status) return status;
    t->args.choice = *choice;
    t->args.choice.prior = (const double *)wt_buffer_address(t->tables);
    t->args.choice.window = t->args.choice.prior + length;
    t->args.cosines = t->args.choice.window + length;
    return WT_OK;
}

static wt_status plan_launches(wt_device *device, int n_signals, wt__tempo_cuda *t)
{
    const int n_fft = t->spectrum.n_fft, bins = n_fft / 2 + 1;
    t->args.n_rows = t->rows.n_rows, t->args.n_fft = n_fft;
    t->args.tiles = (int)((t->rows.n_rows + WT_TEMPO_TILE - 1) / WT_TEMPO_TILE);
    t->power_launch =
        (wt_launch){.block = {t->spectrum.threads},
                    .shared_bytes = t->spectrum.shared_bytes + WT_TEMPO_SAMPLES((size_t)n_fft) * sizeof(float)};
    const size_t floats = 2 * (size_t)n_fft + (size_t)bins + (size_t)t->rows.length;
    t->choose_launch = (wt_launch){.grid = {n_signals}, .block = {256}, .shared_bytes = floats * sizeof(float)};
    if (t->choose_launch.shared_bytes > wt_device_get_info(device)->shared_bytes)
        return wt_fail(WT_ERR_UNSUPPORTED, "tempo: a window of %d frames on a GPU, want a shorter one", t->rows.length);
    wt_status status =
        wt__spectrum_cuda_grid("tempo", n_signals, t->rows.n_rows, WT_TEMPO_TILE, &t->power_launch.grid[0]);
    if (status) return status;
    const size_t sums = (size_t)n_signals * (size_t)t->args.tiles * (size_t)bins;
    status = wt_buffer_create(device, WT_MEMORY_DEVICE, sums * sizeof(double), &t->sums);
    if (!status) t->args.sums = t->rows.sums = (double *)wt_buffer_address(t->sums);
    return status;
}

wt_status wt__tempo_cuda_create(wt_device *device, const wt_tempogram *tempogram, const wt_tempo_choice *choice,
                                wt__tempo_cuda **cuda)
{
    wt__tempo_cuda *t = *cuda = calloc(1, sizeof *t); // the plan's destroy takes it back, also half built
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "tempo: CUDA plan");
    wt_status status = open_rows("tempo", device, tempogram, &t->spectrum, &t->rows);
    if (!status) status = make_tables(device, choice, t);
    if (!status) status = plan_launches(device, wt__tempogram_config(tempogram)->n_signals, t);
    if (!status) status = wt_module_get_kernel(t->spectrum.module, "tempo_power", &t->power);
    if (!status) status = wt_module_get_kernel(t->spectrum.module, "tempo_choose", &t->choose);
    return status;
}

void wt__tempo_cuda_destroy(wt__tempo_cuda *cuda)
{
    if (!cuda) return;
    wt__spectrum_cuda_release(&cuda->spectrum);
    wt_buffer_destroy(cuda->tables);
    wt_buffer_destroy(cuda->sums);
    free(cuda);
}

wt_status wt__tempo_cuda_enqueue(const wt__tempo_cuda *cuda, wt_stream *stream, const float *envelope, double *bpm)
{
    wt_tempogram_args rows = cuda->rows;
    wt_tempo_args args = cuda->args;
    rows.envelope = envelope;
    args.bpm = bpm;
    wt_status status = wt_kernel_launch(cuda->power, stream, &cuda->power_launch, &WT_ARG(rows), 1);
    return status ? status : wt_kernel_launch(cuda->choose, stream, &cuda->choose_launch, &WT_ARG(args), 1);
}

const wt_tempo_choice *wt__tempo_cuda_choice(const wt__tempo_cuda *cuda)
{
    return &cuda->args.choice;
}
