#include "real_core.h"

#include <math.h>
#include <stdlib.h>

wt_status wt__real_core_create(wt__real_core *fft, int size)
{
    wt_status status = wt__fft_core_create(size, 0, &fft->core);
    const int count = size / 2 + 1;
    if (!status && !(fft->twiddles = malloc(sizeof *fft->twiddles * 2 * (size_t)count)))
        status = wt_fail(WT_ERR_NO_MEMORY, "no memory for %d twiddle factors", count);
    for (int k = 0; !status && k < count; k++) {
        fft->twiddles[k] = (float)cos(M_PI * k / size);
        fft->twiddles[count + k] = (float)-sin(M_PI * k / size);
    }
    return status;
}

void wt__real_core_destroy(wt__real_core *fft)
{
    wt__fft_core_destroy(fft->core);
    free(fft->twiddles);
}
