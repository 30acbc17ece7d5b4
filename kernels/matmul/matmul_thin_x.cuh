// What a warp of matmul_thin has of x: WT_MM_THIN_COLUMNS columns of all rows in registers, in the order in which the
// tensor cores take them. They come by way of shared memory, in pieces as large as a stage of W: eight rows, a half of
// the columns.
#define COLUMNS  (2 * STEP) // of a stage of W
#define PIECES   (WT_MM_THIN_COLUMNS / COLUMNS)
#define EIGHTS   (MM_N * (MM_LOW == WT_MM_BEHIND ? 2 : 1)) // of rows of x
#define X_PIECES (2 * EIGHTS)
#define HAS_ZERO (MM_RAW && RAW_ZERO)

// Those of a slice, and with HAS_ZERO sums of the columns of a step.
struct columns_of_x {
    unsigned b[2 * PIECES][UNITS][EIGHTS][4];
    float sums[2 * PIECES][MM_N][2];
};

// Where 16 bytes of a piece of x lie, `chunk` of row `row`, so that eight lanes that read together meet all banks once.
static __device__ __forceinline__ int x_chunk(int row, int chunk)
{
    return row * 16 + (VECTOR == 32 ? chunk ^ chunk / 8 ^ row % 2 * 2 : chunk ^ row % 2);
}

// Piece `piece` of the warp's columns of x from `column` on: eight rows, a half of the columns. What is not there
// becomes zeros.
static __device__ __forceinline__ void copy_x(const wt_mm_args &a, int column, int piece, unsigned char *to)
{
    const int lane = threadIdx.x % 32, chunk = lane % 16, eight = piece / 2, k = column + piece % 2 * 128 + chunk * 8;
    const bool within = MM_LOW == WT_MM_WITHIN;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int r = lane / 16 + 2 * i;
        const int row = within ? r % 4 : r + 8 * (eight % MM_N), part = within ? r / 4 : eight / MM_N;
        copy_async_16(to + x_chunk(r, chunk) * 16, a.x + 2 * (row * a.x_stride + part * a.x_low + k),
                      row < a.m && k < a.columns);
    }
}

// A piece of x from shared memory to its place among the lane's.
static __device__ __forceinline__ void read_x(const unsigned char *from, int piece, unsigned (*b)[UNITS][EIGHTS][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 128 / STEP; i++)
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            unsigned *to = b[piece % 2 * (128 / STEP) + i][u][piece / 2];
            arrange(*(const uint4 *)(from + x_chunk(g, i * (STEP / 8) + t * UNITS + u) * 16), to);
            if (MM_RAW) scale_raw_x(to);
        }
}

// Sums of the columns of x of each step, as the products' sums are made.
static __device__ __forceinline__ void sum_x(const unsigned (*b)[UNITS][EIGHTS][4], float (*x_sums)[MM_N][2])
{
    const unsigned ones[4] = {raw_one(0), raw_one(1), raw_one(2), raw_one(3)};
#pragma unroll
    for (int i = 0; i < 2 * PIECES; i++)
#pragma unroll
        for (int n = 0; n < MM_N; n++) {
            float sums[4] = {};
#pragma unroll
            for (int u = 0; u < UNITS; u++)
#pragma unroll
                for (int half = 0; half < 2; half++)
#pragma unroll
                    for (int k = n; k < EIGHTS; k += MM_N)
                        mma_x(sums, ones, b[i][u][k][2 * half], b[i][u][k][2 * half + 1]);
            x_sums[i][n][0] = sums[0];
            x_sums[i][n][1] = sums[1];
        }
}
