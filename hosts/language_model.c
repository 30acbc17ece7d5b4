#include "language_model.h"

#include "interrupt.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warptone/clock.h>

// ---- the tokenizer

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/// llama2.c's: tok<size>.bin or tokenizer.bin beside the checkpoint.
static wt_status find_vocab(const char *model, int vocab_size, char path[PATH_MAX])
{
    const char *slash = strrchr(model, '/');
    const int folder = slash ? (int)(slash - model) + 1 : 0;
    snprintf(path, PATH_MAX, "%.*stok%d.bin", folder, model, vocab_size);
    if (!access(path, F_OK)) return WT_OK;
    snprintf(path, PATH_MAX, "%.*stokenizer.bin", folder, model);
    if (!access(path, F_OK)) return WT_OK;
    return wt_fail(WT_ERR_NOT_FOUND, "%s: neither tok%d.bin nor tokenizer.bin lies beside, want --tokenizer", model,
                   vocab_size);
}

/// A file of the hub lies in the folder that has tokenizer.json; a GGUF file has its own, unless one lies beside it.
static wt_status open_beside(const char *model, wt_tokenizer **tokenizer)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(model, '/');
    const bool file = ends_with(model, ".safetensors") || ends_with(model, ".json") || ends_with(model, ".gguf");
    if (!file) return wt_tokenizer_open(model, tokenizer);
    snprintf(folder, sizeof folder, "%.*s/tokenizer.json", slash ? (int)(slash - model) : 1, slash ? model : ".");
    if (ends_with(model, ".gguf") && access(folder, F_OK)) return wt_tokenizer_open(model, tokenizer);
    *strrchr(folder, '/') = 0;
    return wt_tokenizer_open(folder, tokenizer);
}

static wt_status open_tokenizer(const language_options *o, int vocab_size, language_model *m)
{
    char path[PATH_MAX];
    if (!ends_with(o->tokenizer ? o->tokenizer : o->model, ".bin"))
        return o->tokenizer ? wt_tokenizer_open(o->tokenizer, &m->tokenizer) : open_beside(o->model, &m->tokenizer);
    wt_status status = o->tokenizer ? WT_OK : find_vocab(o->model, vocab_size, path);
    return status ? status : wt_llama2c_vocab_open(o->tokenizer ? o->tokenizer : path, vocab_size, &m->vocab);
}

wt_status language_model_encode(const language_model *model, const char *text, size_t length, bool special,
                                int32_t *ids, int max_ids, int *n_ids)
{
    wt_status status = model->vocab ? wt_llama2c_encode(model->vocab, text, length, ids, max_ids, n_ids)
                                    : wt_tokenizer_encode(model->tokenizer, text, length, special, ids, max_ids, n_ids);
    if (status != WT_ERR_FULL && (status || *n_ids <= max_ids)) return status;
    return wt_fail(WT_ERR_LENGTH, "the prompt has %d tokens, want %d at most", *n_ids, max_ids);
}

// ---- weights and sessions

static wt_status find_strategy(const language_options *o, wt_strategy *strategy)
{
    *strategy = o->draft ? WT_STRATEGY_DRAFT : WT_STRATEGY_SINGLE;
    if (o->strategy && wt_strategy_find(o->strategy, strategy)) return WT_ERR_BAD_ARG;
    if (*strategy == WT_STRATEGY_DRAFT && !o->draft)
        return wt_fail(WT_ERR_BAD_ARG, "--strategy draft is given alone, want --draft PATH with it");
    if (*strategy != WT_STRATEGY_DRAFT && o->draft)
        return wt_fail(WT_ERR_BAD_ARG, "--draft is for strategy draft, and --strategy is %s", o->strategy);
    return WT_OK;
}

static void tell_quantised(void *user, int done, int of)
{
    const language_use *use = user;
    if (use->progress) use->progress("quantising", done, of, "layers");
}

static void tell_unpacked(void *user, int done, int of)
{
    const language_use *use = user;
    if (use->progress) use->progress("unpacking", done, of, "layers");
}

static void tell_sent(void *user, size_t done_bytes, size_t all_bytes)
{
    const language_use *use = user;
    if (use->progress) use->progress("loading", (int)(done_bytes >> 20), (int)(all_bytes >> 20), "MiB");
}

static wt_status open_weights(const language_options *o, const language_use *use, language_model *m)
{
    wt_llm_load_config load = {.path = o->model, .progress = tell_unpacked, .user = (void *)use};
    wt_status status = WT_OK;
    m->quantization = wt_options_word("quantize", o->quantize, "none fp8 int8 int4", &status);
    if (!status) status = find_strategy(o, &m->strategy);
    if (!status) status = wt_llm_load(&load, &m->llm);
    load.path = o->draft;
    if (!status && o->draft) status = wt_llm_load(&load, &m->draft_llm);
    return status;
}

/// Weights to the GPU, where there is one, quantised there or here, and a session.
static wt_status open_session(wt_llm *llm, wt_llm_quantization kind, wt_llm_session_config config,
                              const language_use *use, wt_llm_resident **resident, wt_llm_session **session)
{
    const wt_llm_resident_config sent = {.device = config.device,
                                         .partition = config.partition,
                                         .quantization = kind,
                                         .progress = tell_sent,
                                         .user = (void *)use};
    wt_status status = wt_device_get_info(config.device)->backend == WT_BACKEND_CUDA
                           ? wt_llm_resident_create(llm, &sent, resident)
                           : wt_llm_quantize(llm, kind, tell_quantised, (void *)use);
    config.resident = *resident;
    return status ? status : wt_llm_session_create(llm, &config, session);
}

static void close_sessions(language_model *m)
{
    wt_llm_session_destroy(m->draft);
    wt_llm_session_destroy(m->session);
    wt_llm_resident_destroy(m->draft_resident);
    wt_llm_resident_destroy(m->resident);
    if (m->owns_device) wt_device_close(m->device);
    m->draft = m->session = NULL;
    m->draft_resident = m->resident = NULL;
    m->device = NULL;
}

/// A GPU's kernels for long prompts want 16 bits or fewer.
static wt_status find_cache_type(const char *name, wt_device *device, wt_dtype *type)
{
    static const wt_dtype types[] = {WT_DTYPE_F32, WT_DTYPE_F16, WT_DTYPE_BF16, WT_DTYPE_F8_E4M3};
    wt_status status = WT_OK;
    const int word = wt_options_word("cache", name, "f32 f16 bf16 fp8", &status);
    const bool on_gpu = wt_device_get_info(device)->backend == WT_BACKEND_CUDA;
    *type = name ? types[word] : on_gpu ? WT_DTYPE_F16 : WT_DTYPE_F32;
    return status;
}

/// On the partition's device, or with NULL on one of its own.
static wt_status open_on(wt_backend backend, wt_partition *partition, const language_options *o,
                         const language_use *use, language_model *m)
{
    wt_status status = WT_OK;
    m->owns_device = !partition;
    if (partition)
        m->device = wt_partition_device(partition);
    else
        status = wt_device_open(&(wt_device_config){.backend = backend, .n_threads = o->threads}, &m->device);
    if (status) return status;
    wt_llm_session_config config = {.device = m->device,
                                    .partition = partition,
                                    .n_positions = m->n_positions,
                                    .n_batch = o->batch,
                                    .n_sequences = use->n_sequences,
                                    .exact_products = o->exact,
                                    .exact_guesses = o->exact_guesses,
                                    .rough_guesses = o->rough_guesses};
    status = find_cache_type(o->cache, m->device, &config.kv_type);
    if (!status) status = open_session(m->llm, m->quantization, config, use, &m->resident, &m->session);
    if (!status) m->step_bytes = wt_llm_step_bytes(m->resident ? wt_llm_resident_model(m->resident) : m->llm);
    if (!status && m->draft_llm)
        status = open_session(m->draft_llm, WT_LLM_AS_STORED, config, use, &m->draft_resident, &m->draft);
    return status;
}

/// "auto" is a GPU, where there is one that runs the model's types, and else the CPU.
static wt_status open_sessions(const language_options *o, const language_use *use, language_model *m)
{
    const int most = wt_llm_config(m->llm)->max_positions;
    m->n_positions = o->context ? o->context : most < 4096 ? most : 4096;
    wt_backend backend;
    wt_status status = wt_options_backend(o->backend, &backend);
    wt_partition *partition = backend == WT_BACKEND_CPU ? NULL : use->partition;
    if (!status) status = open_on(backend, partition, o, use, m);
    if (status != WT_ERR_UNSUPPORTED || backend != WT_BACKEND_AUTO) return status;
    close_sessions(m);
    return open_on(WT_BACKEND_CPU, NULL, o, use, m);
}

/// An option that was given, or what the model says.
static double chosen(double option, double model) { return option >= 0 ? option : model; }

static wt_status read_biases(const wt_option_texts *texts, wt_logit_bias *biases)
{
    for (int k = 0; k < texts->n; k++) {
        char *end, *last;
        const long id = strtol(texts->at[k], &end, 10);
        const float bias = *end == '=' ? strtof(end + 1, &last) : 0;
        if (end == texts->at[k] || *end != '=' || last == end + 1 || *last || isnan(bias) || id < 0 || id > INT32_MAX)
            return wt_fail(WT_ERR_BAD_ARG, "--bias is \"%s\", want ID=X, a token and what is added to its logit",
                           texts->at[k]);
        biases[k] = (wt_logit_bias){(int32_t)id, bias};
    }
    return WT_OK;
}

static int chosen_length(const language_options *o, const language_use *use, const wt_generation_config *model)
{
    return o->max_tokens ? o->max_tokens : model->max_new_tokens ? model->max_new_tokens : use->max_tokens;
}

static wt_status open_sampler(const language_options *o, language_model *m)
{
    const wt_model_config *c = wt_llm_config(m->llm);
    const wt_generation_config *g = &c->generation;
    wt_status status = read_biases(&o->biases, m->biases);
    if (status) return status;
    const double warm = !g->do_sample ? 0 : g->temperature > 0 ? g->temperature : 1;
    m->sampling = (wt_sampler_config){.temperature = chosen(o->temperature, warm),
                                      .top_k = o->top_k >= 0 ? o->top_k : g->top_k,
                                      .top_p = chosen(o->top_p, g->top_p),
                                      .min_p = chosen(o->min_p, g->min_p),
                                      .typical_p = chosen(o->typical_p, g->typical_p),
                                      .repetition_penalty = chosen(o->repetition, g->repetition_penalty),
                                      .presence_penalty = o->presence,
                                      .frequency_penalty = o->frequency,
                                      .biases = m->biases,
                                      .n_biases = o->biases.n,
                                      .seed = (uint64_t)o->seed};
    return wt_sampler_create(&m->sampling, c->vocab_size, &m->sampler);
}

static bool not_interrupted(void *user)
{
    (void)user;
    return !wt_interrupted();
}

static wt_status open_generator(const language_options *o, const language_use *use, language_model *m)
{
    wt_answer_text_config text = use->text;
    text.stops = o->stops.at;
    text.n_stops = o->stops.n;
    wt_generator_config config = {.session = m->session,
                                  .sampler = m->sampler,
                                  .n_positions = m->n_positions,
                                  .max_tokens = m->max_tokens,
                                  .n_keep = o->keep,
                                  .ignore_eos = o->ignore_eos,
                                  .logprobs = use->logprobs,
                                  .n_top = use->n_top,
                                  .tokenizer = m->tokenizer,
                                  .vocab = m->vocab,
                                  .text = &text,
                                  .draft = m->draft,
                                  .strategy = m->strategy,
                                  .n_guesses = o->n_guesses,
                                  .n_draft_layers = o->draft_layers,
                                  .keep_guessing = o->keep_guessing,
                                  .on_token = use->on_token,
                                  .may_go_on = not_interrupted,
                                  .user = use->user};
    return wt_generator_create(&config, &m->generator);
}

wt_status language_model_open(const language_options *options, const language_use *use, language_model *model)
{
    *model = (language_model){0};
    const int64_t begin = wt_clock_now_ns(NULL);
    wt_status status = open_weights(options, use, model);
    if (!status) status = open_sessions(options, use, model);
    if (!status) status = open_sampler(options, model);
    if (!status) model->max_tokens = chosen_length(options, use, &wt_llm_config(model->llm)->generation);
    if (!status && !use->numbers) status = open_tokenizer(options, wt_llm_config(model->llm)->vocab_size, model);
    if (!status && !use->n_sequences) status = open_generator(options, use, model);
    model->load_s = (double)(wt_clock_now_ns(NULL) - begin) * 1e-9;
    if (status) language_model_close(model);
    return status;
}

void language_model_close(language_model *model)
{
    wt_generator_destroy(model->generator);
    wt_sampler_destroy(model->sampler);
    wt_tokenizer_close(model->tokenizer);
    wt_llama2c_vocab_close(model->vocab);
    close_sessions(model);
    wt_llm_close(model->draft_llm);
    wt_llm_close(model->llm);
    *model = (language_model){0};
}
