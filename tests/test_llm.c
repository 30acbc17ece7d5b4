// Language models against transformers: tests/golden/make_llm.py says what the golden folders hold. Weights are made
// here by its rule, in several types that hold the same numbers, and written as the hub writes them.
#include "../models/llm/llm_internal.h"
#include "support/audio_files.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/llm.h>

enum { PROMPT = 20, STEPS = 256, MAX_TENSORS = 64, MAX_VOCAB = 2048 };

static const char *const cases[] = {"gpt2",          "llama",      "llama_bias",   "llama_linear",
                                    "llama_dynamic", "llama_yarn", "llama_llama3", "mistral",
                                    "qwen2",         "qwen3",      "mixtral",      "qwen3_moe"};
enum { N_CASES = sizeof cases / sizeof *cases };

static const char *golden_path(const char *name, const char *file)
{
    static char path[1024];
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(path, sizeof path, "%s/llm/%s/%s", folder ? folder : "tests/golden", name, file);
    return path;
}

// ---- checkpoints by the rule of make_llm.py

typedef struct made_tensor {
    char name[96], shape[32];
    int rank;
    size_t count;
    wt_dtype dtype;
} made_tensor;

static int read_tensors(const char *name, wt_dtype matrices, made_tensor *tensors)
{
    FILE *file = fopen(golden_path(name, "tensors.tsv"), "r");
    int n = 0;
    assert_non_null(file);
    for (made_tensor *t = tensors; fscanf(file, "%95s %31s", t->name, t->shape) == 2; t = &tensors[++n]) {
        assert_true(n < MAX_TENSORS - 1);
        int rows = 1, columns = 1;
        t->rank = sscanf(t->shape, "%d,%d", &rows, &columns);
        t->count = (size_t)rows * (size_t)columns;
        t->dtype = t->rank == 2 ? matrices : WT_DTYPE_F32;
    }
    fclose(file);
    return n;
}

/// One number of 7 bits and a sign, exact in all types.
static void put_number(FILE *file, wt_dtype dtype, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t h = (uint16_t)(bits >> 16);
    if (dtype == WT_DTYPE_F32) {
        fwrite(&x, sizeof x, 1, file);
        return;
    }
    if (dtype == WT_DTYPE_F16) // the numbers are 0, or 2^-9 and more: no subnormals
        h = (uint16_t)((bits >> 16 & 0x8000) |
                       (x == 0 ? 0 : ((bits >> 13 & 0x3fc00) - (112u << 10) + (bits >> 13 & 0x3ff))));
    fwrite(&h, sizeof h, 1, file);
}

static float made_number(const made_tensor *t, uint64_t *seed)
{
    const float q = rintf(127 * noise(seed)) / 128;
    if (strstr(t->name, "embed_tokens") || strstr(t->name, "wte") || strstr(t->name, "wpe")) return q;
    const size_t length = strlen(t->name);
    return t->rank == 1 && length > 7 && !strcmp(t->name + length - 7, ".weight") ? 1 + q / 4 : q / 4;
}

/// The weights of a case with its matrices in that type, its config beside.
static const char *make_model(void **state, const char *name, wt_dtype matrices)
{
    static made_tensor tensors[MAX_TENSORS];
    static char header[16384];
    const int n = read_tensors(name, matrices, tensors);
    size_t length = 0, at = 0, size;
    header[length++] = '{';
    for (int k = 0; k < n; k++) {
        const size_t bytes = wt_dtype_bytes(tensors[k].dtype, (int64_t)tensors[k].count);
        length +=
            (size_t)snprintf(header + length, sizeof header - length,
                             "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", k ? "," : "",
                             tensors[k].name, wt_dtype_name(tensors[k].dtype), tensors[k].shape, at, at + bytes);
        at += bytes;
    }
    header[length++] = '}';
    while (length % 8) header[length++] = ' ';
    const char *path = test_path(state, "model.safetensors");
    unlink(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    const uint64_t head = length;
    fwrite(&head, sizeof head, 1, file);
    fwrite(header, 1, length, file);
    for (int k = 0; k < n; k++) {
        uint64_t seed = (uint64_t)k + 1;
        for (size_t j = 0; j < tensors[k].count; j++)
            put_number(file, tensors[k].dtype, made_number(&tensors[k], &seed));
    }
    assert_int_equal(fclose(file), 0);
    char *config = test_slurp(golden_path(name, "config.json"), &size);
    test_spill(test_path(state, "config.json"), config, size);
    free(config);
    return path;
}

// ---- sessions

typedef struct fixture {
    wt_device *device;
    wt_llm *llm;
    wt_llm_session *session;
    int vocab;
} fixture;

static fixture open_model(const char *path, int n_threads, int n_batch)
{
    fixture f = {0};
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = n_threads}, &f.device));
    assert_ok(wt_llm_open(path, &f.llm));
    assert_ok(wt_llm_session_create(
        f.llm, &(wt_llm_session_config){.device = f.device, .n_positions = 300, .n_batch = n_batch}, &f.session));
    f.vocab = wt_llm_config(f.llm)->vocab_size;
    return f;
}

static void close_model(fixture *f)
{
    wt_llm_session_destroy(f->session);
    wt_llm_close(f->llm);
    wt_device_close(f->device);
}

static int32_t largest(const float *x, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (x[k] > x[best]) best = k;
    return best;
}

/// Greedy tokens equal the golden ones, and the logits at the golden steps are within `bound` of the largest.
static double check_greedy(fixture *f, const char *name, double bound)
{
    static const int at[] = {0, 1, 15, 63, 127, 255};
    npy ids, golden;
    assert_ok(npy_read(golden_path(name, "ids.npy"), &ids));
    assert_ok(npy_read(golden_path(name, "logits.npy"), &golden));
    const int32_t *want = ids.data;
    const int n_prompt = (int)ids.count - STEPS;
    double worst = 0;
    int row = 0;
    assert_int_equal(golden.shape[1], f->vocab);
    assert_ok(wt_llm_prefill(f->session, want, n_prompt));
    for (int n = 0; n < STEPS; n++) {
        const float *logits = wt_llm_logits(f->session),
                    *g = (const float *)golden.data + (size_t)row * golden.shape[1];
        double peak = 0, error = 0;
        for (int k = 0; row < 6 && n == at[row] && k < f->vocab; k++) {
            peak = fmax(peak, fabs(g[k]));
            error = fmax(error, fabs(logits[k] - g[k]));
        }
        if (row < 6 && n == at[row]) {
            row++;
            worst = fmax(worst, error / peak);
            if (!(error <= bound * peak)) fail_msg("%s: step %d: logits differ by %.2g of %.3g", name, n, error, peak);
        }
        const int32_t id = largest(logits, f->vocab);
        if (id != want[n_prompt + n]) fail_msg("%s: step %d gives %d, want %d", name, n, id, want[n_prompt + n]);
        if (n < STEPS - 1) assert_ok(wt_llm_decode(f->session, id));
    }
    npy_free(&ids);
    npy_free(&golden);
    return worst;
}

static void families_equal_transformers(void **state)
{
    for (int k = 0; k < N_CASES; k++) {
        fixture f = open_model(make_model(state, cases[k], WT_DTYPE_F32), 2, 0);
        print_message("%-14s %.1e of the largest logit\n", cases[k], check_greedy(&f, cases[k], 1e-5));
        close_model(&f);
    }
}

static void half_types_of_the_same_weights_give_the_same_tokens(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_F16, WT_DTYPE_BF16};
    static const char *const some[] = {"gpt2", "qwen3", "mixtral"};
    for (int k = 0; k < 6; k++) {
        fixture f = open_model(make_model(state, some[k / 2], types[k % 2]), 1, 0);
        check_greedy(&f, some[k / 2], 1e-5);
        close_model(&f);
    }
}

static void a_trained_model_equals_transformers(void **state)
{
    (void)state;
    const char *path = shared_data("llm/TinyStories-656K/models/story");
    if (!path) skip();
    fixture f = open_model(path, 2, 0);
    print_message("tinystories    %.1e of the largest logit\n", check_greedy(&f, "tinystories", 1e-5));
    close_model(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(families_equal_transformers, test_folder_create, test_folder_remove),
        cmocka_unit_test_setup_teardown(half_types_of_the_same_weights_give_the_same_tokens, test_folder_create,
                                        test_folder_remove),
        cmocka_unit_test(a_trained_model_equals_transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
