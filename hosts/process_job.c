#include "process.h"
#include "interrupt.h"

#include <warptone/clock.h>
#include <warptone/names.h>

#include <stdio.h>
#include <string.h>

wt_status process_job_open(process_job *job, const process_options *options, process_item *item)
{
    *job = (process_job){.options = options, .item = item, .begin_ns = wt_clock_now_ns(NULL)};
    wt_audio_reader_config config = {.rate_hz = options->rate_hz};
    if (strcmp(item->input, "-") == 0) config = options->raw;
    wt_status status = wt_audio_reader_open(item->input, &config, &job->reader);
    if (status) return status;
    wt_audio_info info = wt_audio_reader_get_info(job->reader);
    item->rate_hz = job->rate_hz = info.rate_hz;
    item->channels = job->channels = info.channels;
    return WT_OK;
}

wt_status process_job_start(process_job *job, const wt_chain *chain)
{
    const process_options *o = job->options;
    job->latency = wt_chain_latency_frames(chain);
    job->tail = o->keep_tail ? wt_chain_tail_frames(chain) - job->latency : 0;
    job->item->latency_frames = (int)job->latency;
    job->item->out_channels = job->out_channels = wt_chain_out_channels(chain);
    wt_audio_writer_config config = {.source = job->reader,
                                     .rate_hz = job->rate_hz,
                                     .channels = job->out_channels,
                                     .format = o->format,
                                     .sample = o->sample,
                                     .no_dither = o->no_dither};
    wt_status status = wt_audio_writer_open(job->item->output, &config, &job->writer);
    if (status || o->no_loudness || job->rate_hz < 4000) return status;
    status =
        wt_loudness_create(&(wt_loudness_config){.rate_hz = job->rate_hz, .channels = job->channels}, &job->before);
    if (status) return status;
    return wt_loudness_create(&(wt_loudness_config){.rate_hz = job->rate_hz, .channels = job->out_channels},
                              &job->after);
}

static void meter(wt_loudness *loudness, const float *audio, int channels, int n_frames, size_t stride)
{
    const float *rows[WT_AUDIO_MAX_CHANNELS];
    if (!loudness) return;
    for (int c = 0; c < channels; c++) rows[c] = audio + (size_t)c * stride;
    wt_loudness_process(loudness, rows, n_frames);
}

wt_status process_job_fill(process_job *job, float *in, int n_frames, size_t stride, int *n_given)
{
    int n_read = 0;
    *n_given = 0;
    if (wt_interrupted()) return wt_fail(WT_ERR_CANCELLED, "%s: interrupted", job->item->input);
    if (!job->ended) {
        wt_status status = wt_audio_reader_read(job->reader, in, n_frames, stride, &n_read);
        if (status) return status;
        job->n_in += n_read;
        job->ended = n_read < n_frames;
        meter(job->before, in, job->channels, n_read, stride);
    } else {
        for (int c = 0; c < job->channels; c++) memset(in + (size_t)c * stride, 0, sizeof *in * (size_t)n_frames);
    }
    int64_t left = job->ended ? job->n_in + job->latency + job->tail - job->n_fed : n_frames;
    *n_given = left < n_frames ? (int)left : n_frames;
    job->n_fed += *n_given;
    return WT_OK;
}

wt_status process_job_drain(process_job *job, float *out, int n_frames, size_t stride)
{
    int64_t skip = job->latency - job->n_seen;
    int first = skip <= 0 ? 0 : skip < n_frames ? (int)skip : n_frames;
    job->n_seen += n_frames;
    if (first == n_frames) return WT_OK;
    meter(job->after, out + first, job->out_channels, n_frames - first, stride);
    job->n_written += n_frames - first;
    return wt_audio_writer_write(job->writer, out + first, n_frames - first, stride);
}

void process_note_error(process_item *item, wt_status status)
{
    const char *sentence = wt_last_error();
    char input[sizeof item->message / 2], output[sizeof item->message / 2]; // as the sentence shows them
    wt_show_text(item->input, input, sizeof input);
    const bool named = strstr(sentence, input) || strstr(sentence, wt_show_text(item->output, output, sizeof output));
    item->status = status;
    snprintf(item->message, sizeof item->message, "%s%s%s", named ? "" : input, named ? "" : ": ", sentence);
}

void process_note_input(process_item *item, const wt_audio_info *info)
{
    item->n_repaired = info->n_repaired_samples;
    item->n_left = info->truncated ? info->file_frames : 0;
}

void process_note_warnings(process_item *item, bool named, const char *fate)
{
    char left[96] = "", repaired[96] = "", input[sizeof item->message / 2];
    const char *const all[] = {left, repaired, item->note};
    const size_t room = sizeof item->message;
    size_t n = 0;
    if (item->n_left)
        snprintf(left, sizeof left, "the input is truncated: %lld frames are there", (long long)item->n_left);
    if (item->n_repaired)
        snprintf(repaired, sizeof repaired, "%lld samples were not finite and %s 0", (long long)item->n_repaired, fate);
    for (int k = 0; k < 3; k++) {
        const char *before = n ? "; " : named ? ": " : "";
        if (*all[k] && n < room)
            n += (size_t)snprintf(item->message + n, room - n, "%s%s%s",
                                  named && !n ? wt_show_text(item->input, input, sizeof input) : "", before, all[k]);
    }
}

void process_job_close(process_job *job, process_run *run, wt_status status)
{
    process_item *item = job->item;
    if (!status && job->writer) {
        wt_audio_info written = wt_audio_writer_get_info(job->writer);
        item->n_clipped = written.n_clipped_samples;
        status = wt_audio_writer_commit(job->writer);
    } else {
        char reason[sizeof item->message];
        snprintf(reason, sizeof reason, "%s", wt_last_error()); // discarding may say something of its own
        wt_audio_writer_discard(job->writer);
        wt_fail(status, "%s", reason);
    }
    if (status) process_note_error(item, status);
    if (job->reader) {
        wt_audio_info info = wt_audio_reader_get_info(job->reader);
        process_note_input(item, &info);
        if (!status) process_note_warnings(item, false, "became");
    }
    if (job->before) wt_loudness_query(job->before, &item->before);
    if (job->after) wt_loudness_query(job->after, &item->after);
    item->n_frames_out = job->n_written;
    item->audio_s = job->rate_hz ? (double)job->n_in / job->rate_hz : 0;
    item->wall_s = (double)(wt_clock_now_ns(NULL) - job->begin_ns) * 1e-9;
    wt_loudness_destroy(job->before), wt_loudness_destroy(job->after);
    wt_audio_reader_close(job->reader);
    item->finished = true;
    atomic_fetch_add(&run->n_done, 1);
}

static wt_status apply_changes(const process_options *options, wt_chain *chain)
{
    for (int k = 0; k < options->n_changes; k++) {
        int node, param;
        wt_status status = wt_chain_find(chain, options->changes[k].node, options->changes[k].param, &node, &param);
        if (status) return status;
        const wt_param_info *info = wt_node_type_param(wt_chain_node_type(chain, node), param);
        float value = options->changes[k].value;
        if (!(value >= info->min && value <= info->max))
            return wt_fail(WT_ERR_BAD_ARG, "--set %s.%s is %g, want %g..%g", options->changes[k].node, info->name,
                           (double)value, (double)info->min, (double)info->max);
        status = wt_chain_set(chain, node, param, value);
        if (status) return status;
    }
    return WT_OK;
}

wt_status process_build_chain(const process_options *options, int rate_hz, int channels, int n_instances, int stagger,
                              wt_chain **chain)
{
    const wt_chain_config config = {.rate_hz = rate_hz,
                                    .channels = channels,
                                    .device = options->device,
                                    .n_instances = n_instances,
                                    .stagger = stagger};
    wt_status status = wt_preset_build(options->preset, &config, chain);
    if (status) return status;
    status = apply_changes(options, *chain);
    if (!status) return WT_OK;
    wt_chain_destroy(*chain);
    *chain = NULL;
    return status;
}
