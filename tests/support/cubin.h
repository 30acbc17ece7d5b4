/// What the compiler says in a cubin of its kernels, as no GPU is needed to read it: registers, threads, local memory.
#ifndef WT_TEST_CUBIN_H
#define WT_TEST_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

enum { CUBIN_KERNELS = 64, CUBIN_REGISTERS = 65536 }; ///< registers of a processor, of all that this library knows

typedef struct cubin_kernel {
    char name[64];
    int threads;        ///< the most of a block; 1024 where the text has no bounds
    int registers;      ///< of a thread, as they are given out: multiples of 8
    int most_registers; ///< that the bounds leave
    int local_bytes;    ///< of a thread: what it spills, and arrays that have places
} cubin_kernel;

/// Returns how many kernels there are, or -1: no such file, or more than CUBIN_KERNELS.
int cubin_read(const void *image, size_t size_bytes, cubin_kernel *kernels);

/// Blocks of so many threads for which a processor has registers; and those that the bounds want, 1 where they say
/// none.
int cubin_blocks(const cubin_kernel *kernel, int threads);
int cubin_wanted(const cubin_kernel *kernel);

#endif
