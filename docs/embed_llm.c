// A language model in a program of your own: its answer to a prompt, as it comes, on a GPU or on the CPU where there is
// none.
//
//     cc docs/embed_llm.c -Iengine/include -Imodels/include -Lbuild -lwarptone -Wl,-rpath,build -o embed_llm
//     ./embed_llm Qwen3-0.6B "Once upon a time"
#include <stdio.h>
#include <string.h>
#include <warptone/generate.h>

enum { POSITIONS = 512, ANSWER = 100 };

// Each token as it comes. false would end the answer; so does wt_generator_cancel from another thread.
static bool show(void *user, const wt_generated *token)
{
    (void)user;
    fwrite(token->text.answer, 1, token->text.n_answer, stdout);
    fflush(stdout);
    return true;
}

// What is open. A program that answers many keeps it; weights serve any number of sessions.
typedef struct open_model {
    wt_device *device;
    wt_tokenizer *tokenizer;
    wt_llm *llm;
    wt_llm_resident *weights; ///< on a GPU
    wt_llm_session *session;
    wt_sampler *sampler;
    wt_generator *generator;
} open_model;

static wt_status open_weights(const char *path, open_model *m)
{
    wt_status status = wt_device_open(NULL, &m->device);
    if (!status) status = wt_tokenizer_open(path, &m->tokenizer);
    if (!status) status = wt_llm_open(path, &m->llm);
    if (!status && wt_device_get_info(m->device)->backend == WT_BACKEND_CUDA)
        status = wt_llm_resident_create(m->llm, &(wt_llm_resident_config){.device = m->device}, &m->weights);
    return status;
}

static wt_status open_generator(open_model *m)
{
    const wt_llm_session_config session = {
        .device = m->device, .resident = m->weights, .n_positions = POSITIONS, .kv_type = WT_DTYPE_F16};
    const wt_sampler_config sampling = {.temperature = 0}; // the most probable tokens
    wt_status status = wt_llm_session_create(m->llm, &session, &m->session);
    if (!status) status = wt_sampler_create(&sampling, wt_llm_config(m->llm)->vocab_size, &m->sampler);
    if (status) return status;
    return wt_generator_create(&(wt_generator_config){.session = m->session,
                                                      .sampler = m->sampler,
                                                      .tokenizer = m->tokenizer,
                                                      .n_positions = POSITIONS,
                                                      .max_tokens = ANSWER,
                                                      .on_token = show},
                               &m->generator);
}

static wt_status answer(const open_model *m, const char *prompt)
{
    int32_t ids[POSITIONS], n;
    wt_generation told;
    wt_status status = wt_tokenizer_encode(m->tokenizer, prompt, strlen(prompt), true, ids, POSITIONS, &n);
    if (status) return status;
    status = wt_generator_run(m->generator, ids, n, &told);
    if (status) return status;
    fprintf(stderr, "\n%d tokens on %s, end: %s\n", told.n_tokens, wt_device_get_info(m->device)->name,
            wt_finish_name(told.finish));
    return WT_OK;
}

static void close_all(open_model *m)
{
    wt_generator_destroy(m->generator);
    wt_sampler_destroy(m->sampler);
    wt_llm_session_destroy(m->session);
    wt_llm_resident_destroy(m->weights);
    wt_llm_close(m->llm);
    wt_tokenizer_close(m->tokenizer);
    wt_device_close(m->device);
}

int main(int argc, char **argv)
{
    open_model m = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: embed_llm MODEL PROMPT\n");
        return 2;
    }
    wt_status status = open_weights(argv[1], &m);
    if (!status) status = open_generator(&m);
    if (!status) status = answer(&m, argv[2]);
    if (status) fprintf(stderr, "embed_llm: %s\n", wt_last_error());
    close_all(&m);
    return status ? 1 : 0;
}
