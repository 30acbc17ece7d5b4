/// Vectors as wide as the processor's, from one text. GCC keeps a vector wider than its target's registers in memory
/// wherever a loop carries it, so WT_CLONES serves sums of 64 bytes on AVX-512 alone: on AVX2 each addition became
/// loads and stores of quarters. Here the text itself knows the width:
///
///     // dot_level.h
///     #ifndef WT_LEVEL
///     #    define WT_LEVEL_TEXT "dot_level.h"
///     #    include <warptone/simd_levels.h>    // this text for AVX-512, AVX2 and the baseline
///     #else
///     static double WT_LEVEL(dot)(..) { .. }   // on vectors of WT_LEVEL_BYTES
///     #endif
///
///     WT_LEVEL_CALL(dot, x, y, n)              // the one of this processor
///
/// Results are to be the same at each level: sums that lie in a fixed number of lanes go over several vectors.
#include <warptone/simd.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    pragma GCC push_options
#    pragma GCC target("arch=x86-64-v4")
#    define WT_LEVEL_BYTES 64
#    define WT_LEVEL(name) name##_64
#    include WT_LEVEL_TEXT
#    undef WT_LEVEL_BYTES
#    undef WT_LEVEL
#    pragma GCC pop_options
#    pragma GCC push_options
#    pragma GCC target("arch=x86-64-v3")
#    define WT_LEVEL_BYTES 32
#    define WT_LEVEL(name) name##_32
#    include WT_LEVEL_TEXT
#    undef WT_LEVEL_BYTES
#    undef WT_LEVEL
#    pragma GCC pop_options
#    define WT_LEVEL_CALL(name, ...)                                                                                   \
        (__builtin_cpu_supports("x86-64-v4")   ? name##_64(__VA_ARGS__)                                                \
         : __builtin_cpu_supports("x86-64-v3") ? name##_32(__VA_ARGS__)                                                \
                                               : name##_16(__VA_ARGS__))
#else
#    define WT_LEVEL_CALL(name, ...) name##_16(__VA_ARGS__)
#endif
#define WT_LEVEL_BYTES 16
#define WT_LEVEL(name) name##_16
#include WT_LEVEL_TEXT
#undef WT_LEVEL_BYTES
#undef WT_LEVEL
#undef WT_LEVEL_TEXT
