// Tempograms and tempi on a GPU: kernels/rhythm/tempo.cu, or by windows that no block transforms
// kernels/rhythm/tempo_wide.cu.

#include "tempo_cuda.h"
#include "fft_double_cuda.h"
#include "spectrum_cuda.h"
#include "tempo_wide.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// Even, at least twice the window. A pass costs about what a third more points do: of 16 * 3^a 5^b 2^c within that, the
// one with the least points times passes (688 points: 768 in 16 * 16 * 3, not 720 in 16 * 3 * 3 * 5). Those of windows
// that a block can transform have points that it can.
static int transform_size(int win_length)
{
    int best = 0;
    long least = LONG_MAX;
    const int most = 2 * win_length <= WT_SPECTRUM_MAX ? WT_SPECTRUM_MAX : INT_MAX;
    for (int n = (2 * win_length + 15) / 16 * 16; n <= 3 * win_length + 16 && n <= most; n += 16) {
        int passes = 0, rest = n;
        for (int radix; rest > 1 && (radix = wt__spectrum_radix(rest)) > 0; rest /= radix) passes++;
        if (rest == 1 && (long)n * passes < least) least = (long)n * passes, best = n;
    }
    return best;
}

// Window and transform of a tempogram's rows, and where they lie. `*wide` is left NULL where a block transforms a row.
static wt_status open_rows(const char *op, wt_device *device, const wt_tempogram *tempogram, wt__spectrum_cuda *s,
                           wt_tempogram_args *args, wt__tempo_wide **wide)
{
    const wt_tempogram_config *c = wt__tempogram_config(tempogram);
    const int n_fft = transform_size(c->win_length);
    if (c->n_frames < 1 || c->n_frames > INT_MAX)
        return wt_fail(WT_ERR_BAD_ARG, "%s: n_frames %lld, want 1..%d on a GPU", op, (long long)c->n_frames, INT_MAX);
    const int64_t n_rows = wt_tempogram_rows(tempogram, c->n_frames);
    if (n_rows < 1) return WT_OK; // a window that is longer, not centred: an empty tempogram
    float *window = calloc((size_t)n_fft, sizeof *window);
    if (!window) return wt_fail(WT_ERR_NO_MEMORY, "%s: window of %d frames", op, n_fft);
    memcpy(window, wt__tempogram_window(tempogram), (size_t)c->win_length * sizeof *window);
    *args = (wt_tempogram_args){.n_frames = c->n_frames,
                                .n_rows = n_rows,
                                .length = c->win_length,
                                .begin = c->no_center ? 0 : c->win_length / 2,
                                .no_norm = c->no_norm};
    wt_status status = wt__spectrum_cuda_open(op, device, "kernels/rhythm/tempo.cu", n_fft, window, s);
    args->window = s->args.window, args->twiddles = s->args.twiddles;
    if (status == WT_ERR_UNSUPPORTED)
        status = wt__tempo_wide_create(op, device, args, n_fft, window, c->n_signals, wide);
    free(window);
    return status;
}

// ---- tempogram

struct wt__tempogram_cuda {
    wt__spectrum_cuda spectrum;
    wt_kernel *kernel;
    wt_launch launch;
    wt_tempogram_args args;
    wt__tempo_wide *wide; // in place of all that
};

wt_status wt__tempogram_cuda_create(wt_device *device, const wt_tempogram *tempogram, wt__tempogram_cuda **cuda)
{
    wt__tempogram_cuda *t = *cuda = calloc(1, sizeof *t); // the plan's destroy takes it back, also half built
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "tempogram: CUDA plan");
    wt_status status = open_rows("tempogram", device, tempogram, &t->spectrum, &t->args, &t->wide);
    if (t->wide || !t->args.n_rows) return status;
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
    wt__tempo_wide_destroy(cuda->wide);
    free(cuda);
}

const wt_tempogram_args *wt__tempogram_cuda_args(const wt__tempogram_cuda *cuda) { return &cuda->args; }

bool wt__tempogram_cuda_is_wide(const wt__tempogram_cuda *cuda) { return cuda->wide; }

wt_status wt__tempogram_cuda_enqueue(const wt__tempogram_cuda *cuda, wt_stream *stream, const float *envelope,
                                     float *out)
{
    wt_tempogram_args args = cuda->args;
    args.envelope = envelope, args.out = out;
    if (cuda->wide) return wt__tempo_wide_rows(cuda->wide, stream, envelope, out);
    if (!args.n_rows) return WT_OK;
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
    // Of windows that no block transforms: the mean rows' lags in memory in place of `power` and `choose`.
    wt__tempo_wide *wide;
    wt_buffer *lags; // [n_signals][length]
    wt_module *wide_module;
    wt_kernel *wide_choose;
};

static wt_status make_tables(wt_device *device, const wt_tempo_choice *choice, wt__tempo_cuda *t)
{
    const size_t length = (size_t)choice->length, n_fft = t->wide ? 0 : (size_t)t->spectrum.n_fft;
    const size_t count = 2 * length + n_fft;
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
    wt_status status =
        wt__spectrum_cuda_grid("tempo", n_signals, t->rows.n_rows, WT_TEMPO_TILE, &t->power_launch.grid[0]);
    if (status) return status;
    const size_t sums = (size_t)n_signals * (size_t)t->args.tiles * (size_t)bins;
    status = wt_buffer_create(device, WT_MEMORY_DEVICE, sums * sizeof(double), &t->sums);
    if (!status) t->args.sums = t->rows.sums = (double *)wt_buffer_address(t->sums);
    return status;
}

static wt_status prepare_wide(wt_device *device, int n_signals, wt__tempo_cuda *t)
{
    const size_t lags = (size_t)n_signals * (size_t)t->rows.length;
    t->args.n_rows = n_signals;
    wt_status status = wt__tempo_wide_take_sums(t->wide, device);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, lags * sizeof(float), &t->lags);
    if (!status) status = wt__op_exact_module(device, "kernels/rhythm/tempo_rows.cu", &t->wide_module);
    return status ? status : wt_module_get_kernel(t->wide_module, "tempo_rows", &t->wide_choose);
}

wt_status wt__tempo_cuda_create(wt_device *device, const wt_tempogram *tempogram, const wt_tempo_choice *choice,
                                wt__tempo_cuda **cuda)
{
    wt__tempo_cuda *t = *cuda = calloc(1, sizeof *t); // the plan's destroy takes it back, also half built
    if (!t) return wt_fail(WT_ERR_NO_MEMORY, "tempo: CUDA plan");
    const int n_signals = wt__tempogram_config(tempogram)->n_signals;
    wt_status status = open_rows("tempo", device, tempogram, &t->spectrum, &t->rows, &t->wide);
    if (!status) status = make_tables(device, choice, t);
    if (t->wide) return status ? status : prepare_wide(device, n_signals, t);
    if (!status) status = plan_launches(device, n_signals, t);
    if (!status) status = wt_module_get_kernel(t->spectrum.module, "tempo_power", &t->power);
    if (!status) status = wt_module_get_kernel(t->spectrum.module, "tempo_choose", &t->choose);
    return status;
}

void wt__tempo_cuda_destroy(wt__tempo_cuda *cuda)
{
    if (!cuda) return;
    wt__spectrum_cuda_release(&cuda->spectrum);
    wt__tempo_wide_destroy(cuda->wide);
    wt_module_destroy(cuda->wide_module);
    wt_buffer_destroy(cuda->lags);
    wt_buffer_destroy(cuda->tables);
    wt_buffer_destroy(cuda->sums);
    free(cuda);
}

static wt_status enqueue_wide(const wt__tempo_cuda *t, wt_stream *stream, const float *envelope, double *bpm)
{
    float *lags = (float *)wt_buffer_address(t->lags);
    const wt_tempo_rows_args args = {
        .rows = lags, .bpm = bpm, .choice = t->args.choice, .n_rows = t->args.n_rows, .in_double = true};
    wt_status status = wt__tempo_wide_lags(t->wide, stream, envelope, lags);
    return status ? status : wt__fft64_cuda_each("tempo", t->wide_choose, stream, WT_ARG(args), 32 * args.n_rows);
}

wt_status wt__tempo_cuda_enqueue(const wt__tempo_cuda *cuda, wt_stream *stream, const float *envelope, double *bpm)
{
    if (cuda->wide) return enqueue_wide(cuda, stream, envelope, bpm);
    wt_tempogram_args rows = cuda->rows;
    wt_tempo_args args = cuda->args;
    rows.envelope = envelope;
    args.bpm = bpm, args.rows = rows;
    wt_status status = wt_kernel_launch(cuda->power, stream, &cuda->power_launch, &WT_ARG(rows), 1);
    return status ? status : wt_kernel_launch(cuda->choose, stream, &cuda->choose_launch, &WT_ARG(args), 1);
}

const wt_tempo_choice *wt__tempo_cuda_choice(const wt__tempo_cuda *cuda) { return &cuda->args.choice; }
