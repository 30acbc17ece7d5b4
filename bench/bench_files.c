// End to end on a GPU: WAV files of 16 bits in the page cache to log-mel bands in host memory. Integers travel; threads
// read files into page-locked memory, each with a stream of its own, so that reading, copies both ways and kernels
// overlap. A thread reads a file ahead while the device fetches the one before: more files than that leave the
// processors' caches before they are fetched, smaller pieces cost more in waiting. Beside it the rate of copies to the
// device alone, and the same work from memory that is already page-locked.
//
//   bench_files [THREADS [PIECE_KB [PIECES]]]
//
//   files  from the page cache      300 h/s   47.6 GB/s of 55.0 to the device (0.87)
//
// (The figures above only show the form.)

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/audio_file.h>
#include <warptone/clock.h>
#include <warptone/mel.h>
#include <warptone/pcm.h>

enum {
    RATE_HZ = 22050,
    SECONDS = 60,
    SAMPLES = RATE_HZ * SECONDS,
    FILES = 256,
    AT_ONCE = 8,
    PASSES = 32,
    SLOTS = 2,
    MAX_PIECES = 8,
    MAX_THREADS = 64
};

static const size_t batch_bytes = sizeof(int16_t) * SAMPLES * AT_ONCE;

typedef struct slot {
    wt_buffer *read, *integers, *floats, *bands, *result; // page-locked, three on the device, page-locked
    wt_event *done;
} slot;

typedef struct piece {
    wt_buffer *read; // page-locked
    wt_event *fetched;
} piece;

typedef struct run {
    wt_device *device;
    size_t piece_bytes;
    int n_pieces; // being read or fetched, of a thread
    const char *folder;
    bool reads;
    atomic_int next;
} run;

typedef struct worker {
    run *run;
    pthread_t thread;
    wt_stream *stream;
    wt_pcm_plan *pcm;
    wt_mel *mel;
    slot slots[SLOTS];
    piece pieces[MAX_PIECES];
    int n_sent;
    size_t result_bytes;
    wt_status status;
} worker;

enum { NAME = 4096, FOLDER = NAME - 32 };

static void file_name(const char *folder, int k, char name[NAME])
{
    snprintf(name, NAME, "%.*s/%d.wav", FOLDER, folder, k);
}

// One file by the library, the others its bytes again.
static wt_status make_files(const char *folder)
{
    char name[NAME];
    wt_audio_writer *writer;
    float *x = malloc(sizeof *x * SAMPLES);
    if (!x) return wt_fail(WT_ERR_NO_MEMORY, "bench: samples");
    for (int i = 0; i < SAMPLES; i++) x[i] = (float)(i * 2654435761u >> 8) * 0x1p-24f - 0.5f;
    file_name(folder, 0, name);
    const wt_audio_writer_config config = {.rate_hz = RATE_HZ, .channels = 1, .sample = WT_SAMPLE_S16};
    wt_status status = wt_audio_writer_open(name, &config, &writer);
    if (!status) status = wt_audio_writer_write(writer, x, SAMPLES, 0);
    if (!status) status = wt_audio_writer_commit(writer);
    free(x);
    FILE *first = status ? NULL : fopen(name, "rb");
    char *bytes = malloc(2 * SAMPLES + 4096);
    const size_t n = first && bytes ? fread(bytes, 1, 2 * SAMPLES + 4096, first) : 0;
    if (first) fclose(first);
    for (int k = 1; k < FILES && n; k++) {
        file_name(folder, k, name);
        FILE *out = fopen(name, "wb");
        if (!out || fwrite(bytes, 1, n, out) != n) status = wt_fail(WT_ERR_FILE, "%s: cannot be written", name);
        if (out) fclose(out);
    }
    free(bytes);
    return status;
}

static void remove_files(const char *folder)
{
    char name[NAME];
    for (int k = 0; k < FILES; k++) file_name(folder, k, name), unlink(name);
    rmdir(folder);
}

// The samples of a WAV file, from where its data chunk begins, to the device a piece at a time.
static wt_status send_file(worker *w, const char *name, wt_buffer *to, size_t offset)
{
    char head[4096];
    const int fd = open(name, O_RDONLY);
    const ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    const char *data = n > 0 ? memmem(head, (size_t)n, "data", 4) : NULL;
    const size_t bytes = sizeof(int16_t) * SAMPLES;
    wt_status status = data ? WT_OK : wt_fail(WT_ERR_FILE, "%s: cannot be read", name);
    for (size_t at = 0; at < bytes && !status; at += w->run->piece_bytes) {
        const piece *p = &w->pieces[w->n_sent++ % w->run->n_pieces];
        const size_t size = bytes - at < w->run->piece_bytes ? bytes - at : w->run->piece_bytes;
        status = wt_event_synchronize(p->fetched);
        if (!status && pread(fd, wt_buffer_host(p->read), size, data - head + 8 + (off_t)at) != (ssize_t)size)
            status = wt_fail(WT_ERR_FILE, "%s: cannot be read", name);
        if (!status) status = wt_stream_upload(w->stream, to, offset + at, wt_buffer_host(p->read), size);
        if (!status) status = wt_event_record(p->fetched, w->stream);
    }
    if (fd >= 0) close(fd);
    return status;
}

static wt_status send_batch(worker *w, int batch, slot *s)
{
    char name[NAME];
    wt_status status = WT_OK;
    if (!w->run->reads) return wt_stream_upload(w->stream, s->integers, 0, wt_buffer_host(s->read), batch_bytes);
    for (int k = 0; k < AT_ONCE && !status; k++) {
        file_name(w->run->folder, (batch * AT_ONCE + k) % FILES, name);
        status = send_file(w, name, s->integers, sizeof(int16_t) * SAMPLES * (size_t)k);
    }
    return status;
}

static wt_status do_batch(worker *w, int batch, slot *s)
{
    wt_status status = wt_event_synchronize(s->done); // what was in this slot
    if (!status) status = send_batch(w, batch, s);
    if (!status) status = wt_pcm_plan_enqueue(w->pcm, w->stream, s->integers, 0, s->floats, 0);
    if (!status) status = wt_mel_enqueue(w->mel, w->stream, s->floats, 0, s->bands, 0);
    if (!status) status = wt_stream_download(w->stream, wt_buffer_host(s->result), s->bands, 0, w->result_bytes);
    return status ? status : wt_event_record(s->done, w->stream);
}

static void *work(void *user)
{
    worker *w = user;
    int k = 0;
    for (int batch; !w->status && (batch = atomic_fetch_add(&w->run->next, 1)) < PASSES * FILES / AT_ONCE; k++)
        w->status = do_batch(w, batch, &w->slots[k % SLOTS]);
    if (!w->status) w->status = wt_stream_synchronize(w->stream);
    if (w->status) fprintf(stderr, "bench_files: %s\n", wt_last_error());
    return NULL;
}

static wt_status prepare(worker *w)
{
    wt_device *d = w->run->device;
    const wt_mel_config mel = {
        .n_samples = SAMPLES, .n_signals = AT_ONCE, .bank = {.rate_hz = RATE_HZ}, .scale = WT_MEL_DB};
    const wt_pcm_plan_config pcm = {WT_PCM_S16, 1, SAMPLES, AT_ONCE, false};
    wt_status status = wt_stream_create(d, NULL, &w->stream);
    if (!status) status = wt_pcm_plan_create(d, &pcm, &w->pcm);
    if (!status) status = wt_mel_create(d, &mel, &w->mel);
    if (status) return status;
    w->result_bytes = sizeof(float) * AT_ONCE * (size_t)wt_mel_bands(w->mel) * (size_t)wt_mel_frames(w->mel);
    for (int k = 0; k < SLOTS && !status; k++) {
        slot *s = &w->slots[k];
        status = wt_buffer_create(d, WT_MEMORY_PINNED, batch_bytes, &s->read);
        if (!status) status = wt_buffer_create(d, WT_MEMORY_DEVICE, batch_bytes, &s->integers);
        if (!status) status = wt_buffer_create(d, WT_MEMORY_DEVICE, 2 * batch_bytes, &s->floats);
        if (!status) status = wt_buffer_create(d, WT_MEMORY_DEVICE, w->result_bytes, &s->bands);
        if (!status) status = wt_buffer_create(d, WT_MEMORY_PINNED, w->result_bytes, &s->result);
        if (!status) status = wt_event_create(d, &s->done);
        if (!status) status = wt_event_record(s->done, w->stream);
    }
    for (int k = 0; k < w->run->n_pieces && !status; k++) {
        piece *p = &w->pieces[k];
        status = wt_buffer_create(d, WT_MEMORY_PINNED, w->run->piece_bytes, &p->read);
        if (!status) status = wt_event_create(d, &p->fetched);
        if (!status) status = wt_event_record(p->fetched, w->stream);
    }
    return status;
}

static void release(worker *w)
{
    for (int k = 0; k < SLOTS; k++) {
        slot *s = &w->slots[k];
        wt_buffer_destroy(s->read), wt_buffer_destroy(s->integers), wt_buffer_destroy(s->floats);
        wt_buffer_destroy(s->bands), wt_buffer_destroy(s->result);
        wt_event_destroy(s->done);
    }
    for (int k = 0; k < MAX_PIECES; k++) wt_buffer_destroy(w->pieces[k].read), wt_event_destroy(w->pieces[k].fetched);
    wt_pcm_plan_destroy(w->pcm);
    wt_mel_destroy(w->mel);
    wt_stream_destroy(w->stream);
}

// Copies of a batch alone, bytes a second.
static wt_status copy_rate(worker *w, double *rate)
{
    enum { COPIES = 40 };
    double us = 0;
    wt_event *begin = NULL, *end = NULL;
    wt_status status = wt_event_create(w->run->device, &begin);
    if (!status) status = wt_event_create(w->run->device, &end);
    for (int k = 0; k <= COPIES && !status; k++) { // the first warms up
        const slot *s = &w->slots[k % SLOTS];
        if (k == 1) status = wt_event_record(begin, w->stream);
        if (!status) status = wt_stream_upload(w->stream, s->integers, 0, wt_buffer_host(s->read), batch_bytes);
    }
    if (!status) status = wt_event_record(end, w->stream);
    if (!status) status = wt_event_synchronize(end);
    if (!status) status = wt_event_elapsed_us(begin, end, &us);
    wt_event_destroy(begin), wt_event_destroy(end);
    *rate = COPIES * (double)batch_bytes / (us * 1e-6);
    return status;
}

static wt_status measure(run *r, worker *workers, int n, bool reads, double rate)
{
    int started = 0;
    wt_status status = WT_OK;
    r->reads = reads;
    atomic_store(&r->next, 0);
    const int64_t begin = wt_clock_now_ns(NULL);
    while (started < n && !pthread_create(&workers[started].thread, NULL, work, &workers[started])) started++;
    for (int k = 0; k < started; k++) {
        pthread_join(workers[k].thread, NULL);
        if (workers[k].status) status = workers[k].status;
    }
    const double seconds = (double)(wt_clock_now_ns(NULL) - begin) * 1e-9;
    const double bytes = (double)PASSES * FILES * SAMPLES * sizeof(int16_t) / seconds;
    if (!status && rate > 0)
        printf("files  %-22s %2d threads %8.1f h/s   %5.1f GB/s of %.1f to the device (%.2f)\n",
               reads ? "from the page cache" : "from page-locked memory", started,
               (double)PASSES * FILES * SECONDS / 3600 / seconds, bytes * 1e-9, rate * 1e-9, bytes / rate);
    return status;
}

static wt_status bench(wt_device *device, const char *folder, int n, size_t piece_bytes, int n_pieces)
{
    run r = {.device = device, .piece_bytes = piece_bytes, .n_pieces = n_pieces, .folder = folder};
    worker workers[MAX_THREADS] = {{.run = NULL}};
    double rate = 0;
    wt_status status = make_files(folder);
    for (int k = 0; k < n && !status; k++) {
        workers[k].run = &r;
        status = prepare(&workers[k]);
    }
    if (!status) status = copy_rate(&workers[0], &rate);
    if (!status) status = measure(&r, workers, n, true, 0); // warms up
    if (!status) status = measure(&r, workers, n, true, rate);
    if (!status) status = measure(&r, workers, n, false, rate);
    for (int k = 0; k < n; k++) release(&workers[k]);
    return status;
}

int main(int argc, char **argv)
{
    wt_device *device = NULL;
    char folder[FOLDER];
    const char *base = getenv("TMPDIR");
    const int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int n = argc > 1 ? atoi(argv[1]) : processors < 16 ? processors : 16;
    const int kb = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 4096; // more than a file
    int n_pieces = argc > 3 ? atoi(argv[3]) : 2;
    n_pieces = n_pieces < 1 ? 1 : n_pieces > MAX_PIECES ? MAX_PIECES : n_pieces;
    n = n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
    if (!wt_device_count() || wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CUDA}, &device)) {
        printf("files  skipped: no CUDA device\n");
        return 0;
    }
    snprintf(folder, sizeof folder, "%s/bench_files.XXXXXX", base ? base : "/tmp");
    wt_status status = mkdtemp(folder) ? bench(device, folder, n, (size_t)kb << 10, n_pieces)
                                       : wt_fail(WT_ERR_FILE, "%s: no folder", folder);
    if (status) fprintf(stderr, "bench_files: %s\n", wt_last_error());
    remove_files(folder);
    wt_device_close(device);
    return status != WT_OK;
}
