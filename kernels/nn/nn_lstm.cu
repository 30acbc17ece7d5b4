// LSTM: all steps of a layer in one launch. A block owns some hidden units of one direction and keeps the four rows of
// recurrent weights of each on its SM: of each thread's columns the first 64 in registers, further ones in shared
// memory, and what has no room there is read from L2. All blocks of a direction need all of h at every step:
//
//   nn_lstm_cluster  up to 256 units, sm_90 and newer: eight blocks of a cluster write their h into each other's shared
//                    memory and meet at the cluster's barrier
//   nn_lstm_grid     else: h goes through global memory, and blocks count in at a counter of their direction; launched
//                    together (cooperatively), so all of them run
//
// Threads: LANES of a row of weights, four rows a unit (input, forget, cell, output); a thread holds every LANES-th
// four columns. h and c are floats; the order of sums depends on the shape alone. `units` times LANES is 128, or more
// units in several sets of 32. Judge: the CPU's (models/nn_lstm.c), and torch.
#include "nn.cuh"
#include "cluster.cuh"

#define THREADS 512
#define KEPT    16 // fours of columns in registers
#define CLUSTER 8

// Every block of the direction has counted in `times` times.
static __device__ void grid_meet(int *arrived, int times)
{
    __threadfence(); // this thread's h
    __syncthreads();
    if (!threadIdx.x) {
        atomicAdd(arrived, 1);
        while (*(volatile int *)arrived < times) {
        }
        __threadfence();
    }
    __syncthreads();
}

struct part {                   // a block's share of the layer, and a thread's of it
    int direction, first;       // hidden unit
    int lanes, lane, row, sets; // row: of a set
    int fours, padded;          // of columns a thread; of h in shared memory
};

static __device__ __forceinline__ part part_of(const nn_lstm_args &a)
{
    part p;
    const int units = min(a.units, 32);
    p.direction = (int)blockIdx.x / a.blocks;
    p.first = (int)blockIdx.x % a.blocks * a.units;
    p.lanes = THREADS / 4 / units;
    p.lane = (int)threadIdx.x % p.lanes;
    p.row = (int)threadIdx.x / p.lanes;
    p.sets = (a.units + 31) / 32;
    p.fours = (a.hidden + 4 * p.lanes - 1) / (4 * p.lanes);
    p.padded = 4 * p.lanes * p.fours;
    return p;
}

// Four columns of the thread's row of a set; 0 beyond the ends.
static __device__ float4 weights_at(const nn_lstm_args &a, const part &p, int set, int i)
{
    const int local = set * 32 + p.row / 4, unit = p.first + local, column = 4 * (p.lane + p.lanes * i);
    const nn_vector &w = p.direction ? a.recurrent[1] : a.recurrent[0];
    const long long at = ((long long)(p.row % 4) * a.hidden + unit) * a.hidden + column;
    float x[4];
    for (int k = 0; k < 4; k++)
        x[k] = local < a.units && unit < a.hidden && column + k < a.hidden ? load(w.data, w.type, at + k) : 0;
    return make_float4(x[0], x[1], x[2], x[3]);
}

static __device__ __forceinline__ float dot(float4 a, float4 b, float sum)
{
    return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

// Products of the thread's row of a set with B vectors h; what registers hold comes first.
template <int B>
static __device__ __forceinline__ void multiply_some(const nn_lstm_args &a, const part &p, int set, const float4 *own,
                                                     const float4 *kept, const float *h, float *products)
{
    const int in_registers = min(p.fours, KEPT), row = set * 128 + p.row;
    float sums[B][2] = {};
    if (!set) {
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            if (i >= p.fours) break;
#pragma unroll
            for (int b = 0; b < B; b++)
                sums[b][i % 2] =
                    dot(own[i], ((const float4 *)(h + b * p.padded))[p.lane + p.lanes * i], sums[b][i % 2]);
        }
    }
    for (int i = set ? 0 : in_registers; i < p.fours; i++) {
        const int place = set * p.fours + i - in_registers;
        const float4 w = place < a.kept ? kept[place * THREADS + threadIdx.x] : weights_at(a, p, set, i);
#pragma unroll
        for (int b = 0; b < B; b++)
            sums[b][0] = dot(w, ((const float4 *)(h + b * p.padded))[p.lane + p.lanes * i], sums[b][0]);
    }
#pragma unroll
    for (int b = 0; b < B; b++) sums[b][0] += sums[b][1];
    for (int step = p.lanes / 2; step; step /= 2) {
#pragma unroll
        for (int b = 0; b < B; b++) sums[b][0] += __shfl_xor_sync(ALL, sums[b][0], step);
    }
    if (p.lane || row >= 4 * a.units) return;
#pragma unroll
    for (int b = 0; b < B; b++) products[b * 4 * a.units + row] = sums[b][0];
}

// Products of the block's rows with h, [batch][4 units].
static __device__ __forceinline__ void multiply(const nn_lstm_args &a, const part &p, const float4 *own,
                                                const float4 *kept, const float *h, float *products)
{
    for (int set = 0; set < p.sets; set++) {
        int b = 0;
        for (; b + 4 <= a.batch; b += 4)
            multiply_some<4>(a, p, set, own, kept, h + b * p.padded, products + b * 4 * a.units);
        for (; b < a.batch; b++) multiply_some<1>(a, p, set, own, kept, h + b * p.padded, products + b * 4 * a.units);
    }
}

static __device__ __forceinline__ void biases_of(const nn_lstm_args &a, const part &p, int cell, float *bias)
{
    const int unit = p.first + cell % a.units;
    const nn_vector &b0 = p.direction ? a.input_bias[1] : a.input_bias[0];
    const nn_vector &b1 = p.direction ? a.recurrent_bias[1] : a.recurrent_bias[0];
#pragma unroll
    for (int k = 0; k < 4; k++)
        bias[k] = unit < a.hidden ? load_or(b0, k * a.hidden + unit, 0) + load_or(b1, k * a.hidden + unit, 0) : 0;
}

// What a unit's four gates get from the input.
static __device__ __forceinline__ void inputs_of(const nn_lstm_args &a, const part &p, int cell, long long t, float *g)
{
    const int unit = p.first + cell % a.units;
    if (unit >= a.hidden) return;
    const float *gates =
        a.gates + t * a.gate_strides[0] + cell / a.units * a.gate_strides[1] + p.direction * 4LL * a.hidden + unit;
#pragma unroll
    for (int k = 0; k < 4; k++) g[k] = gates[k * a.hidden];
}

static __device__ __forceinline__ void give(const nn_lstm_args &a, const part &p, long long t, int b, int unit, float y)
{
    const bool runs = !a.lengths || t < a.lengths[b];
    store(a.out.data, a.out.type,
          t * a.out.strides[0] + b * a.out.strides[1] + (long long)p.direction * a.hidden + unit, runs ? y : 0);
}

// The state of one unit; returns h.
static __device__ __forceinline__ float advance(const float *g, const float *bias, const float *product, float *c)
{
    *c = nn_activate(NN_SIGMOID, g[1] + bias[1] + product[1], 0) * *c +
         nn_activate(NN_SIGMOID, g[0] + bias[0] + product[0], 0) * nn_tanh(g[2] + bias[2] + product[2]);
    return nn_activate(NN_SIGMOID, g[3] + bias[3] + product[3], 0) * nn_tanh(*c);
}

// The weights that stay: in registers, and behind them in shared memory.
static __device__ __forceinline__ void bring_weights(const nn_lstm_args &a, const part &p, float4 *own, float4 *kept)
{
#pragma unroll
    for (int i = 0; i < KEPT; i++) own[i] = i < p.fours ? weights_at(a, p, 0, i) : make_float4(0, 0, 0, 0);
    for (int k = 0; k < a.kept; k++) {
        const int place = k + min(p.fours, KEPT);
        kept[k * THREADS + threadIdx.x] = weights_at(a, p, place / p.fours, place % p.fours);
    }
}

static __device__ __forceinline__ void begin_states(const nn_lstm_args &a, const part &p, float *h, float *c)
{
    const int h_floats = a.batch * p.padded, n_cells = a.batch * a.units;
    for (int k = threadIdx.x; k < 2 * h_floats; k += THREADS) {
        const int b = k % h_floats / p.padded, unit = k % p.padded;
        h[k] = unit < a.hidden ? load_or(a.h0, ((long long)p.direction * a.all + b) * a.hidden + unit, 0) : 0;
    }
    for (int k = threadIdx.x; k < n_cells; k += THREADS) {
        const int b = k / a.units, unit = p.first + k % a.units;
        c[k] = unit < a.hidden ? load_or(a.c0, ((long long)p.direction * a.all + b) * a.hidden + unit, 0) : 0;
    }
}

// All blocks' h of a step, which is in memory where they are no cluster.
static __device__ __forceinline__ void bring_states(const nn_lstm_args &a, const part &p, const float *shared_h,
                                                    float *h)
{
    const int each = a.hidden % 4 ? 1 : 4;
    for (int k = threadIdx.x * each; k < a.batch * a.hidden; k += THREADS * each) {
        float *to = h + k / a.hidden * p.padded + k % a.hidden;
        if (each == 4)
            *(float4 *)to = __ldcg((const float4 *)(shared_h + k));
        else
            *to = __ldcg(shared_h + k);
    }
}

template <bool IN_CLUSTER> static __device__ __forceinline__ void lstm(const nn_lstm_args &a)
{
    extern __shared__ float4 memory[];
    const part p = part_of(a);
    const int h_floats = a.batch * p.padded, n_cells = a.batch * a.units;
    float4 own[KEPT], *kept = memory;
    float *h = (float *)(kept + a.kept * THREADS); // [2][batch][padded]
    float *products = h + 2 * h_floats, *c = products + 4 * n_cells;
    bring_weights(a, p, own, kept);
    begin_states(a, p, h, c);
    int *arrived = a.arrived + 32 * p.direction;
    if (IN_CLUSTER)
        cluster_meet(); // all have begun, and read the states, whose place may be the result's
    else
        grid_meet(arrived, a.blocks);
    float g[4], bias[4]; // of the thread's first cell; the input's come a step ahead, while blocks meet
    if (threadIdx.x < n_cells) {
        biases_of(a, p, threadIdx.x, bias);
        inputs_of(a, p, threadIdx.x, p.direction ? a.steps - 1 : 0, g);
    }
    for (int step = 0; step < a.steps; step++) {
        const int ahead = p.direction ? -1 : 1;
        const long long t = p.direction ? a.steps - 1 - step : step;
        const float *now = h + step % 2 * h_floats;
        float *next = h + (step + 1) % 2 * h_floats;
        float *shared_h = a.states + ((step + 1) % 2 * a.directions + p.direction) * (long long)a.batch * a.hidden;
        // results go out a step late: who meets then waits for none of them
        for (int k = threadIdx.x; k < n_cells && step; k += THREADS)
            if (p.first + k % a.units < a.hidden)
                give(a, p, t - ahead, k / a.units, p.first + k % a.units,
                     now[k / a.units * p.padded + p.first + k % a.units]);
        multiply(a, p, own, kept, now, products);
        __syncthreads();
        for (int k = threadIdx.x; k < n_cells; k += THREADS) {
            const int b = k / a.units, unit = p.first + k % a.units;
            if (unit >= a.hidden) continue;
            float y = now[b * p.padded + unit];
            if (k >= THREADS) {
                biases_of(a, p, k, bias);
                inputs_of(a, p, k, t, g);
            }
            if (!a.lengths || t < a.lengths[b]) y = advance(g, bias, products + 4 * k, c + k);
            if (IN_CLUSTER)
                for (int rank = 0; rank < CLUSTER; rank++) store_in(next + b * p.padded + unit, rank, y);
            else
                shared_h[b * a.hidden + unit] = y;
            if (step < a.steps - 1) continue;
            const long long at = ((long long)p.direction * a.all + b) * a.hidden + unit;
            give(a, p, t, b, unit, y);
            if (a.hn.data) store(a.hn.data, a.hn.type, at, y);
            if (a.cn.data) store(a.cn.data, a.cn.type, at, c[k]);
        }
        if (threadIdx.x < n_cells && step < a.steps - 1) {
            if (n_cells > THREADS) biases_of(a, p, threadIdx.x, bias);
            inputs_of(a, p, threadIdx.x, t + ahead, g);
        }
        __syncwarp();
        if (IN_CLUSTER) {
            cluster_meet();
        } else if (step < a.steps - 1) {
            grid_meet(arrived, a.blocks * (step + 2));
            bring_states(a, p, shared_h, next);
            __syncthreads();
        }
    }
    // the last block to leave clears the counter: all have done waiting
    if (!IN_CLUSTER && !threadIdx.x && atomicAdd(arrived, 1) == a.blocks * (a.steps + 1) - 1) *arrived = 0;
}

extern "C" __global__ void CLUSTER_8 __launch_bounds__(THREADS, 1) nn_lstm_cluster(nn_lstm_args a) { lstm<true>(a); }

extern "C" __global__ void __launch_bounds__(THREADS, 1) nn_lstm_grid(nn_lstm_args a) { lstm<false>(a); }
