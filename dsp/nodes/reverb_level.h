// Text of each level (simd_levels.inc): the feedback network, whose sixteen lines are as many vectors as they need.
#ifndef WT_LEVEL
#    define WT_LEVEL_TEXT "reverb_level.h"
#    include <warptone/simd_levels.inc>
#else

#    define VEC      WT_LEVEL(lines)
#    define INTS     WT_LEVEL(line_numbers)
#    define UNSIGNED WT_LEVEL(line_phases)
#    define F32S     (WT_LEVEL_BYTES / 4)
#    define PARTS    (REVERB_LINES / F32S)

typedef float VEC __attribute__((vector_size(WT_LEVEL_BYTES), aligned(4), may_alias));
typedef int INTS __attribute__((vector_size(WT_LEVEL_BYTES)));
typedef unsigned UNSIGNED __attribute__((vector_size(WT_LEVEL_BYTES)));

#    if WT_LEVEL_BYTES == 64
static const INTS WT_LEVEL(lane) = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#    elif WT_LEVEL_BYTES == 32
static const INTS WT_LEVEL(lane) = {0, 1, 2, 3, 4, 5, 6, 7};
#    else
static const INTS WT_LEVEL(lane) = {0, 1, 2, 3};
#    endif

// -1 for the lanes that have the bit, else 1.
WT_INLINE VEC WT_LEVEL(signs)(const int bit)
{
    return __builtin_convertvector(1 + 2 * ((WT_LEVEL(lane) & bit) != 0), VEC);
}

// The rotation's sine for each line of a part at one frame, negative for the even ones: lfo_sine on the phases.
WT_INLINE VEC WT_LEVEL(twist_lines)(float twist, unsigned phase, int part)
{
    const UNSIGNED pair = (UNSIGNED)(WT_LEVEL(lane) + part * F32S) >> 1;
    const UNSIGNED at = phase + pair * REVERB_PAIR_PHASE, outer = -((at + 0x40000000u) >> 31);
    const INTS folded = (INTS)((at ^ outer) + (outer & 0x80000001u)); // half a turn less the phase where outer
    const VEC x = __builtin_convertvector(folded, VEC) * 4.656612873e-10f, x2 = x * x;
    const VEC p = 2.55016404f + x2 * (-0.599264529f + x2 * 0.0821458866f);
    return -WT_LEVEL(signs)(1) * twist * x * (3.14159265f + x2 * (-5.16771278f + x2 * p));
}

// Fast Hadamard transform of 16 numbers, scaled to keep energy.
WT_INLINE void WT_LEVEL(hadamard)(VEC *y)
{
#    pragma GCC unroll 4
    for (int bit = 1; bit < F32S; bit *= 2)
        for (int i = 0; i < PARTS; i++)
            y[i] = WT_LEVEL(signs)(bit) * y[i] + __builtin_shuffle(y[i], WT_LEVEL(lane) ^ bit);
#    pragma GCC unroll 4
    for (int apart = 1; apart < PARTS; apart *= 2)
        for (int i = 0; i < PARTS; i++) {
            if (i & apart) continue;
            const VEC low = y[i], high = y[i + apart];
            y[i] = low + high, y[i + apart] = low - high;
        }
    for (int i = 0; i < PARTS; i++) y[i] *= 0.25f;
}

static void WT_LEVEL(turn_network)(network *w)
{
    VEC s[PARTS], gain[PARTS], pole[PARTS], left[PARTS], right[PARTS], y[PARTS];
    memcpy(s, w->damping, sizeof s), memcpy(gain, w->k->gain, sizeof gain), memcpy(pole, w->k->pole, sizeof pole);
    for (int i = 0; i < REVERB_LINES; i++) {
        left[i / F32S][i % F32S] = reverb_sign(REVERB_SIGNS_LEFT, i);
        right[i / F32S][i % F32S] = reverb_sign(REVERB_SIGNS_RIGHT, i);
    }
    for (int f = 0; f < w->n; f++) {
        VEC *line = (VEC *)w->line[f];
        for (int i = 0; i < PARTS; i++) {
            const VEC sine = WT_LEVEL(twist_lines)(w->k->twist, (unsigned)(w->position + f) * w->p->increment, i);
            const VEC square = 1.0f - sine * sine;
            VEC cosine;
            for (int k = 0; k < F32S; k++) cosine[k] = sqrtf(square[k]);
            s[i] = gain[i] * line[i] + pole[i] * s[i];
            y[i] = cosine * s[i] + sine * __builtin_shuffle(s[i], WT_LEVEL(lane) ^ 1);
        }
        WT_LEVEL(hadamard)(y);
        w->wet[0][f] = y[REVERB_LEFT / F32S][REVERB_LEFT % F32S];
        w->wet[1][f] = y[REVERB_RIGHT / F32S][REVERB_RIGHT % F32S];
        for (int i = 0; i < PARTS; i++) {
            y[i] += left[i] * w->x[0][f];
            if (w->n_in > 1) y[i] += right[i] * w->x[1][f];
            line[i] = y[i];
        }
    }
    memcpy(w->damping, s, sizeof s);
}

#    undef VEC
#    undef INTS
#    undef UNSIGNED
#    undef F32S
#    undef PARTS
#endif
