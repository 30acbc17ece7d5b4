// The program as a whole: first start and batches.
//
//   bench_process [n_files] [preset]      1000 files of 6 s stereo at 44.1 kHz, 16 bit, in a folder of its own
//
//   start  cuda cold cache   1234 ms    `process` on one short file with an empty kernel cache, start to exit
//   batch  cuda  1000 files  ... s of audio in ... s, ... x real time
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/audio_file.h>
#include <warptone/clock.h>
#include <warptone/device.h>

static char folder[] = "/tmp/warptone-bench-XXXXXX", program[4096];

static double run_s(const char *environment, const char *arguments)
{
    char command[20000];
    snprintf(command, sizeof command, "%s '%s' process -q %s", environment, program, arguments);
    int64_t begin = wt_clock_now_ns(NULL);
    if (system(command)) {
        fprintf(stderr, "bench_process: failed: %s\n", command);
        exit(1);
    }
    return (double)(wt_clock_now_ns(NULL) - begin) * 1e-9;
}

static void start_row(const char *backend, const char *cache, const char *preset)
{
    char environment[4600], arguments[4600];
    double best = 1e9;
    // NVRTC 13 keeps a cache of its own, through the driver's: off, or the cold row would be warm
    snprintf(environment, sizeof environment, "CUDA_CACHE_DISABLE=1 WARPTONE_CACHE=%s/cache", folder);
    snprintf(arguments, sizeof arguments, "-p %s --backend %s %s/short.wav %s/short-out.wav", preset, backend, folder,
             folder);
    for (int k = 0; k < (strcmp(cache, "cold") ? 5 : 1); k++) {
        double s = run_s(environment, arguments);
        if (s < best) best = s;
    }
    printf("start  %-4s %s cache   %.0f ms, start to exit\n", backend, cache, best * 1e3);
}

static wt_status write_noise(const char *path, int n_frames, uint64_t seed)
{
    float *x = malloc(sizeof *x * 2 * (size_t)n_frames);
    wt_audio_writer *writer;
    for (int n = 0; x && n < 2 * n_frames; n++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u; // Knuth, MMIX
        x[n] = 0.3f * (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    wt_status status = wt_audio_writer_open(path, &(wt_audio_writer_config){.rate_hz = 44100, .channels = 2,
                                                                            .sample = WT_SAMPLE_S16}, &writer);
    if (!status && !(status = wt_audio_writer_write(writer, x, n_frames, 0))) status = wt_audio_writer_commit(writer);
    free(x);
    return status;
}

static void batch_row(const char *backend, const char *preset, int n_files, double audio_s, const char *more)
{
    char arguments[9000], out[4200];
    double best = 1e9;
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(arguments, sizeof arguments, "-p %s --backend %s %s %s/in %s", preset, backend, more, folder, out);
    for (int k = 0; k < 2; k++) { // the second finds kernels and inputs in their caches; outputs are new each time,
        char command[4300];       // as renaming over an old file waits for the file system to write
        snprintf(command, sizeof command, "rm -rf %s", out);
        double s = system(command) ? 0 : run_s("", arguments);
        if (s < best) best = s;
    }
    printf("batch  %-4s %-18s %d files   %.0f s of audio in %.2f s, %.0f x real time %s\n", backend, preset, n_files,
           audio_s, best, audio_s / best, more);
}

int main(int argc, char **argv)
{
    enum { FRAMES = 6 * 44100 };
    int n_files = argc > 1 ? atoi(argv[1]) : 1000;
    const char *preset = argc > 2 ? argv[2] : "voice-clean";
    char path[8300], command[4200];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 32);
    if (length > 0) program[length] = 0;
    strcpy(strrchr(program, '/'), "/../warptone");
    if (!mkdtemp(folder)) return 1;
    snprintf(command, sizeof command, "mkdir %s/in", folder);
    wt_status status = system(command) ? wt_fail(WT_ERR_FILE, "%s cannot be made", folder) : WT_OK;
    snprintf(path, sizeof path, "%s/short.wav", folder);
    if (!status) status = write_noise(path, 4410, 1);
    for (int k = 0; k < n_files && !status; k++) {
        snprintf(path, sizeof path, "%s/in/%d.wav", folder, k);
        status = write_noise(path, FRAMES, (uint64_t)k);
    }
    if (status) fprintf(stderr, "bench_process: %s\n", wt_last_error());
    bool gpu = !status && wt_device_count() > 0;
    if (!status) start_row("cpu", "any", preset);
    if (gpu) start_row("cuda", "cold", preset), start_row("cuda", "warm", preset);
    if (!status) batch_row("cpu", preset, n_files, n_files * 6.0, "--no-loudness");
    if (gpu) batch_row("cuda", preset, n_files, n_files * 6.0, "--no-loudness");
    if (!status) batch_row("cpu", preset, n_files, n_files * 6.0, "");
    if (gpu) batch_row("cuda", preset, n_files, n_files * 6.0, "");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) || status;
}
