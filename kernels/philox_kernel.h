// Random numbers by their place: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1,
// 2, 3, 2011), the same on both backends.
#ifndef WT_PHILOX_KERNEL_H
#define WT_PHILOX_KERNEL_H
#include "chain_kernel.h"

// Number n of a seed: the first two words of 32 bits.
WT_SHARED_FN void wt_philox(unsigned long long seed, unsigned long long n, unsigned *w0, unsigned *w1)
{
    unsigned c0 = (unsigned)n, c1 = (unsigned)(n >> 32), c2 = 0, c3 = 0;
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const unsigned long long a = 0xd2511f53ull * c0, b = 0xcd9e8d57ull * c2;
        c0 = (unsigned)(b >> 32) ^ c1 ^ k0;
        c1 = (unsigned)b;
        c2 = (unsigned)(a >> 32) ^ c3 ^ k1;
        c3 = (unsigned)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    *w0 = c0;
    *w1 = c1;
}

// In [0, 1), 53 bits.
WT_SHARED_FN double wt_philox_uniform(unsigned long long seed, unsigned long long n)
{
    unsigned a, b;
    wt_philox(seed, n, &a, &b);
    return (double)((unsigned long long)(a >> 5) << 26 | b >> 6) * 1.1102230246251565e-16; // 2^-53
}
#endif
