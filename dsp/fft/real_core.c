#include "real_core.h"

#include <stdlib.h>

wt_status wt__real_core_create(wt__real_core *fft, int size)
{
    wt_status status = wt__fft_core_create(size, 0, &fft->core);
    return status ? status : wt__fft_real_twiddles(size, &fft->twiddles);
}

void wt__real_core_destroy(wt__real_core *fft)
{
    wt__fft_core_destroy(fft->core);
    free(fft->twiddles);
}
