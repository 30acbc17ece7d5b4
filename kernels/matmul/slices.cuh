// The sums of slices of a tile's columns: each block of `THREADS` threads has its own in shared memory,
// `all`[row of x][row of W], rows WIDTH + 4 apart.

// The block's sums to memory; true for the block that is the tile's last, which then has all slices' in shared memory,
// added in order.
template <int HEIGHT, int WIDTH, int THREADS>
static __device__ __forceinline__ bool add_slices(const wt_mm_slices_args &g, int tile, int slice, float *all)
{
    enum { FOURS = WIDTH / 4, ALL_FOURS = HEIGHT * FOURS, AT_ONCE = 4 };
    __shared__ int before;
    float4 *of_tile = (float4 *)g.partial + (long long)tile * g.n_slices * ALL_FOURS;
    const auto place = [=](int k) { return (float4 *)&all[k / FOURS * (WIDTH + 4) + k % FOURS * 4]; };
    for (int k = threadIdx.x; k < ALL_FOURS; k += THREADS) of_tile[slice * ALL_FOURS + k] = *place(k);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) before = atomicAdd(&g.arrived[tile], 1);
    __syncthreads();
    if (before + 1 < g.n_slices) return false;
    __threadfence();
    for (int first = threadIdx.x; first < ALL_FOURS; first += AT_ONCE * THREADS) {
        float4 sums[AT_ONCE] = {};
#pragma unroll 4 // that many slices' sums are on their way
        for (int s = 0; s < g.n_slices; s++)
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const float4 v = __ldcg(of_tile + s * ALL_FOURS + first + i * THREADS);
                sums[i] = {sums[i].x + v.x, sums[i].y + v.y, sums[i].z + v.z, sums[i].w + v.w};
            }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) *place(first + i * THREADS) = sums[i];
    }
    if (threadIdx.x == 0) g.arrived[tile] = 0;
    __syncthreads();
    return true;
}
