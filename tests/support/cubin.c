// A cubin is an ELF file. Facts of kernels stand in sections of their own: .nv.info has those of all, each with its
// symbol, .nv.info.NAME a kernel's. An entry is a byte of form, one of meaning, two of value or of the length of what
// follows. Meanings as `cuobjdump -elf` names them (CUDA 13.0, EIATTR_...); ptxas told to print what it uses
// (--ptxas-options=-v) gives the same numbers.
#include "cubin.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum {
    FORM_BYTES = 4,      ///< of an entry whose value has a length; another's value are the two bytes
    MAX_THREADS = 0x05,  ///< three numbers
    FRAME_SIZE = 0x11,   ///< symbol and bytes
    MAXREG_COUNT = 0x1b, ///< what the bounds leave: 65536 / threads / blocks, 255 without a number of blocks
    REGCOUNT = 0x2f,     ///< symbol and number
    MOST_THREADS = 1024,
    GIVEN_OUT = 8, ///< registers of a thread are given out so many at a time
};

typedef struct cubin {
    const unsigned char *at;
    size_t size_bytes;
    Elf64_Ehdr header;
    cubin_kernel *kernels;
    int n;
} cubin;

static bool section_at(const cubin *c, int k, Elf64_Shdr *s)
{
    const size_t at = c->header.e_shoff + (size_t)k * sizeof *s;
    if (k >= c->header.e_shnum || at + sizeof *s > c->size_bytes) return false;
    memcpy(s, c->at + at, sizeof *s);
    return s->sh_type == SHT_NOBITS || s->sh_offset + s->sh_size <= c->size_bytes;
}

static const char *string_at(const cubin *c, int table, size_t at)
{
    Elf64_Shdr s;
    return section_at(c, table, &s) && at < s.sh_size ? (const char *)c->at + s.sh_offset + at : "";
}

static const char *symbol_name(const cubin *c, uint32_t which)
{
    Elf64_Shdr s;
    Elf64_Sym symbol;
    for (int k = 0; section_at(c, k, &s); k++) {
        if (s.sh_type != SHT_SYMTAB || (which + 1) * sizeof symbol > s.sh_size) continue;
        memcpy(&symbol, c->at + s.sh_offset + which * sizeof symbol, sizeof symbol);
        return string_at(c, (int)s.sh_link, symbol.st_name);
    }
    return "";
}

static cubin_kernel *find(const cubin *c, const char *name)
{
    for (int k = 0; k < c->n; k++)
        if (!strcmp(c->kernels[k].name, name)) return &c->kernels[k];
    return NULL;
}

/// Each entry of a section of facts of `kernel`, NULL: of all.
static void read_facts(const cubin *c, const Elf64_Shdr *s, cubin_kernel *kernel)
{
    const unsigned char *p = c->at + s->sh_offset, *end = p + s->sh_size;
    while (end - p >= 4) {
        const int form = p[0], meaning = p[1], value = p[2] | p[3] << 8;
        uint32_t words[3] = {0};
        p += 4;
        if (form == FORM_BYTES) {
            if (value > end - p) return;
            memcpy(words, p, (size_t)value < sizeof words ? (size_t)value : sizeof words);
            p += value;
        }
        if (kernel && meaning == MAX_THREADS) kernel->threads = (int)(words[0] * words[1] * words[2]);
        if (kernel && meaning == MAXREG_COUNT) kernel->most_registers = value;
        if (kernel || (meaning != REGCOUNT && meaning != FRAME_SIZE)) continue;
        cubin_kernel *of = find(c, symbol_name(c, words[0]));
        if (of && meaning == REGCOUNT) of->registers = ((int)words[1] + GIVEN_OUT - 1) / GIVEN_OUT * GIVEN_OUT;
        if (of && meaning == FRAME_SIZE) of->local_bytes = (int)words[1];
    }
}

int cubin_read(const void *image, size_t size_bytes, cubin_kernel *kernels)
{
    static const char facts[] = ".nv.info", code[] = ".text.";
    cubin c = {.at = image, .size_bytes = size_bytes, .kernels = kernels};
    Elf64_Shdr s;
    if (size_bytes < sizeof c.header || memcmp(image, ELFMAG, SELFMAG)) return -1;
    memcpy(&c.header, image, sizeof c.header);
    for (int k = 0; section_at(&c, k, &s); k++) {
        const char *name = string_at(&c, c.header.e_shstrndx, s.sh_name);
        if (strncmp(name, code, strlen(code))) continue;
        if (c.n == CUBIN_KERNELS || strlen(name + strlen(code)) >= sizeof kernels->name) return -1;
        kernels[c.n] = (cubin_kernel){.threads = MOST_THREADS};
        strcpy(kernels[c.n++].name, name + strlen(code));
    }
    for (int k = 0; section_at(&c, k, &s); k++) {
        const char *name = string_at(&c, c.header.e_shstrndx, s.sh_name);
        if (strncmp(name, facts, strlen(facts))) continue;
        cubin_kernel *kernel = name[strlen(facts)] ? find(&c, name + strlen(facts) + 1) : NULL;
        if (kernel || !name[strlen(facts)]) read_facts(&c, &s, kernel);
    }
    return c.n;
}

static int whole_warps(int threads) { return (threads + 31) / 32 * 32; }

int cubin_blocks(const cubin_kernel *kernel, int threads)
{
    const int registers = kernel->registers > 0 ? kernel->registers : GIVEN_OUT;
    return CUBIN_REGISTERS / (registers * whole_warps(threads));
}

int cubin_wanted(const cubin_kernel *kernel)
{
    if (kernel->most_registers <= 0 || kernel->most_registers >= 255) return 1;
    return CUBIN_REGISTERS / (kernel->most_registers * whole_warps(kernel->threads));
}
