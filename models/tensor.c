// Types of tensors and what their bits mean. Elements are read with memcpy: a file may place them at odd addresses.
#include <warptone/tensor.h>

#include <stdio.h>
#include <string.h>

typedef struct layout {
    const char *name;
    int n_elements, n_bytes; // of a block; of one element where there are none
} layout;

static const layout layouts[WT_N_DTYPES] = {
#define ROW(code, name, bits)                    [code] = {name, 1, bits / 8},
#define BLOCK_ROW(code, name, n_elements, bytes) [code] = {name, n_elements, bytes},
    WT_DTYPE_LIST(ROW) WT_DTYPE_BLOCK_LIST(BLOCK_ROW)
#undef ROW
#undef BLOCK_ROW
};

const char *wt_dtype_name(wt_dtype dtype) { return (unsigned)dtype < WT_N_DTYPES ? layouts[dtype].name : "unknown"; }

wt_status wt_dtype_find(const char *name, wt_dtype *dtype)
{
    for (int k = 0; k < WT_N_DTYPES; k++)
        if (!strcmp(name, layouts[k].name)) {
            *dtype = (wt_dtype)k;
            return WT_OK;
        }
    char known[160] = "";
    for (int k = 0; k < WT_N_DTYPES; k++) {
        size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s", k ? ", " : "", layouts[k].name);
    }
    return wt_fail(WT_ERR_NOT_FOUND, "type \"%.40s\" is not known, want one of %s", name, known);
}

int wt_dtype_block(wt_dtype dtype) { return layouts[dtype].n_elements; }

size_t wt_dtype_bytes(wt_dtype dtype, int64_t n)
{
    const layout *l = &layouts[dtype];
    size_t bytes;
    if (n < 0 || n % l->n_elements) return 0;
    return __builtin_mul_overflow((size_t)(n / l->n_elements), (size_t)l->n_bytes, &bytes) ? 0 : bytes;
}

int64_t wt_tensor_elements(const wt_tensor *tensor)
{
    int64_t n = 1;
    for (int k = 0; k < tensor->rank; k++) n *= tensor->shape[k];
    return n;
}

size_t wt_tensor_bytes(const wt_tensor *tensor) { return wt_dtype_bytes(tensor->dtype, wt_tensor_elements(tensor)); }

const char *wt_shape_describe(int rank, const int64_t *shape, char text[96])
{
    size_t length = 0;
    snprintf(text, 96, rank ? "" : "[]");
    for (int k = 0; k < rank && length < 95; k++)
        length += (size_t)snprintf(text + length, 96 - length, "[%lld]", (long long)shape[k]);
    return text;
}

const char *wt_tensor_describe(const wt_tensor *tensor, char text[96])
{
    wt_shape_describe(tensor->rank, tensor->shape, text);
    size_t length = strlen(text);
    snprintf(text + length, 96 - length, " %s", wt_dtype_name(tensor->dtype));
    return text;
}

// ---- small floating-point types

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/// The bits of a magnitude `m` with `n_mantissa` bits of mantissa and a bias of `bias`. Subnormals go through a
/// subtraction of normal numbers, so that a thread that flushes subnormals to zero reads the same. No branches: a loop
/// over it is vectorised.
static inline uint32_t widen(uint32_t m, int n_mantissa, uint32_t bias)
{
    const uint32_t shifted = m << (23 - n_mantissa), offset = (127 - bias) << 23;
    const float subnormal = float_of(shifted + offset + (1u << 23)) - float_of(offset + (1u << 23));
    return m >> n_mantissa ? shifted + offset : bits_of(subnormal);
}

static inline float half(uint16_t h) // IEEE 754 binary16
{
    const uint32_t m = h & 0x7fff, special = m >= 0x7c00 ? 112u << 23 : 0; // exponent 31 + 112 + 112 = 255
    return float_of((widen(m, 10, 15) + special) | (uint32_t)(h & 0x8000) << 16);
}

static inline float brain(uint16_t h) { return float_of((uint32_t)h << 16); }

static inline float e5m2(uint8_t b) { return half((uint16_t)(b << 8)); } // OCP FP8 1.0: binary16 with a short mantissa

static inline float e4m3(uint8_t b) // OCP FP8 1.0: no infinities, NaN is 0x7f and 0xff, largest 448
{
    const uint32_t m = b & 0x7f, bits = widen(m, 3, 7);
    return float_of((m == 0x7f ? 0x7fc00000u : bits) | (uint32_t)(b & 0x80) << 24);
}

static inline float half_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return half(h);
}

// ---- blocks of GGUF: ggml/src/ggml-common.h and dequantize_row_* of ggml-quants.c (ggml-org/ggml)

/// f16 d, i8 q[32]: d q.
static void q8_0(const uint8_t *p, float *out)
{
    const float d = half_at(p);
    for (int k = 0; k < 32; k++) out[k] = d * (float)(int8_t)p[2 + k];
}

/// f16 d, u8 q[16]: d (q - 8); the low nibbles are the first 16 elements, the high ones the last.
static void q4_0(const uint8_t *p, float *out)
{
    const float d = half_at(p);
    for (int k = 0; k < 16; k++) {
        out[k] = d * (float)((p[2 + k] & 15) - 8);
        out[k + 16] = d * (float)((p[2 + k] >> 4) - 8);
    }
}

/// Scale and minimum, 6 bits each, of part j of 8: the first four lie whole in s[0..3] and s[4..7], of the last four
/// the low 4 bits in s[8..11] and the high 2 bits above the first four.
static void q4_k_part(const uint8_t s[12], int j, float *scale, float *minimum)
{
    const bool first = j < 4;
    *scale = (float)(first ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4);
    *minimum = (float)(first ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4);
}

/// f16 d, f16 dmin, u8 s[12], u8 q[128]: 8 parts of 32, d scale q - dmin minimum; two parts share 32 bytes of q.
static void q4_k(const uint8_t *p, float *out)
{
    const float d = half_at(p), dmin = half_at(p + 2);
    for (int j = 0; j < 8; j++) {
        const uint8_t *q = p + 16 + j / 2 * 32;
        float scale, minimum;
        q4_k_part(p + 4, j, &scale, &minimum);
        scale *= d;
        minimum *= dmin;
        for (int k = 0; k < 32; k++) *out++ = scale * (float)(j & 1 ? q[k] >> 4 : q[k] & 15) - minimum;
    }
}

/// u8 low[128], u8 high[64], i8 scale[16], f16 d: d scale (q - 32), q of 6 bits, a scale for 16 elements. Each half of
/// 128 elements has 64 bytes of low nibbles and 32 bytes of 2-bit tops.
static void q6_k(const uint8_t *p, float *out)
{
    const float d = half_at(p + 208);
    for (int j = 0; j < 16; j++) {
        const int part = j % 8 / 2, low_shift = part & 2 ? 4 : 0, high_shift = 2 * part;
        const uint8_t *low = p + j / 8 * 64 + j % 4 * 16, *high = p + 128 + j / 8 * 32 + j % 2 * 16;
        const float scale = d * (float)(int8_t)p[192 + j];
        for (int k = 0; k < 16; k++)
            *out++ = scale * (float)(((low[k] >> low_shift & 15) | (high[k] >> high_shift & 3) << 4) - 32);
    }
}

// ---- two numbers of 4 bits

static void i4(const uint8_t *p, float *out)
{
    out[0] = (float)(((*p & 15) ^ 8) - 8);
    out[1] = (float)(((*p >> 4) ^ 8) - 8);
}

static void u4(const uint8_t *p, float *out)
{
    out[0] = (float)(*p & 15);
    out[1] = (float)(*p >> 4);
}

static void f4(const uint8_t *p, float *out) // OCP E2M1
{
    static const float values[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    out[0] = values[*p & 15];
    out[1] = values[*p >> 4];
}

// ---- rows of elements

#define READ(name, type, value)                                                                                        \
    static void name(const uint8_t *p, int64_t n, float *out)                                                          \
    {                                                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            type x;                                                                                                    \
            memcpy(&x, p + k * (int64_t)sizeof x, sizeof x);                                                           \
            out[k] = value;                                                                                            \
        }                                                                                                              \
    }
READ(read_f32, float, x)
READ(read_f64, double, (float)x)
READ(read_f16, uint16_t, half(x))
READ(read_bf16, uint16_t, brain(x))
READ(read_e4m3, uint8_t, e4m3(x))
READ(read_e5m2, uint8_t, e5m2(x))
READ(read_i64, int64_t, (float)x)
READ(read_i32, int32_t, (float)x)
READ(read_i16, int16_t, (float)x)
READ(read_i8, int8_t, (float)x)
READ(read_u8, uint8_t, (float)x)
#undef READ

#define READ_BLOCKS(name, block, code)                                                                                 \
    static void name(const uint8_t *p, int64_t n, float *out)                                                          \
    {                                                                                                                  \
        const layout *l = &layouts[code];                                                                              \
        for (int64_t k = 0; k < n / l->n_elements; k++) block(p + k * l->n_bytes, out + k * l->n_elements);            \
    }
READ_BLOCKS(read_q8_0, q8_0, WT_DTYPE_Q8_0)
READ_BLOCKS(read_q4_0, q4_0, WT_DTYPE_Q4_0)
READ_BLOCKS(read_q4_k, q4_k, WT_DTYPE_Q4_K)
READ_BLOCKS(read_q6_k, q6_k, WT_DTYPE_Q6_K)
READ_BLOCKS(read_i4, i4, WT_DTYPE_I4)
READ_BLOCKS(read_u4, u4, WT_DTYPE_U4)
READ_BLOCKS(read_f4, f4, WT_DTYPE_F4)
#undef READ_BLOCKS

static void (*const readers[WT_N_DTYPES])(const uint8_t *, int64_t, float *) = {
    [WT_DTYPE_F32] = read_f32,   [WT_DTYPE_F64] = read_f64,      [WT_DTYPE_F16] = read_f16,
    [WT_DTYPE_BF16] = read_bf16, [WT_DTYPE_F8_E4M3] = read_e4m3, [WT_DTYPE_F8_E5M2] = read_e5m2,
    [WT_DTYPE_I64] = read_i64,   [WT_DTYPE_I32] = read_i32,      [WT_DTYPE_I16] = read_i16,
    [WT_DTYPE_I8] = read_i8,     [WT_DTYPE_U8] = read_u8,        [WT_DTYPE_BOOL] = read_u8,
    [WT_DTYPE_Q8_0] = read_q8_0, [WT_DTYPE_Q4_0] = read_q4_0,    [WT_DTYPE_Q4_K] = read_q4_k,
    [WT_DTYPE_Q6_K] = read_q6_k, [WT_DTYPE_I4] = read_i4,        [WT_DTYPE_U4] = read_u4,
    [WT_DTYPE_F4] = read_f4,
};

void wt_tensor_to_f32(const wt_tensor *tensor, int64_t first, int64_t n, float *out)
{
    readers[tensor->dtype]((const uint8_t *)tensor->data + wt_dtype_bytes(tensor->dtype, first), n, out);
}
