// Sizes: what a configuration asks for, what is refused, who gets which units. Knows no backend.
#include "partition_internal.h"

#include <math.h>
#include <string.h>

static wt_status check_partition(const wt_partition_config *p, const wt_device_info *info)
{
    const char *name = p->name;
    if ((unsigned)p->tier >= WT_N_TIERS || (unsigned)p->band > WT_BAND_HIGH)
        return wt_fail(WT_ERR_BAD_ARG, "layout: partition %s has tier %d, band %d; want 0..%d, 0..%d", name,
                       (int)p->tier, (int)p->band, WT_N_TIERS - 1, WT_BAND_HIGH);
    if (p->n_sms < 0 || !(p->sm_share >= 0 && p->sm_share <= 1) || (p->n_sms && p->sm_share > 0))
        return wt_fail(WT_ERR_BAD_ARG, "layout: partition %s wants %d SMs, share %g; want 0 or more, or a share 0..1",
                       name, p->n_sms, p->sm_share);
    if (!(p->bandwidth_share >= 0 && p->bandwidth_share <= 1))
        return wt_fail(WT_ERR_BAD_ARG, "layout: partition %s wants a bandwidth share of %g, want 0..1", name,
                       p->bandwidth_share);
    if (p->max_streams < 0 || p->max_pending_kernels < 0 || p->max_pending_transfers < 0)
        return wt_fail(WT_ERR_BAD_ARG, "layout: partition %s: %d streams, %d kernels, %d transfers; want 0 or more",
                       name, p->max_streams, p->max_pending_kernels, p->max_pending_transfers);
    if (p->lends && p->tier == WT_TIER_BEST_EFFORT)
        return wt_fail(WT_ERR_BAD_ARG, "layout: partition %s lends, but is best-effort; it has nothing reserved", name);
    if (p->borrows && p->tier != WT_TIER_BEST_EFFORT)
        return wt_fail(WT_ERR_BAD_ARG, "layout: partition %s borrows, but is not best-effort", name);
    if (p->memory_quota_bytes > info->memory_bytes)
        return wt_fail(WT_ERR_QUOTA, "layout: partition %s wants %zu bytes of memory, %s has %zu", name,
                       p->memory_quota_bytes, info->name, info->memory_bytes);
    return WT_OK;
}

static wt_status check_names(const wt_layout_config *config)
{
    for (int k = 0; k < config->n_partitions; k++) {
        const char *name = config->partitions[k].name;
        size_t length = name ? strlen(name) : 0;
        if (length < 1 || length >= WT_PARTITION_NAME_BYTES)
            return wt_fail(WT_ERR_BAD_ARG, "layout: partition %d has a name of %zu characters, want 1..%d", k, length,
                           WT_PARTITION_NAME_BYTES - 1);
        for (int other = 0; other < k; other++)
            if (!strcmp(name, config->partitions[other].name))
                return wt_fail(WT_ERR_BAD_ARG, "layout: two partitions are called %s", name);
    }
    return WT_OK;
}

static wt_status check_sums(const wt_layout_config *config, const wt_device_info *info)
{
    int n_lenders = 0, n_borrowers = 0;
    size_t memory_left_bytes = info->memory_bytes;
    double bandwidth = 0;
    for (int k = 0; k < config->n_partitions; k++) {
        const wt_partition_config *p = &config->partitions[k];
        n_lenders += p->lends;
        n_borrowers += p->borrows;
        bandwidth += p->bandwidth_share;
        if (config->overcommit) continue;
        if (p->memory_quota_bytes > memory_left_bytes)
            return wt_fail(WT_ERR_QUOTA, "layout: partition %s wants %zu bytes of memory, %zu are left of %zu", p->name,
                           p->memory_quota_bytes, memory_left_bytes, info->memory_bytes);
        memory_left_bytes -= p->memory_quota_bytes;
        if (bandwidth > 1 + 1e-9)
            return wt_fail(WT_ERR_QUOTA, "layout: with partition %s the bandwidth shares add up to %g, want at most 1",
                           p->name, bandwidth);
    }
    if (n_lenders > WT_LAYOUT_MAX_LENDERS || n_borrowers > 1)
        return wt_fail(WT_ERR_BAD_ARG, "layout: %d partitions lend and %d borrow, want at most %d and 1", n_lenders,
                       n_borrowers, WT_LAYOUT_MAX_LENDERS);
    return WT_OK;
}

wt_status wt__layout_check(const wt_layout_config *config, const wt_device_info *info)
{
    if (!config->partitions || config->n_partitions < 1 || config->n_partitions > WT_LAYOUT_MAX_PARTITIONS)
        return wt_fail(WT_ERR_BAD_ARG, "layout: %d partitions, want 1..%d", config->n_partitions,
                       WT_LAYOUT_MAX_PARTITIONS);
    if ((unsigned)config->isolation > WT_ISOLATION_NONE)
        return wt_fail(WT_ERR_BAD_ARG, "layout: isolation %d, want auto, SMs, priority or none",
                       (int)config->isolation);
    wt_status status = check_names(config);
    for (int k = 0; k < config->n_partitions && !status; k++) status = check_partition(&config->partitions[k], info);
    return status ? status : check_sums(config, info);
}

// ---- dealing out

typedef struct dealer {
    const wt__units *units;
    bool overcommit, rest_taken;
    bool taken[WT_MAX_UNITS];
    int n_left, next;
    double asked; // of the device, by all so far
} dealer;

static int total_sms(const wt__units *u)
{
    return u->n_units * u->unit_sms + u->rest_sms;
}

static bool asks(const wt_partition_config *p)
{
    return p->n_sms > 0 || p->sm_share > 0;
}

/// Neighbouring units; after the last one, over-committed ones begin again at the first.
static void deal(dealer *d, int n_units, bool rest, wt__unit_set *set)
{
    for (int k = 0; k < n_units; k++) {
        int unit = d->next++ % d->units->n_units;
        set->has[unit] = true;
        if (!d->taken[unit]) d->n_left--;
        d->taken[unit] = true;
    }
    if (rest) set->rest = d->rest_taken = true;
}

static wt_status deal_asked(dealer *d, const wt_partition_config *p, wt__unit_set *set)
{
    const wt__units *u = d->units;
    int wanted = p->n_sms ? p->n_sms : (int)ceil(p->sm_share * total_sms(u) - 1e-9);
    if (wanted < 1) wanted = 1;
    int n_units = wanted / u->unit_sms + (wanted % u->unit_sms > 0);
    bool rest = !d->rest_taken && n_units > d->n_left && wanted <= d->n_left * u->unit_sms + u->rest_sms;
    if (rest) n_units = d->n_left;
    d->asked += p->n_sms ? (double)p->n_sms / total_sms(u) : p->sm_share;
    if (n_units > d->n_left && p->sm_share > 0 && d->n_left > 0 && d->asked <= 1 + 1e-9) { // lost by rounding others up
        n_units = d->n_left;
        rest = !d->rest_taken;
    }
    if (n_units > d->n_left && !(d->overcommit && n_units <= u->n_units)) {
        int left = d->n_left * u->unit_sms + (d->rest_taken ? 0 : u->rest_sms);
        return wt_fail(WT_ERR_QUOTA, "layout: partition %s wants %d SMs (in units of %d), %d of %d are left", p->name,
                       wanted, u->unit_sms, left, total_sms(u));
    }
    deal(d, n_units, rest, set);
    return WT_OK;
}

wt_status wt__layout_plan(const wt_layout_config *config, const wt_device_info *info, const wt__units *units,
                          wt__plan *plan)
{
    memset(plan, 0, sizeof *plan);
    dealer d = {.units = units, .overcommit = config->overcommit, .n_left = units->n_units};
    d.rest_taken = units->rest_sms == 0;
    int n_others = 0;
    for (int k = 0; k < config->n_partitions; k++) {
        const wt_partition_config *p = &config->partitions[k];
        wt_status status = asks(p) ? deal_asked(&d, p, &plan->sets[k]) : WT_OK;
        if (status) return status;
        n_others += !asks(p);
    }
    for (int k = 0; k < config->n_partitions; k++) { // what is left, evenly; the last one gets the odd SMs
        if (asks(&config->partitions[k])) continue;
        int n_units = d.n_left / n_others;
        bool rest = n_others == 1 && !d.rest_taken;
        if (!n_units && !rest)
            return wt_fail(WT_ERR_QUOTA, "layout: nothing is left for partition %s of the %d SMs of %s",
                           config->partitions[k].name, total_sms(units), info->name);
        deal(&d, n_units, rest, &plan->sets[k]);
        n_others--;
    }
    plan->unassigned_sms = d.n_left * units->unit_sms + (d.rest_taken ? 0 : units->rest_sms);
    return WT_OK;
}

wt_status wt__layout_share(const wt_layout_config *config, const wt__units *units)
{
    double asked = 0;
    for (int k = 0; k < config->n_partitions; k++) {
        const wt_partition_config *p = &config->partitions[k];
        const double share = p->n_sms ? (double)p->n_sms / total_sms(units) : p->sm_share;
        asked += share;
        if (share > 1 || (asked > 1 + 1e-9 && !config->overcommit))
            return wt_fail(WT_ERR_QUOTA, "layout: with partition %s the shares of %d SMs add up to %g, want at most 1",
                           p->name, total_sms(units), asked);
    }
    return WT_OK;
}

// ---- presets

/// `of_132` SMs of a GPU of 132, scaled and rounded down to the granularity, at least one unit.
static int scaled_sms(const wt_device_info *info, int of_132)
{
    int align = info->partition_align_sms > 0 ? info->partition_align_sms : 1;
    int least = info->partition_sms > 0 ? info->partition_sms : 1;
    int n = (int)((double)info->n_sms * of_132 / 132 + 1e-9) / align * align;
    return n > least ? n : least;
}

wt_status wt_layout_preset(const char *name, const wt_device_info *info,
                           wt_partition_config partitions[WT_LAYOUT_PRESET_PARTITIONS], wt_layout_config *config)
{
    *config = (wt_layout_config){.partitions = partitions};
    const bool speech = !strcmp(name, "audio+speech+llm"), audio = speech || !strcmp(name, "audio+llm");
    if (!audio && strcmp(name, "all"))
        return wt_fail(WT_ERR_NOT_FOUND, "layout: no preset \"%s\", want audio+speech+llm, audio+llm or all", name);
    // an 8-SM chain is no smaller on a smaller GPU, down to 64; on the CPU, as below that, it has the same part
    const int audio_sms = info->backend == WT_BACKEND_CPU || info->n_sms < 64 ? scaled_sms(info, 8) : 8;
    const int speech_sms = scaled_sms(info, 56);
    const int used_sms = (audio ? audio_sms : 0) + (speech ? speech_sms : 0);
    if (used_sms >= info->n_sms)
        return wt_fail(WT_ERR_QUOTA, "layout: preset %s wants more than %d SMs, %s has %d", name, used_sms, info->name,
                       info->n_sms);
    int n = 0;
    if (audio)
        partitions[n++] = (wt_partition_config){.name = "audio",
                                                .tier = WT_TIER_GUARANTEED,
                                                .n_sms = audio_sms,
                                                .memory_quota_bytes = info->memory_bytes / 64};
    if (speech)
        partitions[n++] = (wt_partition_config){.name = "speech",
                                                .tier = WT_TIER_GUARANTEED,
                                                .n_sms = speech_sms,
                                                .memory_quota_bytes = info->memory_bytes / 8,
                                                .lends = true};
    partitions[n++] = (wt_partition_config){.name = audio ? "llm" : "all", .borrows = speech};
    config->n_partitions = n;
    return WT_OK;
}
