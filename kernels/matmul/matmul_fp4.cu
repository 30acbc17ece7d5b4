// Architecture: sm_120a
// Products of NVFP4 by NVFP4, E2M1 with a scale of E4M3 for 16 columns on both sides, as the tensor cores of compute
// capability 12.0 take them: kernels/matmul/matmul_tiles.cuh. Columns in multiples of 128. Not run yet on such a chip.
#ifndef MM_PAIR
#    define MM_PAIR 1
#endif
#define MM_W      8
#define MM_X      8
#define MM_SCALES 5
#define MM_S      3
#define MM_ROWS   128
#define MM_PIECES 4
#define MM_STAGES 4
#define MM_KERNEL matmul_fp4
#include "matmul_tiles.cuh"
