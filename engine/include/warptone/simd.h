/// Portable vector code: GCC vector extensions, one clone of a hot function per x86-64 level.
#ifndef WARPTONE_SIMD_H
#define WARPTONE_SIMD_H

/// Stands before a hot function: the loader picks AVX-512, AVX2+FMA or baseline at start. Helpers it calls are to be
/// `WT_INLINE`, so that they are compiled into each clone. Empty in sanitizer builds, whose runtimes are not up
/// when the loader's resolvers run.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(WT_SANITIZED)
#    define WT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#    define WT_CLONES
#endif
#define WT_INLINE static inline __attribute__((always_inline))

typedef float wt_f32x4 __attribute__((vector_size(16)));
typedef float wt_f32x8 __attribute__((vector_size(32)));
typedef float wt_f32x16 __attribute__((vector_size(64)));
typedef double wt_f64x2 __attribute__((vector_size(16)));
typedef double wt_f64x4 __attribute__((vector_size(32)));
typedef double wt_f64x8 __attribute__((vector_size(64)));
typedef int wt_i32x8 __attribute__((vector_size(32)));
typedef int wt_i32x16 __attribute__((vector_size(64)));

#endif
