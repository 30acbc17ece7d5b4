// warptone kernels: the texts built into the program, and the cache of what NVRTC made of them.
#include "command.h"
#include "interrupt.h"
#include "options.h"

#include <jansson.h>
#include <kernel_table.h>
#include <stdlib.h>
#include <string.h>
#include <warptone/device.h>
#include <warptone/kernel.h>
#include <warptone/names.h>

enum { MAX_ARCHITECTURES = 32 };

typedef struct request {
    const char *folder; ///< of pack and unpack
    const char *architectures;
    bool json;
} request;

static bool is_program(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && !strcmp(path + length - 3, ".cu");
}

// ---- list

static int list_json(const wt_kernel_cache_info *cache)
{
    json_t *kernels = json_array();
    for (int k = 0; k < wt__n_kernel_texts; k++) {
        const wt_kernel_text *text = &wt__kernel_table[k];
        json_array_append_new(kernels,
                              json_pack("{s:s, s:I, s:b}", "path", text->path, "bytes", (json_int_t)strlen(text->text),
                                        "compiles_alone", is_program(text->path)));
    }
    json_t *all = json_pack("{s:o, s:{s:s, s:i, s:I, s:I}}", "kernels", kernels, "cache", "folder", cache->folder,
                            "entries", cache->n_entries, "size_bytes", (json_int_t)cache->size_bytes, "limit_bytes",
                            (json_int_t)cache->limit_bytes);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return EXIT_OK;
}

static int run_list(const request *r)
{
    wt_kernel_cache_info cache;
    wt_status status = wt_kernel_cache_query(&cache);
    if (status) return command_fail("kernels", status);
    if (r->json) return list_json(&cache);
    for (int k = 0; k < wt__n_kernel_texts; k++)
        printf("%-36s %7zu bytes%s\n", wt__kernel_table[k].path, strlen(wt__kernel_table[k].text),
               is_program(wt__kernel_table[k].path) ? "" : "  (included by others)");
    printf("cache %s: %d entries, %.1f of %.0f MiB\n", cache.folder, cache.n_entries,
           (double)cache.size_bytes / (1 << 20), (double)cache.limit_bytes / (1 << 20));
    return EXIT_OK;
}

// ---- warm

/// The architectures asked for, else those of the machine's usable GPUs.
static wt_status find_architectures(const char *asked, int *architectures, int *count)
{
    if (asked) return wt_options_list("option --arch", asked, 80, 999, architectures, MAX_ARCHITECTURES, count);
    *count = 0;
    int n_devices = wt_device_count();
    if (!n_devices) {
        char why[1024];
        snprintf(why, sizeof why, "%s", wt_last_error());
        return wt_fail(WT_ERR_NO_GPU, "no GPU to compile for, name architectures with --arch 80,90 (%s)", why);
    }
    for (int k = 0; k < n_devices && *count < MAX_ARCHITECTURES; k++) {
        wt_device_info info;
        wt_status status = wt_device_query(k, &info);
        if (status) return status;
        int architecture = info.compute_major * 10 + info.compute_minor;
        bool known = false;
        for (int j = 0; j < *count; j++) known |= architectures[j] == architecture;
        if (!known) architectures[(*count)++] = architecture;
    }
    return WT_OK;
}

typedef struct tally {
    int n_all, n_done, n_cached, n_failed;
} tally;

static void warm_one(const char *path, int architecture, tally *t, json_t *results)
{
    wt_compiled compiled;
    wt_status status = wt_kernel_compile(&(wt_module_config){.name = path}, architecture, &compiled);
    const char *outcome = status ? "failed" : compiled.from_cache ? "cached" : "compiled";
    t->n_done++;
    t->n_failed += status != WT_OK;
    t->n_cached += !status && compiled.from_cache;
    fprintf(stderr, "[%d/%d] %s sm_%d: %s\n", t->n_done, t->n_all, path, architecture, outcome);
    if (status) fprintf(stderr, "warptone kernels: %s\n", wt_last_error());
    json_array_append_new(results,
                          json_pack("{s:s, s:i, s:s}", "path", path, "architecture", architecture, "outcome", outcome));
    free(compiled.image);
}

static int run_warm(const request *r)
{
    int architectures[MAX_ARCHITECTURES], count = 0;
    wt_status status = find_architectures(r->architectures, architectures, &count);
    if (!status && !wt_nvrtc_version()) status = WT_ERR_NO_NVRTC;
    if (!status) status = wt_interrupt_install();
    if (status) return command_fail("kernels", status);
    tally t = {0};
    for (int k = 0; k < wt__n_kernel_texts; k++) t.n_all += is_program(wt__kernel_table[k].path) ? count : 0;
    json_t *results = json_array();
    for (int k = 0; k < wt__n_kernel_texts; k++)
        for (int a = 0; a < count && is_program(wt__kernel_table[k].path) && !wt_interrupted(); a++)
            warm_one(wt__kernel_table[k].path, architectures[a], &t, results);
    if (r->json) {
        json_dumpf(results, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(results);
    fprintf(stderr, "%d compiled, %d were in the cache, %d failed\n", t.n_done - t.n_cached - t.n_failed, t.n_cached,
            t.n_failed);
    if (wt_interrupted()) return exit_code_of(WT_ERR_CANCELLED);
    return t.n_failed ? EXIT_FAILED : EXIT_OK;
}

// ---- pack, unpack, clear

static int report(const request *r, wt_status status, const char *what, const char *where, int n_entries)
{
    if (status) return command_fail("kernels", status);
    if (r->json)
        printf("{\"entries\": %d}\n", n_entries);
    else
        printf("%d entries %s%s\n", n_entries, what, where);
    return EXIT_OK;
}

static int run_pack(const request *r)
{
    int n_entries = 0;
    if (r->architectures) { // the list of what was compiled would stand before the count
        int code = run_warm(&(request){.architectures = r->architectures});
        if (code) return code;
    }
    return report(r, wt_kernel_cache_export(r->folder, &n_entries), "packed into ", r->folder, n_entries);
}

static int run_unpack(const request *r)
{
    int n_entries = 0;
    return report(r, wt_kernel_cache_import(r->folder, &n_entries), "taken from ", r->folder, n_entries);
}

static int run_clear(const request *r)
{
    int n_entries = 0;
    return report(r, wt_kernel_cache_clear(&n_entries), "removed", "", n_entries);
}

// ---- the command

static const struct {
    const char *name, *help;
    bool needs_folder;
    int (*run)(const request *r);
} verbs[] = {
    {"list", "list             the kernels built in, and the cache", false, run_list},
    {"warm", "warm             compile every kernel into the cache", false, run_warm},
    {"pack", "pack FOLDER      copy the cache to FOLDER, for machines that have only the driver", true, run_pack},
    {"unpack", "unpack FOLDER    take the kernels of such a folder into the cache", true, run_unpack},
    {"clear", "clear            empty the cache", false, run_clear},
};

enum { N_VERBS = (int)(sizeof verbs / sizeof *verbs) };

static int print_help(const wt_option *options, int n_options)
{
    printf("usage: warptone kernels list|warm|pack|unpack|clear [FOLDER] [options]\n\n");
    for (int k = 0; k < N_VERBS; k++) printf("  %s\n", verbs[k].help);
    wt_options_print(stdout, options, n_options);
    printf("\nWithout --arch, warm compiles for this machine's GPUs; pack --arch compiles first. A packed folder also "
           "serves\nas it is: WARPTONE_CACHE=FOLDER warptone ...\n");
    return EXIT_OK;
}

static wt_status find_verb(int argc, char **argv, int *verb)
{
    const char *names[N_VERBS];
    for (int k = 0; k < N_VERBS; k++) names[k] = verbs[k].name;
    if (argc < 2) return wt_fail(WT_ERR_BAD_ARG, "want list, warm, pack, unpack or clear; see --help");
    for (*verb = 0; *verb < N_VERBS; ++*verb)
        if (!strcmp(argv[1], names[*verb])) break;
    if (*verb == N_VERBS)
        return wt_fail(WT_ERR_BAD_ARG, "unknown \"%s\"; the nearest is \"%s\"", argv[1],
                       wt_nearest_name(argv[1], names, N_VERBS));
    int n_wanted = verbs[*verb].needs_folder ? 3 : 2;
    if (argc != n_wanted)
        return wt_fail(WT_ERR_BAD_ARG, "%s: %d arguments, want %s", argv[1], argc - 2,
                       n_wanted == 3 ? "one, the folder" : "none");
    return WT_OK;
}

int cmd_kernels(int argc, char **argv)
{
    request r = {0};
    bool help;
    int verb = 0;
    const wt_option options[] = {
        OPTION_TEXT("arch", 'a', &r.architectures, "80,90,...", "architectures (warm, pack)"),
        {.name = "json", .value = &r.json, .help = "machine-readable output on stdout"},
    };
    wt_status status = wt_options_parse(options, 2, &argc, argv, &help);
    if (!status && help) return print_help(options, 2);
    if (!status) status = find_verb(argc, argv, &verb);
    if (status) return command_fail("kernels", status);
    r.folder = argc > 2 ? argv[2] : NULL;
    return verbs[verb].run(&r);
}
