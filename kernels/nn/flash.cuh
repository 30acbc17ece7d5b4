// Attention over tiles of KEYS keys, where a warp has 16 queries: what its rows share, whatever they are part of (a
// struct with sum[D_HEAD / 8][4], most[2] and total[2]). Scores and sums lie as those of mma.m16n8k16: lane 4 g + t has
// rows g and g + 8, columns 2t and 2t + 1 of each 8. Wants D_HEAD, NOTHING (below every score) and pair_of, which makes
// a word of two floats in the type of the values.
#ifndef KEYS
#    define KEYS 64
#endif

// Scores to shares under the new maximum; what was summed under the old one is to fade. `scale` to powers of 2.
template <class R> static __device__ __forceinline__ void share(R *r, float scale, float (*s)[4], float *fade)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float most = r->most[h], total = 0;
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) most = fmaxf(most, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
        most = fmaxf(most, __shfl_xor_sync(ALL, most, 1));
        most = fmaxf(most, __shfl_xor_sync(ALL, most, 2));
        const float base = most == NOTHING ? 0 : most * scale;
        fade[h] = power_of_2(r->most[h] * scale - base);
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int c = 2 * h; c < 2 * h + 2; c++) total += s[n][c] = power_of_2(s[n][c] * scale - base);
        r->total[h] = r->total[h] * fade[h] + total; // of the lane's columns
        r->most[h] = most;
    }
}

template <class R> static __device__ __forceinline__ void fade_sums(R *r, const float *fade)
{
    if (__all_sync(ALL, fade[0] == 1 && fade[1] == 1)) return; // mostly, after the first tiles
#pragma unroll
    for (int n = 0; n < D_HEAD / 8; n++)
#pragma unroll
        for (int c = 0; c < 4; c++) r->sum[n][c] *= fade[c / 2];
}

template <class R> static __device__ __forceinline__ void share(R *r, float scale, float (*s)[4])
{
    float fade[2];
    share(r, scale, s, fade);
    fade_sums(r, fade);
}

// Shares of 16 keys, the tile's k-th, as the first side of a product.
static __device__ __forceinline__ void shares_of(const float (*s)[4], int k, unsigned *p)
{
    p[0] = pair_of(s[2 * k][0], s[2 * k][1]);
    p[1] = pair_of(s[2 * k][2], s[2 * k][3]);
    p[2] = pair_of(s[2 * k + 1][0], s[2 * k + 1][1]);
    p[3] = pair_of(s[2 * k + 1][2], s[2 * k + 1][3]);
}
