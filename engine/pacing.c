#include <warptone/pacing.h>

#include <math.h>

static wt_status check_share(double share)
{
    if (!(share > 0 && share <= 1)) return wt_fail(WT_ERR_BAD_ARG, "pacer: share %g, want above 0, at most 1", share);
    return WT_OK;
}

static double tokens_at(const wt_pacer *pacer, int64_t now_ns)
{
    double elapsed_ns = now_ns > pacer->filled_ns ? (double)(now_ns - pacer->filled_ns) : 0;
    return fmin(pacer->burst_ns, pacer->tokens_ns + elapsed_ns * pacer->share);
}

static void fill(wt_pacer *pacer, int64_t now_ns)
{
    pacer->tokens_ns = tokens_at(pacer, now_ns);
    if (now_ns > pacer->filled_ns) pacer->filled_ns = now_ns;
}

wt_status wt_pacer_init(wt_pacer *pacer, const wt_pacer_config *config, int64_t now_ns)
{
    wt_status status = check_share(config->share);
    if (status) return status;
    if (!(config->burst_us >= 0 && config->burst_us <= 1e9))
        return wt_fail(WT_ERR_BAD_ARG, "pacer: burst %g us, want 0..1e9", config->burst_us);
    double burst_ns = config->burst_us > 0 ? config->burst_us * 1e3 : 1e6;
    *pacer = (wt_pacer){.share = config->share, .burst_ns = burst_ns, .tokens_ns = burst_ns, .filled_ns = now_ns};
    return WT_OK;
}

wt_status wt_pacer_set_share(wt_pacer *pacer, double share, int64_t now_ns)
{
    wt_status status = check_share(share);
    if (status) return status;
    fill(pacer, now_ns);
    pacer->share = share;
    return WT_OK;
}

WT_RT int64_t wt_pacer_ready_at(const wt_pacer *pacer, int64_t now_ns)
{
    double tokens_ns = tokens_at(pacer, now_ns);
    if (tokens_ns >= 0) return now_ns;
    return now_ns + (int64_t)ceil(-tokens_ns / pacer->share);
}

WT_RT void wt_pacer_charge(wt_pacer *pacer, int64_t now_ns, double measured_us)
{
    double measured_ns = isfinite(measured_us) && measured_us > 0 ? measured_us * 1e3 : 0;
    // A full bucket overflows while nothing runs, not while the work itself does: else a large share is never reached.
    double idle_ns = (double)now_ns - measured_ns;
    if (idle_ns > (double)pacer->filled_ns) fill(pacer, (int64_t)idle_ns);
    double elapsed_ns = now_ns > pacer->filled_ns ? (double)(now_ns - pacer->filled_ns) : 0;
    pacer->tokens_ns = fmin(pacer->burst_ns, pacer->tokens_ns + elapsed_ns * pacer->share - measured_ns);
    if (now_ns > pacer->filled_ns) pacer->filled_ns = now_ns;
}
