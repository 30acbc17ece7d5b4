/// Sessions of a tiny model: the golden llama's shapes, weights of noise.
#ifndef WT_TEST_LLM_SESSION_H
#define WT_TEST_LLM_SESSION_H

#include <warptone/llm.h>

enum { VOCAB = 128, POSITIONS = 256 };

typedef struct llm_fixture {
    wt_backend backend;
    wt_device *device;
    wt_llm *llm;
} llm_fixture;

/// In the test's folder, with the golden config of that name. Skips the test where there is no such device.
llm_fixture llm_fixture_open(void **state, wt_backend backend, const char *config);
void llm_fixture_close(llm_fixture *f);

/// On the fixture's device; n_positions 0 = POSITIONS.
wt_llm_session *llm_fixture_session(const llm_fixture *f, wt_llm_session_config config);

/// [POSITIONS] tokens, others for each `which`; the next call writes over them.
const int32_t *llm_fixture_prompt(int which);

#endif
