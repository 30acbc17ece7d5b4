#include "llm_files.h"

#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *llm_file_add(llm_file *f, const char *stem, const char *part, const char *dtype, size_t width, int rows,
                   int columns)
{
    llm_tensor *t = &f->tensors[f->n++];
    assert_true(f->n < LLM_MAX_TENSORS);
    snprintf(t->name, sizeof t->name, "%s.%s", stem, part);
    if (columns)
        snprintf(t->shape, sizeof t->shape, "%d,%d", rows, columns);
    else
        snprintf(t->shape, sizeof t->shape, "%d", rows);
    t->dtype = dtype;
    t->bytes = width * (size_t)rows * (size_t)(columns ? columns : 1);
    t->data = calloc(1, t->bytes);
    assert_non_null(t->data);
    return t->data;
}

void llm_file_narrow(llm_file *f)
{
    for (llm_tensor *t = f->tensors; t < f->tensors + f->n; t++) {
        const uint16_t *halves = t->data; // the second of two is the upper one
        uint16_t *narrow = t->data;
        if (!strchr(t->shape, ',') || strcmp(t->dtype, "F32")) continue;
        for (size_t k = 0; k < t->bytes / 4; k++) narrow[k] = halves[2 * k + 1];
        t->dtype = "BF16";
        t->bytes /= 2;
    }
}

void llm_file_write(llm_file *f, const char *path)
{
    static char header[LLM_MAX_TENSORS * 200];
    size_t length = 0, at = 0;
    for (int k = 0; k < f->n; k++) {
        const llm_tensor *t = &f->tensors[k];
        length += (size_t)snprintf(header + length, sizeof header - length,
                                   "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                   k ? "," : "{", t->name, t->dtype, t->shape, at, at + t->bytes);
        at += t->bytes;
    }
    header[length++] = '}';
    while (length % 8) header[length++] = ' ';
    unlink(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(&(uint64_t){length}, 8, 1, file);
    fwrite(header, 1, length, file);
    for (int k = 0; k < f->n; k++) {
        fwrite(f->tensors[k].data, 1, f->tensors[k].bytes, file);
        free(f->tensors[k].data);
    }
    assert_int_equal(fclose(file), 0);
    f->n = 0;
}

void llm_config_write(const char *path, const char *quantization)
{
    char golden[512];
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(golden, sizeof golden, "%s/llm/llama/config.json", folder ? folder : "tests/golden");
    json_t *config = json_load_file(golden, 0, NULL);
    assert_non_null(config);
    if (quantization) json_object_set_new(config, "quantization_config", json_loads(quantization, 0, NULL));
    assert_int_equal(json_dump_file(config, path, 0), 0);
    json_decref(config);
}

void llm_llama_add(llm_file *plain, llm_file *other, llm_fill fill, uint64_t seed)
{
    char golden[512], name[112], shape[32];
    const char *folder = getenv("WARPTONE_TEST_GOLDEN");
    snprintf(golden, sizeof golden, "%s/llm/llama/tensors.tsv", folder ? folder : "tests/golden");
    FILE *list = fopen(golden, "r");
    assert_non_null(list);
    while (fscanf(list, "%111s %31s", name, shape) == 2) {
        int rows = 1, columns = 0;
        sscanf(shape, "%d,%d", &rows, &columns);
        char *part = strrchr(name, '.');
        *part++ = 0;
        float *wide = llm_file_add(plain, name, part, "F32", 4, rows, columns);
        if (fill && strstr(name, "_proj")) {
            fill(other, name, rows, columns, &seed, wide);
            continue;
        }
        for (int k = 0; k < rows * (columns ? columns : 1); k++)
            wide[k] = columns ? noise(&seed) / 4 : 1 + noise(&seed) / 4;
        if (other)
            memcpy(llm_file_add(other, name, part, "F32", 4, rows, columns), wide, plain->tensors[plain->n - 1].bytes);
    }
    fclose(list);
}

void need_story_model(const char *program, char *model, size_t size)
{
    const char *path = shared_data("llm/TinyStories-656K/models/story");
    if (!path || access(program, X_OK)) {
        print_message("skipped: %s is not there\n", path ? program : "the model");
        skip();
    }
    snprintf(model, size, "%s", path);
}
