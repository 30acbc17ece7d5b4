// soxr thinks of a change of rate as a chain: from 4:1 on the rate is halved by short half-band filters; a filter of
// whole frames, by FFT, cuts at the lower Nyquist frequency and may double the rate; a short filter of many phases
// reaches the odd ratio, up to 2048 of them exact, others read between taps at times counted in 2^-32 frames; and where
// that filter ran above the output's rate another of whole frames follows. Small ratios are one filter of whole frames;
// that of 2:1 is what was measured of soxr (soxr_filters of the project's shared data) to 4e-8.
//
// Frames of a link before time 0 are not made, those behind the signal's end are. So the first outputs have rows of
// their own, all others those of their phase: the links' filters folded into one, from the last back to the first.
// Where a link halves or repeats, a row is that of one phase of it; the others differ by its stop band, below 5e-7.
#include "soxr_hq.h"

#include "fir_design_internal.h"
#include "resample_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The recipe: 20 bits and one for pass and stop band together; the band is flat (to 0.01 dB) to `pass_end` of the lower
// Nyquist frequency and 3 dB down at 0.95. `wider` is the transition of the filter of phases, whose own fall counts.
static const double bit_db = 6.020599913279624, pass_end = 0.91374365327330664, wider = 1.1438861947820265;
enum { BITS = 21, MOST_PHASES = 2048, ROOM_BYTES = 400000, ROWS_PER_FRAME = 128 };

// Odd taps of the half-band filters beside 1/2 at the centre, for attenuations to 136.5 dB and above: measured from the
// answers of python-soxr 1.1.0 to 4000 pieces of noise at 4:1 and 81:20, to 8e-10.
static const double half_band_8[] = {0.311546518,   -0.0873449062,  0.0368144542,  -0.0151892041,
                                     0.00545408497, -0.00156438181, 0.00031815826, -3.47948038e-05};
static const double half_band_9[] = {0.312270284,    -0.0892214421,  0.0391396623,    -0.0172505669, 0.00685895515,
                                     -0.00230449369, 0.000609619052, -0.000113230839, 1.1199151e-05};

// ---- windowed sincs

typedef struct band {
    double pass, stop; // edges, of the Nyquist frequency of the taps' rate over the phases
    double stop_db;
} band;

// Kaiser's beta: cubics in the attenuation for transitions (half of them, of the cut) of 0.016 2^k, and a straight line
// between. The fits are those of R. Sykes, SoX, rate effect.
static double beta_of(double db, double transition)
{
    static const double fits[5][4] = {{9.519571e-09, 7.272678e-06, 0.1090068, -0.8890768},
                                      {-5.626821e-09, 1.342186e-05, 0.1083999, -0.8565452},
                                      {-9.965946e-08, 5.073548e-05, 0.1040967, -0.6822778},
                                      {1.604808e-07, -5.856462e-05, 0.1185998, -1.24824},
                                      {-1.511964e-07, 6.363034e-05, 0.1064627, -0.8076665}};
    const double at = fmax(log2(transition / 0.016), 0), low = fmin(floor(at), 4), high = fmin(low + 1, 4);
    const double *a = fits[(int)low], *b = fits[(int)high];
    const double beta = ((a[0] * db + a[1]) * db + a[2]) * db + a[3],
                 next = ((b[0] * db + b[1]) * db + b[2]) * db + b[3];
    return beta + (next - beta) * (at - floor(at));
}

static wt__soxr_shape shape_of(const band *b, int n_phases)
{
    wt__soxr_shape s = {.half_transition = fmin((b->stop - b->pass) / 2, b->stop / 2) / n_phases};
    s.cut = b->stop / n_phases - s.half_transition;
    s.beta = beta_of(b->stop_db, s.half_transition / 2 / s.cut);
    const double x = s.beta, length = ((0.0007528358 - 1.577737e-05 * x) * x + 0.6248022) * x + 0.06186902;
    s.n_taps = (int)ceil(length / s.half_transition + 1);
    return s;
}

// Between taps too; `k` is counted from the first.
static double sinc_at(const wt__soxr_shape *s, double k)
{
    const double middle = 0.5 * (s->n_taps - 1), t = k - middle, away = t / (middle + s->edge);
    if (fabs(away) >= 1) return 0;
    const double sinc = t == 0 ? s->cut : sin(M_PI * s->cut * t) / (M_PI * t);
    return sinc * s->gain * wt__bessel_i0(s->beta * sqrt(1 - away * away)) / wt__bessel_i0(s->beta);
}

static wt_status take_taps(wt__soxr_link *link, int n_taps)
{
    link->n_taps = n_taps;
    link->taps = calloc((size_t)n_taps + 2, sizeof *link->taps);
    return link->taps ? WT_OK : wt_fail(WT_ERR_NO_MEMORY, "resample: %d taps", n_taps);
}

// ---- links

static wt_status add_half_band(wt__soxr_chain *c, double stop_db)
{
    const bool longer = stop_db > 136.51;
    const int n = longer ? 9 : 8, middle = 2 * n - 1;
    const double *odd = longer ? half_band_9 : half_band_8;
    wt__soxr_link *link = &c->links[c->n_links++];
    *link = (wt__soxr_link){.step = 2, .scale = 1, .down = 2, .centre = middle, .whole = true};
    wt_status status = take_taps(link, 2 * middle + 1);
    if (status) return status;
    link->taps[middle] = 0.5;
    for (int k = 0; k < n; k++) link->taps[middle - 2 * k - 1] = link->taps[middle + 2 * k + 1] = odd[k];
    return WT_OK;
}

// up : down by one filter; `b` in Nyquist frequencies of the rate at which it runs, `modulo`: its length beside 1.
static wt_status add_whole(wt__soxr_chain *c, int up, int down, const band *b, int modulo)
{
    wt__soxr_link *link = &c->links[c->n_links++];
    *link =
        (wt__soxr_link){.step = (double)down / up, .scale = up, .down = down, .whole = true, .shape = shape_of(b, 1)};
    link->shape.n_taps = (link->shape.n_taps + modulo - 2) / modulo * modulo + 1;
    link->shape.edge = 0.5, link->shape.gain = up;
    link->centre = (link->shape.n_taps - 1) / 2;
    wt_status status = take_taps(link, link->shape.n_taps);
    for (int k = 0; k < link->n_taps && !status; k++) link->taps[k] = sinc_at(&link->shape, k);
    return status;
}

// A filter of `per_frame` taps an input frame and n_frames in length; the tap before its first is 0.
static wt_status add_phases(wt__soxr_chain *c, double step, const band *b, int n_frames, int per_frame, int order)
{
    wt__soxr_link *link = &c->links[c->n_links++];
    *link = (wt__soxr_link){.step = step, .scale = per_frame, .order = order, .shape = shape_of(b, per_frame)};
    link->shape.n_taps = n_frames * per_frame - 1;
    link->shape.edge = 0.75, link->shape.gain = per_frame;
    link->centre = 0.5 * n_frames * per_frame;
    wt_status status = take_taps(link, n_frames * per_frame);
    for (int k = 1; k < link->n_taps && !status; k++) link->taps[k] = sinc_at(&link->shape, k - 1);
    return status;
}

// ---- which links

typedef struct layout {
    int n_halvings;
    int pre_up, pre_down;   // 0 down: the filter of phases goes down, this one only cuts
    int post_up, post_down; // behind the phases
    double step;            // of the filter of phases: n / d where d > 0, d exact phases
    int64_t n, d;
    bool up; // the phases follow a doubling, of a rate that rises
} layout;

static bool has_pre(const layout *a) { return a->pre_up * a->pre_down != 1; }
static bool has_phases(const layout *a) { return a->d != 1 || a->n != 1; }
static bool has_post(const layout *a) { return a->post_up * a->post_down != 1; }

// The step as a fraction, of MOST_PHASES at most, that is as near as 2^-32 frames can say; d = 0: none.
static void find_phases(layout *a)
{
    const double two32 = 4294967296.0, whole = floor(a->step), rest = a->step - whole;
    const double nearness = rest > 0 ? fabs(floor(rest * two32 + 0.5) / (rest * two32) - 1) : 0;
    a->n = (int64_t)whole, a->d = 1;
    if (rest == 0) return;
    for (int64_t d = 1; d <= MOST_PHASES; d++) {
        const double n = floor(rest * (double)d + 0.5);
        if (fabs(n / (rest * (double)d) - 1) > nearness) continue;
        a->n = d * (int64_t)whole + (int64_t)n, a->d = d;
        if (a->n == 4 * d) a->n_halvings++, a->n = 2, a->d = 1;
        a->step = (double)a->n / (double)a->d;
        return;
    }
    a->d = 0;
}

static void lay_out_once(double ratio, layout *a)
{
    a->step = ratio, a->n_halvings = 0;
    for (; a->step >= 4; a->step /= 2) a->n_halvings++;
    a->up = a->step < 1;
    const bool falls_late = a->step > 1.5 && a->step < 2; // the phases run at twice the output's rate
    a->pre_down = a->up || falls_late;
    a->pre_up = a->step < 2 && !falls_late ? 2 : 1;
    a->post_down = falls_late ? 2 : 1;
    a->step = a->step * a->pre_up / a->post_down;
    find_phases(a);
}

static layout lay_out(double ratio)
{
    layout a = {.post_up = 1};
    lay_out_once(ratio, &a);
    const double rise = a.pre_up / a.step;
    if (rise > 4 && rise != 5) { // most of it behind the phases
        for (a.post_up = 4; a.post_up < 256 && a.post_up * 8 <= rise; a.post_up *= 2) continue;
        lay_out_once(ratio * a.post_up, &a);
    }
    int64_t up = a.pre_up * a.d, down = a.n * a.post_down;
    const int64_t divisor = up % 2 || down % 2 ? 1 : 2;
    up /= divisor, down /= divisor;
    if (a.d && ((up < 5 && down < 5) || up * down < 6)) // small enough for one filter
        a.pre_up = (int)up, a.pre_down = (int)down, a.n = a.d = a.post_down = 1;
    return a;
}

// The filter of phases. Its taps grow with the phases; where they would outgrow soxr's room they are read between.
static wt_status add_phases_of(wt__soxr_chain *c, const layout *a, double pass, double stop, double stop_db)
{
    static const double bits[3][2] = {{12.4, 7.8}, {10.6, 6.75}, {11, 7}}; // of the phases that order 1, 2 want
    const bool late = a->post_down == 2 && !a->up;
    const double shrink = a->up ? 1 : a->step, nyquist = late ? 2 * shrink : 1;
    band b = {.stop = late ? 3 + fabs(stop - 1) : 2 - (pass + (stop - pass) * 0.7), .stop_db = stop_db};
    b.pass = (b.stop - (b.stop - pass) * wider) / nyquist, b.stop /= nyquist;
    for (int order = a->d ? 0 : 1;; order++) {
        const float wanted = order ? (float)bits[a->up ? 2 : late][order - 1] : 0;
        int n_phases = order ? 1 << (int)ceil(wanted - log2(shrink)) : (int)a->d;
        const int counted = n_phases > 19 ? n_phases : 19;
        const wt__soxr_shape s = shape_of(&b, counted);
        int n_frames = s.n_taps / counted + 1;
        if (!late && !a->up) n_frames += n_frames & 1;
        if (n_frames % 2 && !order && n_phases % 2) n_phases *= 2;
        if (order < 2 && (n_frames + 3) / 4 * 4 * n_phases * (order + 1) * 4 / 1000 > ROOM_BYTES / 1000) continue;
        if (order) c->n_phases = n_phases, c->order = order;
        return add_phases(c, order ? floor(a->step * 4294967296.0 + 0.5) / 4294967296.0 : a->step, &b, n_frames,
                          n_phases, order);
    }
}

static wt_status add_links(wt__soxr_chain *c, double ratio, const layout *a)
{
    const int n_whole = a->n_halvings + has_pre(a) + has_post(a);
    double stop_db = BITS * bit_db, pass = pass_end, stop = 1;
    if (n_whole + has_phases(a) > 1) stop_db += (has_phases(a) ? bit_db : 0) + 20 * log10(n_whole);
    wt_status status = WT_OK;
    for (int i = 0; i < a->n_halvings && !status; i++) status = add_half_band(c, stop_db);
    if (!status && has_pre(a)) {
        const double nyquist = a->pre_down ? fmax(a->pre_up, a->pre_down) : a->step;
        const int modulo = a->pre_up == 4 && nyquist == 4 ? 8 : 4;
        pass /= nyquist, stop /= nyquist;
        status = add_whole(c, a->pre_up, a->pre_down ? a->pre_down : 1, &(band){pass, stop, stop_db}, modulo);
    }
    if (!status && has_phases(a)) status = add_phases_of(c, a, pass, stop, (BITS + 1) * bit_db);
    if (!status && has_post(a)) {
        const double to = a->up ? a->post_down / (ratio * a->post_up) : 1;
        const int nyquist = a->post_up > a->post_down ? a->post_up : a->post_down;
        const band b = {pass_end / to / nyquist, (a->up ? fmax(2 - 1 / to, 1) : 1) / nyquist, stop_db};
        status = add_whole(c, a->post_up, a->post_down, &b, a->post_up > 1 ? 2 * a->post_up : 4);
    }
    return status;
}

// ---- the whole chain

// Time advances by the filter of phases' own step, and whole frames around it.
static void set_clock(wt__soxr_chain *c, const layout *a)
{
    const wt__soxr_link *last = &c->links[c->n_links - 1];
    int64_t n = llround(a->step * 4294967296.0), d = (int64_t)1 << 32;
    n <<= a->n_halvings;
    n *= a->post_down, d *= a->post_up * a->pre_up;
    const int64_t divisor = wt__common_divisor(n, d);
    c->numerator = n / divisor, c->denominator = d / divisor;
    if (!last->whole && c->order == 2 && c->n_phases * a->pre_up >= 1 << a->n_halvings) {
        c->n_phases = c->n_phases * a->pre_up >> a->n_halvings; // as coarse as its errors are seen
    } else {
        c->n_phases = (int)ceil(ROWS_PER_FRAME * fmin((double)c->denominator / (double)c->numerator, 1));
        c->order = 3;
    }
}

static void set_reach(wt__soxr_chain *c)
{
    double frames = 1, reach = 1;
    for (int i = 0; i < c->n_links; i++) {
        reach += frames * ceil((double)c->links[i].n_taps / 2 / c->links[i].scale + 1);
        frames *= c->links[i].step;
    }
    c->reach = (int)ceil(reach);
}

wt_status wt__soxr_chain_create(int in_hz, int out_hz, wt__soxr_chain *chain)
{
    const double ratio = (double)in_hz / out_hz;
    const layout a = lay_out(ratio);
    const int64_t divisor = wt__common_divisor(in_hz, out_hz);
    *chain = (wt__soxr_chain){.numerator = in_hz / divisor, .denominator = out_hz / divisor};
    wt_status status = add_links(chain, ratio, &a);
    if (status) return status;
    if (chain->order) set_clock(chain, &a);
    set_reach(chain);
    return WT_OK;
}

wt_status wt__soxr_doublings_create(int n, wt__soxr_chain *chain)
{
    *chain = (wt__soxr_chain){.numerator = 1, .denominator = (int64_t)1 << n};
    wt_status status = WT_OK;
    for (int i = 0; i < n && !status; i++)
        status = add_whole(chain, 2, 1, &(band){pass_end / 2, 0.5, BITS * bit_db}, 4);
    set_reach(chain);
    return status;
}

void wt__soxr_chain_destroy(wt__soxr_chain *chain)
{
    for (int i = 0; i < chain->n_links; i++) free(chain->links[i].taps);
    *chain = (wt__soxr_chain){0};
}

// ---- rows

wt_status wt__soxr_row_create(const wt__soxr_chain *chain, wt__soxr_row *row)
{
    double per_output = 1; // frames of the input at hand
    *row = (wt__soxr_row){.room = 2 * chain->reach + 4};
    for (int i = chain->n_links - 1; i >= 0; i--) { // a link may run at a higher rate than its neighbours
        const wt__soxr_link *link = &chain->links[i];
        per_output = per_output * fmax(link->step, 1) + (double)link->n_taps / link->scale + 4;
        if (per_output > row->room) row->room = (int)ceil(per_output);
    }
    row->weights = calloc((size_t)row->room, sizeof *row->weights);
    row->spare = calloc((size_t)row->room, sizeof *row->spare);
    if (row->weights && row->spare) return WT_OK;
    const wt_status status = wt_fail(WT_ERR_NO_MEMORY, "resample: row of %d taps", row->room);
    wt__soxr_row_destroy(row);
    return status;
}

void wt__soxr_row_destroy(wt__soxr_row *row)
{
    free(row->weights);
    free(row->spare);
    *row = (wt__soxr_row){0};
}

// Taps from the one of time 0 of output `at` on, and how far behind it the output lies.
static int64_t place(const wt__soxr_link *link, double at, double *behind)
{
    *behind = 0;
    if (link->whole) return (int64_t)at * link->down + (int64_t)link->centre;
    const double tap = at * link->step * link->scale + link->centre;
    const int64_t whole = link->order ? (int64_t)floor(tap + 1e-7) : llround(tap);
    *behind = tap - (double)whole;
    return whole;
}

static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

static double tap_at(const wt__soxr_link *link, int64_t k, double behind)
{
    const double *t = link->taps + k;
    if (link->order == 0) return fabs(behind) < 1e-6 ? t[0] : sinc_at(&link->shape, (double)(k - 1) + behind);
    if (link->order == 1) return t[0] + (t[1] - t[0]) * behind;
    return t[0] * (behind - 1) * (behind - 2) / 2 - t[1] * behind * (behind - 2) + t[2] * behind * (behind - 1) / 2;
}

// weights of a link's outputs to those of its inputs
static void go_back(const wt__soxr_link *link, double shift, wt__soxr_row *row)
{
    double behind;
    const int64_t last_tap = link->n_taps - 1;
    const int64_t low = floor_div(place(link, (double)row->first + shift, &behind) - last_tap, link->scale);
    const int64_t high = floor_div(place(link, (double)(row->first + row->n - 1) + shift, &behind), link->scale);
    memset(row->spare, 0, (size_t)(high - low + 1) * sizeof *row->spare);
    for (int k = 0; k < row->n; k++) {
        const int64_t at = place(link, (double)(row->first + k) + shift, &behind);
        int64_t i = floor_div(at, link->scale);
        for (int64_t tap = at - i * link->scale; tap <= last_tap; tap += link->scale, i--)
            row->spare[i - low] += row->weights[k] * (link->whole ? link->taps[tap] : tap_at(link, tap, behind));
    }
    double *const spare = row->weights;
    row->weights = row->spare, row->spare = spare;
    row->first = low, row->n = (int)(high - low + 1);
}

void wt__soxr_row_of(const wt__soxr_chain *chain, int64_t n, double shift, bool started, wt__soxr_row *row)
{
    row->first = n, row->n = 1, row->weights[0] = 1, row->cut = false;
    for (int i = chain->n_links - 1; i >= 0; i--) {
        const wt__soxr_link *link = &chain->links[i];
        // whole frames shift with the output, up to the filter of phases, which makes a phase of it
        go_back(link, link->whole ? 0 : shift, row);
        shift = link->whole ? shift * link->step : 0;
        if (!started || i == 0 || row->first >= 0) continue;
        row->cut = true;
        for (int k = 0; k < row->n && row->first + k < 0; k++) row->weights[k] = 0;
    }
}

wt_status wt__soxr_half(int n_halvings, int index, double *taps)
{
    wt__soxr_chain chain;
    wt_status status = wt__soxr_chain_create(1 << n_halvings, 1, &chain);
    const wt__soxr_link *link = &chain.links[index];
    const int reach = link->n_taps / 2;
    memset(taps, 0, (WT_SOXR_HALF + 1) * sizeof *taps);
    for (int k = 0; !status && k <= reach && k <= WT_SOXR_HALF; k++) taps[k] = link->taps[reach + k];
    wt__soxr_chain_destroy(&chain);
    return status;
}
