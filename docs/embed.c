// What a program of your own does with libwarptone: a preset's chain on audio in short blocks, as an audio callback has
// them, then a transform of a whole signal on a stream of the GPU, or of the CPU where there is none.
//
//     cc docs/embed.c -Iengine/include -Idsp/include -Ihosts/include -Lbuild -lwarptone -Wl,-rpath,build -o embed
//     ./embed presets/voice-clean.yaml tests/data/jfk.flac clean.wav
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/mel.h>
#include <warptone/warptone.h>

enum { BLOCK_FRAMES = 64, N_MELS = 80 };

// in [channels][n_frames], out [channels out][n_frames]. In an audio callback the loop's body is all there is: no lock,
// no memory, no system call.
static wt_status play(wt_chain *chain, const wt_audio *in, float *out)
{
    const float *from[WT_AUDIO_MAX_CHANNELS];
    float *to[WT_AUDIO_MAX_CHANNELS];
    for (int64_t n = 0; n < in->n_frames; n += BLOCK_FRAMES) {
        const int64_t left = in->n_frames - n;
        for (int c = 0; c < in->channels; c++) from[c] = in->samples + c * in->n_frames + n;
        for (int c = 0; c < wt_chain_out_channels(chain); c++) to[c] = out + c * in->n_frames + n;
        wt_status status = wt_chain_process(chain, from, to, left < BLOCK_FRAMES ? (int)left : BLOCK_FRAMES);
        if (status) return status;
    }
    return WT_OK;
}

static wt_status save(const char *path, const float *samples, int channels, const wt_audio *like)
{
    wt_audio_writer *writer;
    const wt_audio_writer_config config = {.rate_hz = like->rate_hz, .channels = channels, .sample = WT_SAMPLE_F32};
    wt_status status = wt_audio_writer_open(path, &config, &writer);
    if (status) return status;
    status = wt_audio_writer_write(writer, samples, (int)like->n_frames, 0);
    if (!status) return wt_audio_writer_commit(writer);
    wt_audio_writer_discard(writer);
    return status;
}

static int row_of_most(const float *rows, int n_rows, int64_t n_columns)
{
    double most = -1;
    int found = 0;
    for (int k = 0; k < n_rows; k++) {
        double sum = 0;
        for (int64_t t = 0; t < n_columns; t++) sum += rows[k * n_columns + t];
        if (sum > most) {
            most = sum;
            found = k;
        }
    }
    return found;
}

// The mel band that holds most of a signal. Plans, buffers and streams are the same on a GPU and on the CPU; what is
// queued on a stream runs in order, and wt_stream_synchronize waits for it.
static wt_status find_loudest_band(const float *samples, int64_t n_samples, int rate_hz, int *loudest,
                                   char device_name[128])
{
    const wt_mel_config config = {.n_samples = n_samples, .bank = {.rate_hz = rate_hz, .n_mels = N_MELS}};
    const size_t pcm_bytes = (size_t)n_samples * sizeof(float);
    size_t mel_bytes = 0;
    wt_device *device = NULL;
    wt_stream *stream = NULL;
    wt_buffer *pcm = NULL, *bands = NULL;
    wt_mel *mel = NULL;
    float *power = NULL;

    wt_status status = wt_device_open(NULL, &device);
    if (!status) status = wt_stream_create(device, NULL, &stream);
    if (!status) status = wt_mel_create(device, &config, &mel);
    if (!status) mel_bytes = (size_t)(N_MELS * wt_mel_frames(mel)) * sizeof(float);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, pcm_bytes, &pcm);
    if (!status) status = wt_buffer_create(device, WT_MEMORY_DEVICE, mel_bytes, &bands);
    if (!status && !(power = malloc(mel_bytes))) status = WT_ERR_NO_MEMORY;

    if (!status) status = wt_stream_upload(stream, pcm, 0, samples, pcm_bytes);
    if (!status) status = wt_mel_enqueue(mel, stream, pcm, 0, bands, 0);
    if (!status) status = wt_stream_download(stream, power, bands, 0, mel_bytes);
    if (!status) status = wt_stream_synchronize(stream);
    if (!status) *loudest = row_of_most(power, N_MELS, wt_mel_frames(mel));
    if (!status) strcpy(device_name, wt_device_get_info(device)->name);

    free(power);
    wt_buffer_destroy(bands);
    wt_buffer_destroy(pcm);
    wt_mel_destroy(mel);
    wt_stream_destroy(stream);
    wt_device_close(device);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: embed PRESET IN OUT.wav\n");
        return 2;
    }
    wt_audio in = {0};
    wt_preset *preset = NULL;
    wt_chain *chain = NULL;
    float *out = NULL;
    int loudest = 0, channels = 0;
    char device_name[128] = "";

    wt_status status = wt_audio_load(argv[2], 0, &in);
    if (!status) status = wt_preset_load(argv[1], &preset);
    if (!status)
        status = wt_preset_build(preset, &(wt_chain_config){.rate_hz = in.rate_hz, .channels = in.channels}, &chain);
    if (!status) channels = wt_chain_out_channels(chain);
    if (!status && !(out = malloc((size_t)(channels * in.n_frames) * sizeof *out))) status = WT_ERR_NO_MEMORY;
    if (!status) status = play(chain, &in, out);
    if (!status) status = save(argv[3], out, channels, &in);
    if (!status) status = find_loudest_band(out, in.n_frames, in.rate_hz, &loudest, device_name);
    if (status)
        fprintf(stderr, "embed: %s: %s\n", wt_status_text(status), wt_last_error());
    else
        printf("%s: %d frames late; of %d mel bands %d is the loudest, says %s\n", argv[3],
               wt_chain_latency_frames(chain), N_MELS, loudest, device_name);

    free(out);
    wt_chain_destroy(chain);
    wt_preset_destroy(preset);
    wt_audio_free(&in);
    return status ? 1 : 0;
}
