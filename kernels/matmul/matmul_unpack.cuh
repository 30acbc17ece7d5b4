// Weights of type MM_W as the tensor cores take them beside activations of type MM_X. Activations of 8 bits meet
// weights of their own type as they are. Else eight weights become four pairs of MM_X's 16-bit type, exactly: small
// types are placed into the bits of a float whose exponent is known, and one fused multiply and add takes the offset
// away (or moves the exponent). What is not needed for MM_W and MM_X is compiled out.

#define MM_BF (MM_X == WT_MM_BF16)

#define MM_W_IS_16 (MM_W == WT_MM_F16 || MM_W == WT_MM_BF16)
#define MM_W_IS_8  (MM_W == WT_MM_I8 || MM_W == WT_MM_E4M3 || MM_W == WT_MM_E5M2)
#define MM_X_IS_8  (MM_X == WT_MM_I8 || MM_X == WT_MM_E4M3)
#define MM_X_IS_4  (MM_X == WT_MM_E2M1)

#define MM_X_IS_32 (MM_X == WT_MM_F32 || MM_X == WT_MM_TF32) // beside weights of that type

#define VECTOR (MM_X_IS_32 ? 4 : MM_W_IS_16 ? 8 : MM_W_IS_8 ? 16 : 32) // elements of W in 16 bytes
#define UNIT   (MM_X_IS_32 ? 4 : MM_X_IS_4 ? 32 : MM_X_IS_8 ? 16 : 8)  // elements of x in 16 bytes, two mma
#define UNITS  (VECTOR / UNIT)
#define WORDS  (4 / UNITS) // of W in a unit

#if MM_X == WT_MM_I8
typedef int mm_sum;
#    define mma_x mma_i8
#elif MM_X == WT_MM_E4M3
typedef float mm_sum;
#    define mma_x mma_e4m3
#elif MM_X_IS_32
typedef float mm_sum;
#    define mma_x mma_tf32
#elif MM_X_IS_4
typedef float mm_sum; // mma_e2m1, with scales
#elif MM_X == WT_MM_BF16
typedef float mm_sum;
#    define mma_x mma_bf16
#else
typedef float mm_sum;
#    define mma_x mma_f16
#endif

static __device__ __forceinline__ unsigned fma_x2(unsigned a, unsigned b, unsigned c)
{
    return MM_BF ? fma_bf16x2(a, b, c) : fma_f16x2(a, b, c);
}

#define ONE_X2        (MM_BF ? 0x3f803f80u : 0x3c003c00u)
#define MINUS_ONE_X2  (MM_BF ? 0xbf80bf80u : 0xbc00bc00u)
#define MINUS_ZERO_X2 0x80008000u

// a & mask | base. Said so since the compiler makes two of it, for the sake of a register.
static __device__ __forceinline__ unsigned and_or(unsigned a, unsigned mask, unsigned base)
{
    unsigned r;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(a), "r"(mask), "r"(base));
    return r;
}

// Four bytes as the pairs (b0, b2), (b1, b3), for which no byte must be moved alone.
static __device__ __forceinline__ void unpack_4(unsigned word, unsigned *pairs)
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        if (MM_W == WT_MM_I8) {
            const unsigned p = k ? word >> 8 : word; // in the low bytes
            if (MM_BF) // 128 + the low 7 bits, less 128, or 256 with the sign
                pairs[k] =
                    fma_x2(and_or(p, 0x00800080u, 0x43004300u), MINUS_ONE_X2, and_or(p, 0x007f007fu, 0x43004300u));
            else // 1024 + 128 + value
                pairs[k] = fma_x2((p & 0x00ff00ffu) ^ 0x64806480u, ONE_X2, 0xe480e480u);
            continue;
        }
        const unsigned sign = (k ? word : word << 8) & 0x80008000u;
        if (MM_W == WT_MM_E4M3)
            pairs[k] = MM_BF ? fma_x2(sign | ((k ? word >> 4 : word << 4) & 0x07f007f0u), 0x7b807b80u, // 2^(127 - 7)
                                      MINUS_ZERO_X2)
                             : fma_x2(sign | ((k ? word >> 1 : word << 7) & 0x3f803f80u), 0x5c005c00u, // 2^(15 - 7)
                                      MINUS_ZERO_X2);
        else
            pairs[k] = MM_BF ? fma_x2(sign | ((k ? word >> 3 : word << 5) & 0x0fe00fe0u), 0x77807780u, // 2^(127 - 15)
                                      MINUS_ZERO_X2)
                             : (k ? word : word << 8) & 0xff00ff00u;
    }
}

// Eight nibbles k0 .. k7 as the pairs (k0, k4), (k1, k5), (k2, k6), (k3, k7). `zero` is minus (zero + the base that the
// nibbles are placed on) in both halves.
static __device__ __forceinline__ void unpack_8(unsigned word, unsigned zero, unsigned *pairs)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (MM_W != WT_MM_E2M1) {
            pairs[k] = fma_x2(and_or(word >> 4 * k, 0x000f000fu, MM_BF ? 0x43004300u : 0x64006400u), ONE_X2, zero);
            continue;
        }
        const unsigned sign = word << 12 - 4 * k & 0x80008000u, n = word >> 4 * k & 0x00070007u;
        pairs[k] = MM_BF ? fma_x2(sign | n << 6, 0x7e807e80u, MINUS_ZERO_X2)  // 2^(127 - 1)
                         : fma_x2(sign | n << 9, 0x74007400u, MINUS_ZERO_X2); // 2^(15 - 1)
    }
}

// ---- U4, I8 and FP8 beside BF16 almost as they lie. In the two lowest binades of BF16, subnormals and the next, the
// bits are the number in steps of 2^-133: nibbles and bytes need but a mask, and FP8 no product. Tensor cores take
// subnormals as they are. x is multiplied by 2^64 before, which is exact up to 2^63, sums by RAW_SUM in the end.

#define MM_RAW   (MM_BF && (MM_W == WT_MM_U4 || MM_W_IS_8))
#define RAW_ZERO (MM_W == WT_MM_U4 ? 8.0f : MM_W == WT_MM_I8 ? 128.0f : 0.0f) // without zero points
#define RAW_SUM  (MM_W == WT_MM_E4M3 ? 0x1p56f : MM_W == WT_MM_E5M2 ? 0x1p48f : 0x1p69f)

static __device__ __forceinline__ void unpack_raw(const unsigned *words, unsigned *pairs)
{
    if (MM_W == WT_MM_U4) {
        const unsigned high = words[0] >> 8;
        pairs[0] = words[0] & 0x000f000fu;
        pairs[1] = words[0] & 0x00f000f0u; // 16 times as large
        pairs[2] = high & 0x000f000fu;
        pairs[3] = high & 0x00f000f0u;
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned word = words[k / 2 % WORDS], fields = MM_W == WT_MM_E4M3 ? 0x07f007f0u : 0x0fe00fe0u;
        const int down = MM_W == WT_MM_E4M3 ? 4 : 3;
        if (MM_W == WT_MM_I8) // more by 128
            pairs[k] = ((k % 2 ? word >> 8 : word) ^ 0x00800080u) & 0x00ff00ffu;
        else
            pairs[k] = and_or(k % 2 ? word >> down : word << 8 - down, fields,
                              (k % 2 ? word : word << 8) & 0x80008000u);
    }
}

static __device__ __forceinline__ void scale_raw_x(unsigned *pairs)
{
#pragma unroll
    for (int k = 0; k < 4; k++)
        pairs[k] = fma_x2(pairs[k], MM_W == WT_MM_U4 && k % 2 ? 0x5d805d80u : 0x5f805f80u, MINUS_ZERO_X2);
}

// What is multiplied with x for the sum of its columns, as a fragment.
static __device__ __forceinline__ unsigned raw_one(int k)
{
    return MM_W == WT_MM_U4 && k >= 2 ? 0x00100010u : 0x00010001u;
}

// The zero point as unpack_8 wants it.
static __device__ __forceinline__ unsigned placed_zero(unsigned zero)
{
    return (zero | zero << 16) + (MM_BF ? 0xc300c300u : 0xe400e400u);
}

// A unit of weights in WORDS words.
static __device__ __forceinline__ void unpack(const unsigned *words, unsigned zero, unsigned *pairs)
{
    if (MM_W_IS_16 || MM_X_IS_8 || MM_X_IS_32) {
#pragma unroll
        for (int k = 0; k < 4; k++) pairs[k] = words[k % WORDS];
    } else if (MM_W_IS_8) {
        unpack_4(words[0], pairs);
        unpack_4(words[1 % WORDS], pairs + 2);
    } else
        unpack_8(words[0], zero, pairs);
}

// A unit of activations in the order of those pairs.
static __device__ __forceinline__ void arrange(uint4 x, unsigned *pairs)
{
    const bool nibbles = VECTOR == 32 && !MM_X_IS_4, bytes = VECTOR == 16 && !MM_X_IS_8;
    const unsigned second = nibbles ? x.z : x.y, third = nibbles ? x.y : x.z;
    pairs[0] = nibbles || bytes ? __byte_perm(x.x, second, 0x5410) : x.x;
    pairs[1] = nibbles || bytes ? __byte_perm(x.x, second, 0x7632) : x.y;
    pairs[2] = nibbles || bytes ? __byte_perm(third, x.w, 0x5410) : x.z;
    pairs[3] = nibbles || bytes ? __byte_perm(third, x.w, 0x7632) : x.w;
}

// Pairs times a scale, rounded to the pairs' type.
static __device__ __forceinline__ void scale_pairs(unsigned *pairs, float scale)
{
    const unsigned s = MM_BF ? bf16_of_f32(scale) : f16_of_f32(scale);
#pragma unroll
    for (int k = 0; k < 4; k++) pairs[k] = fma_x2(pairs[k], s | s << 16, MINUS_ZERO_X2);
}

// Two rows of a unit of weights (g and g + 8) as the fragments of its two products.
static __device__ __forceinline__ void fragment_of(const unsigned (*w)[4], int half, unsigned *fragment)
{
    fragment[0] = w[0][2 * half];
    fragment[1] = w[1][2 * half];
    fragment[2] = w[0][2 * half + 1];
    fragment[3] = w[1][2 * half + 1];
}
