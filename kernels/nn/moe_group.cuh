// Choices of experts, put together by expert: where each expert's rows begin, and which of its rows a choice has, in
// the order of the choices. One block of 1,024 threads: a warp an expert, and on by the block's warps; a lane sees
// every 32nd choice.
//
// begins: shared memory of experts + 1, at most 1,025; offsets: [experts + 1]; slots: [pairs], -1 for a choice of none.
static __device__ void group_by_expert(const int *chosen, int pairs, int experts, int *begins, int *offsets, int *slots)
{
    const unsigned all_lanes = 0xffffffffu;
    const int lane = threadIdx.x % 32;
    for (int e = threadIdx.x / 32; e < experts; e += 32) {
        int n = 0;
        for (int k = 0; k < pairs; k += 32)
            n += __popc(__ballot_sync(all_lanes, k + lane < pairs && chosen[k + lane] == e));
        if (!lane) begins[e + 1] = n;
    }
    __syncthreads();
    if (!threadIdx.x) {
        begins[0] = 0;
        for (int e = 0; e < experts; e++) begins[e + 1] += begins[e];
    }
    __syncthreads();
    for (int e = threadIdx.x; e <= experts; e += 1024) offsets[e] = begins[e];
    for (int k = threadIdx.x; k < pairs; k += 1024)
        if (chosen[k] < 0 || chosen[k] >= experts) slots[k] = -1;
    for (int e = threadIdx.x / 32; e < experts; e += 32) {
        int at = begins[e];
        for (int k = 0; k < pairs; k += 32) {
            const bool own = k + lane < pairs && chosen[k + lane] == e;
            const unsigned all = __ballot_sync(all_lanes, own);
            if (own) slots[k + lane] = at + __popc(all & ((1u << lane) - 1));
            at += __popc(all);
        }
    }
}
