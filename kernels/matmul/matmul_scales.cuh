// Scales and zero points of groups that fill whole steps of 64 bytes, of a lane's two rows of W, for the kernels of few
// rows of x. MM_S: the scales' type, MM_SHIFT: log2 of the rows a scale has, MM_GROUP: 2 where a group fills whole
// pieces of 128 bytes, 1 where it is a step and pairs of groups are aligned, else 0.
#define STEP        (4 * VECTOR) // columns of 64 bytes
#define SCALE_BYTES (MM_S == WT_MM_F32 ? 4 : MM_S == WT_MM_E4M3 ? 1 : 2)

#if MM_S == WT_MM_F32
typedef float raw_scale;
#elif MM_S == WT_MM_E4M3
typedef unsigned char raw_scale;
#else
typedef unsigned short raw_scale;
#endif

// Scales that a lane's two steps of a row have, side by side.
#define OWN (MM_GROUP == 2 ? 1 : 2)

template <typename T> struct __align__(OWN * sizeof(T)) side_by_side { T at[OWN]; };

// Of the lane's rows g and g + 8, for the two steps of a stage, as they are: nobody waits for them before they are
// wanted.
struct scales {
    side_by_side<raw_scale> scale[2];
    side_by_side<unsigned char> zero[2];
};

template <typename T>
static __device__ __forceinline__ void load_own(const wt_mm_args &a, const T *row, int column, side_by_side<T> *own)
{
    const unsigned last = a.columns - 1;
    if (MM_GROUP == 1) { // a step is a group, and two of them lie at a multiple of their size
        *own = *(const side_by_side<T> *)(row + (unsigned)column / STEP);
        return;
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) own->at[i] = row[min(column + i * STEP, last) >> a.scale_shift];
}

// Those of row `row`, the lane's h-th. What is beyond the columns has the last one's.
static __device__ __forceinline__ void load_row_scales(const wt_mm_args &a, const wt_mm_part &p, unsigned row,
                                                       int column, int h, scales *s)
{
    const unsigned stride = a.scale_stride;
    load_own(a, (const raw_scale *)p.scales + (row >> MM_SHIFT) * stride, column, &s->scale[h]);
    if (MM_W != WT_MM_U4) return;
    if (p.zeros)
        load_own(a, p.zeros + row * stride, column, &s->zero[h]);
    else
#pragma unroll
        for (int i = 0; i < OWN; i++) s->zero[h].at[i] = 8;
}

static __device__ __forceinline__ float scale_of(const scales &s, int h, int i)
{
    return element(MM_S, (const unsigned char *)&s.scale[h].at[i % OWN], 0);
}

// As unpack wants it.
static __device__ __forceinline__ unsigned zero_of(const scales &s, int h, int i)
{
    return placed_zero(MM_SCALES && MM_W == WT_MM_U4 ? s.zero[h].at[i % OWN] : 8);
}

// As it is taken from sums of what unpack_raw gives.
static __device__ __forceinline__ float raw_zero_of(const scales &s, int h, int i)
{
    return MM_SCALES && MM_W == WT_MM_U4 ? (float)s.zero[h].at[i % OWN] : RAW_ZERO;
}
