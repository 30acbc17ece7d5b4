// What the parts of llm_quant.cu share: its kind of weights in numbers, shared memory, and who waits for whom.
#ifndef WT_LLM_QUANT_CUH
#define WT_LLM_QUANT_CUH
#include "llm_types.cuh"
#include "llm_routes.cuh"

#if WEIGHT == 11
#    define LANE 8
#elif GROUP == 0
#    define LANE 16
#elif WEIGHT == 7
#    define LANE (GROUP / 8 < 16 ? GROUP / 8 : 16)
#else
#    define LANE (GROUP / 4 < 16 ? GROUP / 4 : 16)
#endif
#include "llm_weights.cuh"
#include "overlap.cuh"
#include "barrier.cuh"
#include "cluster.cuh"

#define IS_Q4_K        (WEIGHT == WT_MM_Q4_K)
#define PIECE          (IS_Q4_K ? 144 : 128) // bytes of a row
#define COLUMNS        (IS_NIBBLES ? 256 : 128)
#define OF_GROUP       (IS_Q4_K ? 32 : GROUP ? GROUP : COLUMNS)
#define N_GROUPS       (COLUMNS / OF_GROUP)
#define DIGITS         (WEIGHT != WT_MM_E4M3 && !IS_PLAIN) // x as whole numbers
#define IS_PLAIN       (WEIGHT == WT_MM_I8 && LANE == 4)   // x as bf16, without units
#define IS_SPREAD      (WEIGHT == WT_MM_U4 && LANE > 4)    // low and high nibbles of neighbouring words apart
#define MOST           (DIGITS ? 2 : 4)
#define AT_ONCE        (N_GROUPS < MOST ? N_GROUPS : MOST)
#define GROUP_OF(t)    ((t) / (4 / MOST))      // of a read, whose sums lane t has
#define UNITS          (OF_GROUP / (4 * PER))  // reads of a row's four lanes in a group
#define N_SUB          (PER < 8 ? 1 : PER / 8) // eights of columns in a lane's read
#define X_FIRST        (N_GROUPS == AT_ONCE)   // a stage's x is read before its weights are awaited
#define SCALED         (GROUP && !IS_Q4_K)
#define OF_SCALE       (SCALE == WT_MM_F16 ? 2 : 4)                                   // bytes
#define X_READS        (AT_ONCE * (DIGITS ? (UNITS * PER + 15) / 16 : UNITS * N_SUB)) // registers for x, times four
#define EIGHTS_A_GROUP (OF_GROUP / 8) // of columns that share what is known of them
#define OF_STAGE       (COLUMNS / 8)  // eights of columns
#define RING           WT_LLM_QUANT_RING
#define WARPS          WT_LLM_QUANT_WARPS

// ---- what a block has in shared memory: see wt_llm_quant_shared

#define HALF (8 * PIECE) // bytes of 8 rows of a piece

struct memory {
    unsigned char *stages; // [n_stages][2][team][8][PIECE], rows 0 .. 7 and 8 .. 15 of a tile
    unsigned char *scales; // [n_stages][2] times scale_bytes: those of groups, [8 or 1][team][N_GROUPS]
    unsigned short *x;     // its parts, of each turn of the columns those of each warp
    float2 *of_x;          // [groups]: the unit of x; of whole numbers the sum
    float2 *partial;       // [RING / blocks][blocks][WARPS][8]: of rows 0 .. 7, each with that 8 on
    unsigned long long *full, *empty, *summed, *finished; // [n_stages] twice, [RING] twice
    int half_bytes;                                       // of a stage
    int pitch;                                            // from part to part, of digits in bytes
};

static __device__ __forceinline__ memory memory_of(const wt_llm_quant_args &a, unsigned char *at)
{
    memory m;
    const int columns = a.n_turns * WARPS * COLUMNS;
    m.stages = at + (1024 - shared_of(at) % 1024) % 1024;
    m.pitch = DIGITS ? columns + 16 : columns + 32;
    m.half_bytes = a.team * HALF;
    m.scales = m.stages + 2 * a.n_stages * m.half_bytes;
    m.x = (unsigned short *)(m.scales + 2 * a.n_stages * a.scale_bytes);
    m.of_x = (float2 *)((unsigned char *)m.x + (DIGITS ? 3 : 4) * m.pitch);
    m.partial = m.of_x + columns / 32;
    m.full = (unsigned long long *)(m.partial + RING * 8 * WARPS);
    m.empty = m.full + a.n_stages;
    m.summed = m.empty + a.n_stages;
    m.finished = m.summed + RING;
    return m;
}

// What a block's warps tell each other besides: that x is asked for, the squares of their columns, whose rows they are.
struct news {
    unsigned long long asked;
    float squares[WARPS], scratch[WARPS];
    int expert; // of EXPERTS
};

// ---- who waits for whom

// Meetings of some of the block's threads: all of it; the warps that multiply; one of them and the one that copies,
// which waits for nobody, so that its copies are soon under way.
enum { ALL_MEET = 1, WARPS_MEET, TWO_MEET };

template <int WHICH, int N> static __device__ __forceinline__ void meet()
{
    asm volatile("bar.sync %0, %1;" ::"n"(WHICH), "n"(32 * N) : "memory");
}

template <int WHICH, int N> static __device__ __forceinline__ void pass()
{
    asm volatile("bar.arrive %0, %1;" ::"n"(WHICH), "n"(32 * N) : "memory");
}

#endif
