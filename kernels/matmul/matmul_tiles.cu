// Products with many rows of x on tensor cores: kernels/matmul/matmul_tiles.cuh.
#ifndef MM_W
#    define MM_W      2
#    define MM_X      2
#    define MM_SCALES 0
#    define MM_S      0
#    define MM_PAIR   1
#    define MM_ROWS   128
#    define MM_PIECES 4
#    define MM_STAGES 4
#    define MM_SLICED 0
#endif
#define MM_KERNEL matmul_tiles
#include "matmul_tiles.cuh"
