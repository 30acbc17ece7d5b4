#include "draws.h"

#include "signal_op_rows.h"

#include <limits.h>
#include <math.h>

extern const signal_op_table drawn_ops_spectra, drawn_ops_samples;

static const signal_op_table *const tables[] = {&drawn_ops_spectra, &drawn_ops_samples};

int drawn_ops_count(void) { return tables[0]->n_rows + tables[1]->n_rows; }

const signal_op *drawn_op_at(int k)
{
    return k < tables[0]->n_rows ? &tables[0]->rows[k] : &tables[1]->rows[k - tables[0]->n_rows];
}

int draw_below(draws *d, int n)
{
    d->seed = d->seed * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX
    return (int)((d->seed >> 33) % (uint64_t)n);
}

bool draw_bool(draws *d) { return draw_below(d, 4) == 0; }

int draw_size(draws *d, int least, int most)
{
    static const int primes[] = {2, 3, 5, 7, 11, 13, 17, 61, 67, 127, 211, 503, 1021, 2039};
    const int way = draw_below(d, 4);
    int size = 1 << draw_below(d, 12);
    if (way == 1) size = primes[draw_below(d, 14)];
    if (way == 2) size = size / 2 + draw_below(d, size) + 1;
    if (way == 3) size = least + draw_below(d, most - least + 1);
    return size < least ? least : size > most ? most : size;
}

int draw_field(draws *d, int least, int most)
{
    if (d->wild && draw_below(d, 10) == 0) {
        const int outside[] = {least - 1, -1, most + 1, INT_MIN, INT_MAX};
        return outside[draw_below(d, 5)];
    }
    return draw_below(d, 4) ? draw_size(d, least, most) : 0;
}

double draw_real(draws *d, double least, double most)
{
    if (d->wild && draw_below(d, 10) == 0) {
        const double outside[] = {NAN, INFINITY, -INFINITY, -1, 1e300, 1e-300, least * 0.5 - 1, most * 2 + 1};
        return outside[draw_below(d, 8)];
    }
    return draw_below(d, 3) ? least + (most - least) * draw_below(d, 1001) / 1000 : 0;
}

static wt_window_config draw_window(draws *d)
{
    if (draw_below(d, 2)) return (wt_window_config){0};
    const wt_window_kind kind = (wt_window_kind)draw_below(d, d->wild ? 11 : WT_WINDOW_CUSTOM);
    const bool wants = kind == WT_WINDOW_KAISER || kind == WT_WINDOW_GAUSSIAN;
    return (wt_window_config){
        .kind = kind, .symmetric = draw_bool(d), .parameter = wants ? 1 + draw_real(d, 0, 40) : 0};
}

wt_stft_config draw_stft(draws *d)
{
    wt_stft_config c = {.n_fft = draw_field(d, 2, 2500), .window = draw_window(d)};
    const int n = c.n_fft > 0 && c.n_fft < 5000 ? c.n_fft : 2048;
    if (draw_bool(d)) c.win_length = draw_field(d, 1, n);
    c.hop = draw_field(d, n / 16 + 1, 2 * n);
    c.channels = draw_below(d, 3);
    c.pad = (wt_stft_pad)draw_below(d, d->wild ? 6 : 5);
    c.no_center = draw_bool(d);
    c.precise = draw_bool(d);
    return c;
}
