#include "llm_session.h"

#include "audio_files.h"
#include "llm_files.h"
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>

static const char *config_path(const char *name)
{
    static char path[1024];
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(path, sizeof path, "%s/llm/%s/config.json", folder ? folder : "tests/golden", name);
    return path;
}

llm_fixture llm_fixture_open(void **state, wt_backend backend, const char *config)
{
    static llm_file file;
    llm_fixture f = {.backend = backend};
    size_t size;
    if (backend == WT_BACKEND_CUDA && !wt_device_count()) skip();
    llm_llama_add(&file, NULL, NULL, 11);
    llm_file_write(&file, test_path(state, "a.safetensors"));
    char *text = test_slurp(config_path(config), &size);
    test_spill(test_path(state, "config.json"), text, size);
    free(text);
    assert_ok(wt_device_open(&(wt_device_config){.backend = backend, .n_threads = 2}, &f.device));
    assert_ok(wt_llm_open(test_path(state, "a.safetensors"), &f.llm));
    return f;
}

void llm_fixture_close(llm_fixture *f)
{
    wt_llm_close(f->llm);
    wt_device_close(f->device);
}

wt_llm_session *llm_fixture_session(const llm_fixture *f, wt_llm_session_config config)
{
    wt_llm_session *session;
    config.device = f->device;
    if (!config.n_positions) config.n_positions = POSITIONS;
    assert_ok(wt_llm_session_create(f->llm, &config, &session));
    return session;
}

const int32_t *llm_fixture_prompt(int which)
{
    static int32_t ids[POSITIONS];
    for (int k = 0; k < POSITIONS; k++) ids[k] = (k * 37 + which * 11) % VOCAB;
    return ids;
}
