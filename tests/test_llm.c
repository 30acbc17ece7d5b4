// Language models against transformers: tests/golden/make_llm.py says what the golden folders hold. Weights are made
// here by its rule, in several types that hold the same numbers, and written as the hub writes them.
#include "support/audio_files.h"
#include "support/device_check.h"
#include "support/npy.h"
#include "support/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/llama2c.h>
#include <warptone/llm.h>

enum { PROMPT = 20, STEPS = 256, MAX_TENSORS = 64, MAX_VOCAB = 2048 };

static const char *const cases[] = {"gpt2",       "llama",         "llama_bias", "llama_linear",   "llama_dynamic",
                                    "llama_yarn", "llama_llama3",  "mistral",    "qwen2",          "qwen2_windows",
                                    "qwen3",      "qwen3_windows", "mixtral",    "mixtral_window", "qwen3_moe"};
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

static void skip_without_device(void)
{
    if (group_backend == WT_BACKEND_CPU || wt_device_count()) return;
    print_message("skipped: %s\n", wt_last_error());
    skip();
}

typedef struct fixture {
    wt_device *device;
    wt_llm *llm;
    wt_llm_session *session;
    int vocab;
} fixture;

static fixture open_model_as(const char *path, int n_threads, wt_llm_session_config config)
{
    fixture f = {0};
    skip_without_device();
    assert_ok(wt_device_open(&(wt_device_config){.backend = group_backend, .n_threads = n_threads}, &f.device));
    assert_ok(wt_llm_open(path, &f.llm));
    config.device = f.device;
    config.n_positions = 300;
    assert_ok(wt_llm_session_create(f.llm, &config, &f.session));
    f.vocab = wt_llm_config(f.llm)->vocab_size;
    return f;
}

static fixture open_model(const char *path, int n_threads, int n_batch)
{
    return open_model_as(path, n_threads, (wt_llm_session_config){.n_batch = n_batch});
}

static void close_model(fixture *f)
{
    wt_llm_session_destroy(f->session);
    wt_llm_close(f->llm);
    wt_device_close(f->device);
}

/// To the bit on the CPU. A GPU divides attention by the tokens of a batch, so its sums are in another order.
static void assert_same_logits(const float *got, const float *want, int n)
{
    float peak = 0;
    if (group_backend == WT_BACKEND_CPU) assert_memory_equal(got, want, sizeof *want * (size_t)n);
    for (int k = 0; k < n; k++) peak = fmaxf(peak, fabsf(want[k]));
    for (int k = 0; k < n; k++)
        if (!(fabsf(got[k] - want[k]) <= 1e-5f * peak)) fail_msg("logit %d is %g, want %g", k, got[k], want[k]);
}

/// Of weights with which a backend gives a token the same logits in a batch and alone.
static wt_dtype exact_type(void) { return group_backend == WT_BACKEND_CPU ? WT_DTYPE_BF16 : WT_DTYPE_F32; }

static int32_t largest(const float *x, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (x[k] > x[best]) best = k;
    return best;
}

/// Greedy tokens equal the golden ones, unless `forced`, which feeds the golden ones whatever was chosen; and the
/// logits at the golden steps are within `bound` of the largest.
static double check_tokens(fixture *f, const char *name, double bound, bool forced)
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
        const int32_t id = forced ? want[n_prompt + n] : largest(logits, f->vocab);
        if (id != want[n_prompt + n]) fail_msg("%s: step %d gives %d, want %d", name, n, id, want[n_prompt + n]);
        if (n < STEPS - 1) assert_ok(wt_llm_decode(f->session, id));
    }
    npy_free(&ids);
    npy_free(&golden);
    return worst;
}

static double check_greedy(fixture *f, const char *name, double bound) { return check_tokens(f, name, bound, false); }

static void families_equal_transformers(void **state)
{
    for (int k = 0; k < N_CASES; k++) {
        fixture f = open_model(make_model(state, cases[k], WT_DTYPE_F32), 2, 0);
        print_message("%-14s %.1e of the largest logit\n", cases[k], check_greedy(&f, cases[k], 1e-5));
        close_model(&f);
    }
}

/// A GPU rounds the vectors of a prompt to the weights' type, 8 or 11 bits: errors of 2^-9 and 2^-12 in each of some
/// twenty products, of which the logits keep a few. So does a CPU with AVX512_BF16 beside BF16, but for exact_products.
static void half_types_of_the_same_weights_give_the_same_tokens(void **state)
{
    static const wt_dtype types[] = {WT_DTYPE_F16, WT_DTYPE_BF16};
    const bool on_cpu = group_backend == WT_BACKEND_CPU;
    for (int k = 0; k < (on_cpu ? 4 : 2) * N_CASES; k++) {
        const char *name = cases[k / 2 % N_CASES];
        const bool exact = k >= 2 * N_CASES;
        const wt_llm_session_config config = {.exact_products = exact};
        fixture f = open_model_as(make_model(state, name, types[k % 2]), 1, config);
        const double bound = exact ? 1e-5 : k % 2 ? 4e-2 : 5e-3, met = check_tokens(&f, name, bound, !exact);
        print_message("%-14s %-5s %s %.1e of the largest logit\n", name, wt_dtype_name(types[k % 2]),
                      exact ? "exact" : "     ", met);
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

// ---- the README of the data gives the text

static void a_llama2c_checkpoint_tells_its_story(void **state)
{
    static const char story[] =
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw "
        "a big, red ball. She wanted to play with it, but it was too high.\nLily's mom said, \"Lily, let's go to the "
        "park.\" Lily was sad and didn't know what to do. She said, \"I want to play with your ball, but I can't find "
        "it.\"\nLily was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to do.\"\n"
        "Lily didn't want to help her mom, so she";
    (void)state;
    const char *path = shared_data("llm/stories260K/stories260K.bin");
    if (!path) skip();
    fixture f = open_model(path, 2, 0);
    wt_llama2c_vocab *vocab;
    assert_ok(wt_llama2c_vocab_open(shared_data("llm/stories260K/tok512.bin"), f.vocab, &vocab));
    char text[2048];
    size_t length = 0, n;
    int32_t id, n_ids, ids[64];
    assert_ok(wt_llama2c_encode(vocab, "", 0, &id, 1, &n_ids));
    assert_int_equal(id, 1);
    for (int k = 0; k < 200; k++) {
        assert_ok(wt_llm_decode(f.session, id));
        const int32_t next = largest(wt_llm_logits(f.session), f.vocab);
        const char *piece = wt_llama2c_piece(vocab, id, next, &n);
        assert_true(length + n < sizeof text);
        memcpy(text + length, piece, n);
        length += n;
        id = next;
    }
    text[length] = 0;
    assert_string_equal(text, story);

    // what was encoded is read back, characters without a token too
    static const char words[] = "Lily saw a caf\xc3\xa9 \xf0\x9f\x98\x80 and sat";
    assert_ok(wt_llama2c_encode(vocab, words, strlen(words), ids, 64, &n_ids));
    length = 0;
    for (int k = 1; k < n_ids; k++) {
        const char *piece = wt_llama2c_piece(vocab, ids[k - 1], ids[k], &n);
        memcpy(text + length, piece, n);
        length += n;
    }
    text[length] = 0;
    assert_string_equal(text, words);
    assert_true(n_ids < (int)strlen(words));
    assert_int_equal(wt_llama2c_encode(vocab, words, strlen(words), ids, 3, &n_ids), WT_ERR_FULL);
    wt_llama2c_vocab_close(vocab);
    close_model(&f);
}

// ---- sessions

/// Batches, threads and coming back do not change them. (BF16 of many tokens at a time may go by AMX, of few by floats:
/// test_llm_parts has how near those are.)
static void logits_do_not_depend_on_how_tokens_came(void **state)
{
    static const char *const some[] = {"gpt2", "mistral", "qwen2_windows", "qwen3_moe"};
    int32_t ids[100];
    float want[128];
    for (int k = 0; k < 100; k++) ids[k] = k * 37 % 128;
    for (int m = 0; m < 4; m++) {
        const char *path = make_model(state, some[m], WT_DTYPE_F32);
        fixture whole = open_model(path, 1, 128), parts = open_model(path, 3, 7);
        assert_null(wt_llm_logits(whole.session));
        assert_ok(wt_llm_prefill(whole.session, ids, 100));
        memcpy(want, wt_llm_logits(whole.session), sizeof want);
        for (int k = 0; k < 60; k++) assert_ok(wt_llm_decode(parts.session, ids[k]));
        const wt_llm_snapshot at = wt_llm_session_snapshot(parts.session);
        assert_ok(wt_llm_prefill(parts.session, ids, 30)); // another way, and back
        assert_int_equal(wt_llm_position(parts.session), 90);
        assert_ok(wt_llm_session_restore(parts.session, at));
        assert_null(wt_llm_logits(parts.session));
        assert_ok(wt_llm_prefill(parts.session, ids + 60, 40));
        assert_same_logits(wt_llm_logits(parts.session), want, 128);
        close_model(&whole);
        close_model(&parts);
    }
}

/// The logits after each of several tokens are those of one by one, and so are those after wrong guesses are taken
/// back; all layers of a draft are the model.
static void verified_logits_are_those_of_single_steps(void **state)
{
    static const char *const some[] = {"gpt2", "mistral", "qwen2_windows", "qwen3_moe"};
    enum { N = 21, VOCAB = 128 };
    static float all[N][VOCAB];
    int32_t ids[N], wrong[9];
    for (int k = 0; k < N; k++) ids[k] = k * 29 % VOCAB;
    for (int k = 0; k < 9; k++) wrong[k] = k * 53 % VOCAB;
    for (int m = 0; m < 4; m++) {
        const char *path = make_model(state, some[m], exact_type());
        fixture single = open_model(path, 1, 0), many = open_model(path, 2, 8);
        assert_ok(wt_llm_decode(many.session, 5));
        const wt_llm_snapshot at = wt_llm_session_snapshot(many.session);
        assert_ok(wt_llm_verify(many.session, wrong, 9, all[0]));
        assert_ok(wt_llm_session_restore(many.session, at));
        const int n_layers = wt_llm_config(many.llm)->n_layers;
        assert_ok(wt_llm_draft(many.session, 7, 1));
        assert_ok(wt_llm_session_restore(many.session, at));
        assert_ok(wt_llm_verify(many.session, ids, N, all[0]));
        assert_memory_equal(wt_llm_logits(many.session), all[N - 1], sizeof all[0]);
        assert_ok(wt_llm_decode(single.session, 5));
        for (int k = 0; k < N; k++) {
            assert_ok(k % 2 ? wt_llm_decode(single.session, ids[k]) : wt_llm_draft(single.session, ids[k], n_layers));
            assert_same_logits(wt_llm_logits(single.session), all[k], VOCAB);
        }
        assert_fails(wt_llm_draft(single.session, 0, n_layers + 1), WT_ERR_BAD_ARG,
                     "llm: a draft of 3 layers, want 1..2");
        close_model(&single);
        close_model(&many);
    }
}

/// With exact_guesses they are so bit for bit, whatever the weights.
static void exact_guesses_have_the_bits_of_single_steps(void **state)
{
    static const char *const some[] = {"gpt2", "llama_yarn", "mistral", "qwen3", "qwen3_moe", "mixtral"};
    static const wt_dtype types[] = {WT_DTYPE_F32, WT_DTYPE_F16, WT_DTYPE_BF16};
    enum { N = 21, VOCAB = 128 };
    static float all[N][VOCAB];
    int32_t ids[N];
    for (int k = 0; k < N; k++) ids[k] = k * 29 % VOCAB;
    for (int m = 0; m < 6 * 3; m++) {
        fixture f = open_model(make_model(state, some[m / 3], types[m % 3]), 2, 32);
        wt_llm_session *exact;
        assert_ok(wt_llm_session_create(
            f.llm,
            &(wt_llm_session_config){
                .device = f.device, .n_positions = 300, .n_batch = 32, .kv_type = types[m % 3], .exact_guesses = true},
            &exact));
        assert_ok(wt_llm_prefill(exact, ids, N));
        const wt_llm_snapshot at = wt_llm_session_snapshot(exact);
        assert_ok(wt_llm_verify(exact, ids, N, all[0]));
        assert_ok(wt_llm_session_restore(exact, at));
        for (int k = 0; k < N; k++) {
            assert_ok(wt_llm_decode(exact, ids[k]));
            const float *got = wt_llm_logits(exact);
            for (int j = 0; j < VOCAB; j++)
                if (got[j] != all[k][j])
                    fail_msg("%s %s: token %d, logit %d is %.9g, verified %.9g", some[m / 3],
                             wt_dtype_name(types[m % 3]), k, j, got[j], all[k][j]);
        }
        wt_llm_session_destroy(exact);
        close_model(&f);
    }
}

typedef struct listener {
    int32_t ids[STEPS];
    int n, last; ///< heard, and after how many to stop
} listener;

static bool listen(void *user, const wt_llm_pick *pick)
{
    listener *l = user;
    l->ids[l->n++] = pick->id;
    return l->n != l->last;
}

/// In one run or stopped on the way: the tokens of single steps, the position they leave, and their logits.
static void runs_give_the_tokens_of_single_steps(void **state)
{
    static const char *const some[] = {"gpt2", "llama_dynamic", "mistral", "qwen2_windows", "qwen3_moe"};
    for (int m = 0; m < 5; m++) {
        fixture f = open_model(make_model(state, some[m], WT_DTYPE_F32), 2, 0);
        npy ids;
        assert_ok(npy_read(golden_path(some[m], "ids.npy"), &ids));
        const int32_t *want = ids.data;
        const int n_prompt = (int)ids.count - STEPS;
        listener l = {.last = 40};
        const wt_llm_run_config run = {.n_tokens = STEPS, .on_token = listen, .user = &l};
        assert_ok(wt_llm_prefill(f.session, want, n_prompt - 1));
        assert_ok(wt_llm_run(f.session, want[n_prompt - 1], &run));
        assert_int_equal(l.n, 40);
        assert_int_equal(wt_llm_position(f.session), n_prompt + 39);
        const wt_llm_run_config rest = {.n_tokens = STEPS - 40, .on_token = listen, .user = &l};
        assert_ok(wt_llm_run(f.session, l.ids[39], &rest));
        assert_int_equal(l.n, STEPS);
        assert_memory_equal(l.ids, want + n_prompt, sizeof l.ids);
        assert_int_equal(wt_llm_position(f.session), n_prompt + STEPS - 1);
        assert_int_equal(largest(wt_llm_logits(f.session), f.vocab), l.ids[STEPS - 1]);
        assert_fails(wt_llm_run(f.session, 0, &run), WT_ERR_FULL,
                     "llm: 256 tokens after 275, the session has room for 300");
        npy_free(&ids);
        close_model(&f);
    }
}

/// Sequences of different lengths that take steps together, join late and leave early, against each alone.
static void sequences_do_not_meet(void **state)
{
    static const char *const some[] = {"gpt2", "mistral", "mixtral"};
    enum { SEQUENCES = 5, N = 10, VOCAB = 128 };
    static float logits[SEQUENCES][VOCAB];
    for (int m = 0; m < 3; m++) {
        fixture f = open_model(make_model(state, some[m], exact_type()), 2, 0);
        wt_llm_session *all;
        int32_t ids[SEQUENCES], best[SEQUENCES], prompt[40];
        const wt_llm_session_config config = {.device = f.device, .n_positions = 100, .n_sequences = SEQUENCES};
        assert_ok(wt_llm_session_create(f.llm, &config, &all));
        for (int q = 0; q < SEQUENCES; q++) { // of 7, 14 ... tokens
            for (int k = 0; k < 7 * (q + 1); k++) prompt[k] = (k * 37 + 11 * q) % VOCAB;
            assert_ok(wt_llm_select(all, q));
            assert_ok(wt_llm_prefill(all, prompt, 7 * (q + 1)));
            ids[q] = largest(wt_llm_logits(all), VOCAB);
        }
        for (int n = 0; n < N; n++) { // the last joins at step 4, the first leaves at step 8; in changing order
            wt_llm_turn turns[SEQUENCES];
            int n_turns = 0;
            for (int k = 0; k < SEQUENCES; k++) {
                const int q = (k + n) % SEQUENCES;
                if ((q == SEQUENCES - 1 && n < 4) || (q == 0 && n >= 8)) continue;
                turns[n_turns++] = (wt_llm_turn){.sequence = q, .id = ids[q]};
            }
            assert_ok(wt_llm_step(all, turns, n_turns, best, logits[0]));
            for (int k = 0; k < n_turns; k++) {
                const int q = turns[k].sequence, n_after = 1 + (q == SEQUENCES - 1 ? n - 4 : n);
                assert_int_equal(best[k], largest(logits[k], VOCAB));
                ids[q] = best[k];
                if (n % 5 < 4) continue; // now and then, alone from its beginning
                for (int j = 0; j < 7 * (q + 1); j++) prompt[j] = (j * 37 + 11 * q) % VOCAB;
                assert_ok(wt_llm_session_restore(f.session, (wt_llm_snapshot){0}));
                assert_ok(wt_llm_prefill(f.session, prompt, 7 * (q + 1)));
                for (int j = 0; j < n_after; j++)
                    assert_ok(wt_llm_decode(f.session, largest(wt_llm_logits(f.session), VOCAB)));
                assert_same_logits(logits[k], wt_llm_logits(f.session), VOCAB);
            }
        }
        assert_fails(wt_llm_step(all, (wt_llm_turn[]){{.sequence = 1}, {.sequence = 1}}, 2, best, NULL), WT_ERR_BAD_ARG,
                     "llm: turns 0 and 1 are both of sequence 1");
        assert_int_equal(wt_llm_select(all, SEQUENCES), WT_ERR_BAD_ARG);
        wt_llm_session_destroy(all);
        close_model(&f);
    }
}

/// A session of a partition, with its weights there, gives the tokens it gives elsewhere.
static void a_session_lives_in_a_partition(void **state)
{
    enum { N = 40 };
    skip_without_device();
    const char *path = make_model(state, "qwen3", WT_DTYPE_F32);
    wt_device *device;
    wt_llm *llm;
    wt_llm_session *session;
    npy ids;
    assert_ok(wt_device_open(&(wt_device_config){.backend = group_backend, .n_threads = 2}, &device));
    if (wt_device_get_info(device)->n_sms < 2) skip();
    wt_layout *layout = layout_of(device, &two_config);
    assert_ok(wt_llm_open(path, &llm));
    assert_ok(wt_llm_session_create(
        llm, &(wt_llm_session_config){.device = device, .partition = wt_layout_find(layout, "llm"), .n_positions = 100},
        &session));
    assert_ok(npy_read(golden_path("qwen3", "ids.npy"), &ids));
    const int32_t *want = ids.data;
    const int n_prompt = (int)ids.count - STEPS;
    listener l = {.last = 0};
    assert_ok(wt_llm_prefill(session, want, n_prompt - 1));
    assert_ok(
        wt_llm_run(session, want[n_prompt - 1], &(wt_llm_run_config){.n_tokens = N, .on_token = listen, .user = &l}));
    assert_memory_equal(l.ids, want + n_prompt, sizeof *l.ids * N);
    npy_free(&ids);
    wt_llm_session_destroy(session);
    wt_llm_close(llm);
    assert_ok(wt_layout_destroy(layout));
    wt_device_close(device);
}

/// Keys and values in 16 bits, and prompts that are attended to on tensor cores where heads are multiples of 16: in
/// batches that do not end with a page, and in single steps. Each score and share is off by some 2^-12, or 2^-9.
static void caches_of_16_bits_are_near(void **state)
{
    static const char *const some[] = {"llama", "mistral", "qwen3"}; // heads of 16, 16 with a window, 24
    static const wt_dtype types[] = {WT_DTYPE_F16, WT_DTYPE_BF16};
    enum { N = 150 };
    int32_t ids[N];
    if (group_backend == WT_BACKEND_CPU) skip();
    for (int k = 0; k < N; k++) ids[k] = k * 37 % 128;
    for (int m = 0; m < 6; m++) {
        fixture f = open_model(make_model(state, some[m / 2], types[m % 2]), 1, 0);
        const double bound = types[m % 2] == WT_DTYPE_F16 ? 5e-3 : 4e-2;
        float want[128], peak = 0, error = 0;
        wt_device *cpu;
        wt_llm_session *exact, *near;
        assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU}, &cpu));
        assert_ok(wt_llm_session_create(
            f.llm, &(wt_llm_session_config){.device = cpu, .n_positions = N, .exact_products = true}, &exact));
        assert_ok(wt_llm_session_create(
            f.llm,
            &(wt_llm_session_config){.device = f.device, .n_positions = N, .n_batch = 133, .kv_type = types[m % 2]},
            &near));
        assert_ok(wt_llm_prefill(exact, ids, N));
        memcpy(want, wt_llm_logits(exact), sizeof want);
        assert_ok(wt_llm_prefill(near, ids, N - 10)); // 133 and 7
        for (int k = N - 10; k < N; k++) assert_ok(wt_llm_decode(near, ids[k]));
        const float *got = wt_llm_logits(near);
        for (int k = 0; k < 128; k++) {
            peak = fmaxf(peak, fabsf(want[k]));
            error = fmaxf(error, fabsf(got[k] - want[k]));
        }
        print_message("%-8s %-5s %.1e of the largest logit\n", some[m / 2], wt_dtype_name(types[m % 2]),
                      (double)(error / peak));
        if (!(error <= bound * peak)) fail_msg("%s: %g of %g", some[m / 2], error, peak);
        wt_llm_session_destroy(exact);
        wt_llm_session_destroy(near);
        wt_device_close(cpu);
        close_model(&f);
    }
}

static void bad_use_is_refused(void **state)
{
    const char *path = make_model(state, "gpt2", WT_DTYPE_F32);
    fixture f = open_model(path, 1, 0);
    wt_llm_session *session;
    int32_t ids[301] = {0};
    assert_fails(wt_llm_decode(f.session, 128), WT_ERR_BAD_ARG, "llm: token 0 of 1 is 128, want 0..127");
    assert_fails(wt_llm_prefill(f.session, ids, 0), WT_ERR_BAD_ARG, "llm: 0 tokens, want 1 or more");
    assert_fails(wt_llm_prefill(f.session, ids, 301), WT_ERR_FULL,
                 "llm: 301 tokens after 0, the session has room for 300");
    assert_fails(wt_llm_session_restore(f.session, (wt_llm_snapshot){1, 0}), WT_ERR_BAD_ARG,
                 "llm: restore to 1 tokens, the session has 0");
    assert_fails(
        wt_llm_session_create(f.llm, &(wt_llm_session_config){.device = f.device, .n_positions = 301}, &session),
        WT_ERR_BAD_ARG, "llm: 301 positions, the model learnt 300");
    assert_null(session);
    close_model(&f);

    wt_llm *llm; // the weights of one family with the config of another
    size_t size;
    char *config = test_slurp(golden_path("llama", "config.json"), &size);
    test_spill(test_path(state, "config.json"), config, size);
    free(config);
    assert_int_equal(wt_llm_open(path, &llm), WT_ERR_NOT_FOUND);
    assert_non_null(strstr(wt_last_error(), "model.embed_tokens.weight"));
    assert_null(llm);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
#define SESSIONS                                                                                                       \
    IN_FOLDER(families_equal_transformers), IN_FOLDER(half_types_of_the_same_weights_give_the_same_tokens),            \
        cmocka_unit_test(a_trained_model_equals_transformers), cmocka_unit_test(a_llama2c_checkpoint_tells_its_story), \
        IN_FOLDER(logits_do_not_depend_on_how_tokens_came), IN_FOLDER(verified_logits_are_those_of_single_steps),      \
        IN_FOLDER(exact_guesses_have_the_bits_of_single_steps), IN_FOLDER(runs_give_the_tokens_of_single_steps),       \
        IN_FOLDER(sequences_do_not_meet), IN_FOLDER(a_session_lives_in_a_partition),                                   \
        IN_FOLDER(caches_of_16_bits_are_near), IN_FOLDER(bad_use_is_refused)
    const struct CMUnitTest cpu[] = {SESSIONS}, cuda[] = {SESSIONS};
    return cmocka_run_group_tests_name("llm on the CPU", cpu, group_on_cpu, NULL) +
           cmocka_run_group_tests_name("llm on a GPU", cuda, group_on_cuda, NULL);
}
