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
/// Floats in a vector of the clone that the loader picks, for code whose sums are to fill registers: of vectors that
/// are wider GCC keeps sums in memory.  [any]
static inline int wt_simd_floats(void)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    if (__builtin_cpu_supports("x86-64-v4")) return 16;
#endif
    return 8;
}
#define WT_INLINE static inline __attribute__((always_inline))

typedef float wt_f32x4 __attribute__((vector_size(16)));
typedef float wt_f32x8 __attribute__((vector_size(32)));
typedef float wt_f32x16 __attribute__((vector_size(64)));
typedef double wt_f64x2 __attribute__((vector_size(16)));
typedef double wt_f64x4 __attribute__((vector_size(32)));
typedef double wt_f64x8 __attribute__((vector_size(64)));
typedef int wt_i32x8 __attribute__((vector_size(32)));
typedef int wt_i32x16 __attribute__((vector_size(64)));

/// Eight rows of eight become eight columns. Each stage exchanges one bit of the number of the vector for one of the
/// place in it, within 128 bits where it can.  [any]
WT_INLINE void wt_transpose_8x8(wt_f32x8 *v)
{
    const wt_i32x8 low = {0, 8, 1, 9, 4, 12, 5, 13}, high = {2, 10, 3, 11, 6, 14, 7, 15};
    const wt_i32x8 left = {0, 1, 2, 3, 8, 9, 10, 11}, right = {4, 5, 6, 7, 12, 13, 14, 15};
    wt_f32x8 a[8];
    for (int i = 0; i < 4; i++) { // rows i and i + 2 of each four
        const int row = i / 2 * 4 + i % 2;
        a[2 * i] = __builtin_shuffle(v[row], v[row + 2], low);
        a[2 * i + 1] = __builtin_shuffle(v[row], v[row + 2], high);
    }
    for (int half = 0; half < 2; half++)
        for (int part = 0; part < 2; part++) {
            const wt_f32x8 even = a[4 * half + part], odd = a[4 * half + 2 + part];
            v[4 * half + 2 * part] = __builtin_shuffle(even, odd, low);
            v[4 * half + 2 * part + 1] = __builtin_shuffle(even, odd, high);
        }
    for (int i = 0; i < 4; i++) {
        const wt_f32x8 top = v[i], bottom = v[i + 4];
        v[i] = __builtin_shuffle(top, bottom, left);
        v[i + 4] = __builtin_shuffle(top, bottom, right);
    }
}

#endif
