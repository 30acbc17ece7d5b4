// Checkpoints whose tensors have other names or types than their family's.
#include "support/audio_files.h"
#include "support/llm_files.h"
#include "support/testing.h"

#include <jansson.h>
#include <string.h>
#include <warptone/llm.h>

enum { VOCAB = 128 };

static void tie_the_head(void **state)
{
    const char *path = test_path(state, "config.json");
    llm_config_write(path, NULL);
    json_t *config = json_load_file(path, 0, NULL);
    assert_non_null(config);
    json_object_set_new(config, "tie_word_embeddings", json_true());
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
}

static llm_tensor *tensor_of(llm_file *f, const char *name)
{
    for (int k = 0; k < f->n; k++)
        if (!strcmp(f->tensors[k].name, name)) return &f->tensors[k];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void logits_of_file(void **state, float logits[VOCAB])
{
    wt_device *device;
    wt_llm *llm;
    wt_llm_session *session;
    assert_ok(wt_device_open(&(wt_device_config){.backend = WT_BACKEND_CPU, .n_threads = 1}, &device));
    assert_ok(wt_llm_open(test_path(state, "model.safetensors"), &llm));
    assert_ok(wt_llm_session_create(llm, &(wt_llm_session_config){.device = device, .n_positions = 8}, &session));
    assert_ok(wt_llm_prefill(session, (int32_t[]){3, 99, 7}, 3));
    memcpy(logits, wt_llm_logits(session), sizeof *logits * VOCAB);
    wt_llm_session_destroy(session);
    wt_llm_close(llm);
    wt_device_close(device);
}

/// The golden llama without a head, its embedding under that name or the head's.
static void write_tied(void **state, const char *embedding)
{
    llm_file f = {0};
    llm_llama_add(&f, NULL, NULL, 5);
    strcpy(tensor_of(&f, "lm_head.weight")->name, "not.used");
    strcpy(tensor_of(&f, "model.embed_tokens.weight")->name, embedding);
    llm_file_write(&f, test_path(state, "model.safetensors"));
}

/// transformers takes either, as both are one parameter there.
static void a_tied_pair_may_have_either_name(void **state)
{
    float want[VOCAB], got[VOCAB];
    tie_the_head(state);
    write_tied(state, "model.embed_tokens.weight");
    logits_of_file(state, want);
    write_tied(state, "lm_head.weight");
    logits_of_file(state, got);
    assert_memory_equal(got, want, sizeof want);
}

static void norms_of_whole_numbers_are_refused(void **state)
{
    llm_file f = {0};
    wt_llm *llm;
    llm_config_write(test_path(state, "config.json"), NULL);
    llm_llama_add(&f, NULL, NULL, 5);
    tensor_of(&f, "model.norm.weight")->dtype = "I32";
    llm_file_write(&f, test_path(state, "model.safetensors"));
    assert_fails(wt_llm_open(test_path(state, "model.safetensors"), &llm), WT_ERR_UNSUPPORTED,
                 "llm: model.norm.weight is of type I32, want F32, F16, BF16, F64 or a block type of GGUF");
    assert_null(llm);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, test_folder_create, test_folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_tied_pair_may_have_either_name),
        IN_FOLDER(norms_of_whole_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
