// What a GPU has in another form than the host: blocks of GGUF as elements and scales apart, and scales with zeros
// beside them. Layouts are those of tensor.c.
#include "gpu.h"
#include "quant.h"

bool wt__llm_is_repacked(const wt__linear *l)
{
    const wt_dtype t = l->weight.dtype;
    return t == WT_DTYPE_Q8_0 || t == WT_DTYPE_Q4_0 || t == WT_DTYPE_Q6_K;
}

static float half_value(unsigned bits)
{
    const uint16_t half = (uint16_t)bits;
    float x;
    wt_tensor_to_f32(&(wt_tensor){&half, WT_DTYPE_F16, 1, {1}}, 0, 1, &x);
    return x;
}

static bool is_half(float x) { return half_value(wt_weight_half(x)) == x; }

bool wt__llm_are_halves(const float *x, int64_t n)
{
    enum { RUN = 1024 };
    for (int64_t first = 0; first < n; first += RUN) {
        const int64_t end = n - first < RUN ? n : first + RUN;
        int odd = 0; // by the bits, in vectors: within the normal numbers of F16, 10 bits of mantissa
        for (int64_t k = first; k < end; k++) {
            const int bits = wt_bits(x[k]) & 0x7fffffff;
            odd |= (bits & 0x1fff) | (bits < 0x38800000) | (bits >= 0x47800000);
        }
        for (int64_t k = first; k < end && odd; k++)
            if (!is_half(x[k])) return false;
    }
    return true;
}

static uint32_t scale_and_zero(const wt__linear *l, size_t k)
{
    return wt_weight_half(l->scales[k]) | (uint32_t)(l->zeros ? l->zeros[k] : 8) << 16;
}

static uint32_t scale(const wt__linear *l, size_t k) { return (uint32_t)wt_bits(l->scales[k]); }

static void pad(const wt__linear *l, uint32_t (*word_of)(const wt__linear *, size_t), size_t begin, size_t end,
                unsigned char *to)
{
    const size_t words = (size_t)wt__quant_words(l), across = (size_t)wt__quant_scales(l, 1);
    size_t row = begin / 4 / words, column = begin / 4 % words;
    for (size_t k = begin; k < end; k += 4) {
        const uint32_t word = column < across ? word_of(l, row * across + column) : 0;
        memcpy(to + k - begin, &word, sizeof word);
        if (++column < words) continue;
        column = 0;
        row++;
    }
}

void wt__llm_scales_and_zeros(const wt__linear *l, size_t begin, size_t end, unsigned char *to)
{
    pad(l, scale_and_zero, begin, end, to);
}

void wt__llm_padded_scales(const wt__linear *l, size_t begin, size_t end, unsigned char *to)
{
    pad(l, scale, begin, end, to);
}

/// 16 six-bit numbers of 256, with scale j: two halves of four parts of 32; as wt_mm_repack_16.
static void elements_of_q6_k(const uint8_t *block, int j, uint8_t *to)
{
    const int low_shift = j & 4 ? 4 : 0, high_shift = j / 2 % 4 * 2;
    const uint8_t *low = block + j / 8 * 64 + j % 4 * 16, *high = block + 128 + j / 8 * 32 + j % 2 * 16;
    for (int k = 0; k < 16; k++)
        to[k] = (uint8_t)(((low[k] >> low_shift & 15) | (high[k] >> high_shift & 3) << 4) - 32);
}

/// Low nibbles are the first 16 of 32.
static void elements_of_q4_0(const uint8_t *block, uint8_t *to)
{
    for (int k = 0; k < 16; k++) {
        const int a = block[2 + 2 * k % 16], b = block[3 + 2 * k % 16], shift = k < 8 ? 0 : 4;
        to[k] = (uint8_t)((a >> shift & 15) | (b >> shift & 15) << 4);
    }
}

void wt__llm_elements(const wt__linear *l, size_t begin, size_t end, unsigned char *to)
{
    const uint8_t *from = l->weight.data;
    switch (l->weight.dtype) {
    case WT_DTYPE_Q8_0:
        for (size_t k = begin / 32; k < end / 32; k++) memcpy(to + 32 * k - begin, from + 34 * k + 2, 32);
        break;
    case WT_DTYPE_Q4_0:
        for (size_t k = begin / 16; k < end / 16; k++) elements_of_q4_0(from + 18 * k, to + 16 * k - begin);
        break;
    default:
        for (size_t k = begin / 16; k < end / 16; k++)
            elements_of_q6_k(from + k / 16 * 210, (int)(k % 16), to + 16 * k - begin);
    }
}

void wt__llm_block_scales(const wt__linear *l, size_t begin, size_t end, unsigned char *to)
{
    const uint8_t *from = l->weight.data;
    const size_t bytes = l->weight.dtype == WT_DTYPE_Q8_0 ? 34 : 18;
    if (l->weight.dtype != WT_DTYPE_Q6_K) {
        for (size_t k = begin / 2; k < end / 2; k++) memcpy(to + 2 * k - begin, from + bytes * k, 2);
        return;
    }
    for (size_t k = begin / 4; k < end / 4; k++) {
        const uint8_t *block = from + k / 16 * 210;
        const float scale = half_value(block[208] | (unsigned)block[209] << 8) * (float)(int8_t)block[192 + k % 16];
        memcpy(to + 4 * k - begin, &scale, sizeof scale);
    }
}
