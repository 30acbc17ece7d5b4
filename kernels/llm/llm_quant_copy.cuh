// The weights of llm_quant.cu on their way to shared memory, by boxes or by a warp's lanes.
#include "llm_quant.cuh"

// Rows 0 .. 7 and 8 .. 15 of a tile: where they begin, maybe beyond the part's.
struct tile_place {
    int part[2], row[2];
};

static __device__ __forceinline__ tile_place place_tile(const wt_llm_matvec_args &a, int tile)
{
    if (a.gated) return {{0, 1}, {tile * 8, tile * 8}};
    const int first = (a.parts[0].rows + 15) / 16, second = first + (a.parts[1].rows + 15) / 16;
    const int part = a.n_parts > 2 && tile >= second ? 2 : a.n_parts > 1 && tile >= first ? 1 : 0;
    const int row = 16 * (tile - (part == 2 ? second : part ? first : 0));
    return {{part, part}, {row, row + 8}};
}

static __device__ __forceinline__ const unsigned char *weights_of(const wt_llm_quant_args &a, int part, int expert)
{
    return (const unsigned char *)a.m.parts[part].weight + (EXPERTS ? expert * a.next[part] : 0);
}

static __device__ __forceinline__ const unsigned char *scales_of(const wt_llm_quant_args &a, int part, int expert)
{
    return (const unsigned char *)a.m.parts[part].scales + (EXPERTS ? expert * a.next_scales[part] : 0);
}

// 16 bytes each for the lanes, to where a box has them: 8 rows of a stage, zeros beyond the sides.
static __device__ void copy_by_lanes(const wt_llm_quant_args &a, int which, int first, int piece, unsigned char *to,
                                     int expert)
{
    const wt_llm_part &part = a.m.parts[which];
    for (int i = threadIdx.x % 32; i < a.team * HALF / 16; i += 32) {
        const int row = i / (PIECE / 16) % 8, at = i % (PIECE / 16);
        const long long column = (piece + i / (HALF / 16)) * PIECE + at * 16;
        const bool valid = first + row < part.rows && column < a.row_bytes;
        const unsigned char *from =
            weights_of(a, which, expert) + (valid ? (first + row) * a.row_bytes + column : 0);
        copy_async_16(to + i / (PIECE / 16) * PIECE + (IS_Q4_K ? at : at ^ row) * 16, from, valid);
    }
}

// Likewise the scales of groups from `group` on.
static __device__ void copy_scales_by_lanes(const wt_llm_quant_args &a, int which, int first, int group,
                                            unsigned char *to, int expert)
{
    const wt_llm_part &part = a.m.parts[which];
    const int n = a.team * N_GROUPS * OF_SCALE, n_rows = a.scale_pitch ? 8 : 1;
    for (int i = threadIdx.x % 32 * OF_SCALE; i < n_rows * n; i += 32 * OF_SCALE) {
        const int row = first + i / n, at = group * OF_SCALE + i % n;
        const bool valid = row < part.rows && at < 4 * a.scale_words;
        const unsigned char *from =
            scales_of(a, which, expert) + 4ll * (row / a.scale_rows) * a.scale_words + at;
        if (OF_SCALE == 2)
            *(unsigned short *)(to + i) = valid ? *(const unsigned short *)from : 0;
        else
            *(unsigned *)(to + i) = valid ? *(const unsigned *)from : 0;
    }
}

// The stages of tiles `tile`, tile + step .., turns `turn` .. of each, one after the other, when those that had what a
// stage holds are done. By boxes: one thread, with little between one and the next, as a launch waits for the first of
// them and one thread asks for all of a processor's.
//
// Until the vector is asked for, a stage is when the one `pace` before it has come: the vector would wait behind all
// that memory has to bring.
static __device__ __forceinline__ void copy_boxes(const wt_llm_quant_args &a, const memory &m, int tile, int turn,
                                                  int step, unsigned long long *asked, int expert)
{
    const int half = m.half_bytes, bytes = 2 * half + a.scale_expected, of_scale = a.scale_bytes;
    const int first_piece = turn * a.team, end_piece = first_piece + a.n_turns * a.team;
    unsigned parity = 1;
    int slot = 0, pace = a.pace;
    for (; tile < a.n_tiles; tile += step) {
        const tile_place at = place_tile(a.m, tile);
        for (int piece = first_piece; piece < end_piece; piece += a.team) {
            unsigned long long *full = &m.full[slot];
            barrier_wait(&m.empty[slot], parity);
            while (parity && slot >= pace && !barrier_over(full - pace, 0))
                if (barrier_over(asked, 0)) pace = a.n_stages;
            barrier_expect(full, bytes);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int part = at.part[h], row = at.row[h] + (EXPERTS ? expert * a.next_rows[part] : 0);
                const int of_rows = (at.row[h] >> a.scale_shift) + (EXPERTS ? expert * a.next_scale_rows[part] : 0);
                copy_box(m.stages + (2 * slot + h) * half, &a.w[part], 0, row, piece, full);
                if (SCALED)
                    copy_box(m.scales + (2 * slot + h) * of_scale, &a.s[part], piece * (N_GROUPS * OF_SCALE), of_rows,
                             0, full);
            }
            if (++slot == a.n_stages) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}

// Likewise by a warp's lanes.
static __device__ void copy_rows(const wt_llm_quant_args &a, const memory &m, int tile, int turn, int step, int expert)
{
    unsigned parity = 1;
    int slot = 0;
    for (; tile < a.n_tiles; tile += step) {
        const tile_place at = place_tile(a.m, tile);
        for (int k = turn; k < turn + a.n_turns; k++) {
            barrier_wait(&m.empty[slot], parity);
#pragma unroll 1
            for (int h = 0; h < 2; h++) {
                const int part = h ? at.part[1] : at.part[0], row = h ? at.row[1] : at.row[0];
                copy_by_lanes(a, part, row, k * a.team, m.stages + (2 * slot + h) * m.half_bytes, expert);
                if (SCALED)
                    copy_scales_by_lanes(a, part, row, k * a.team * N_GROUPS,
                                         m.scales + (2 * slot + h) * a.scale_bytes, expert);
            }
            barrier_arrive_copied(&m.full[slot]);
            if (SCALED) barrier_arrive(&m.full[slot]);
            if (++slot == a.n_stages) {
                slot = 0;
                parity ^= 1;
            }
        }
    }
}
