/// The text of every file in kernels/, embedded whole by embed.py so that NVRTC can compile it at run time.
#ifndef WT_KERNEL_TABLE_H
#define WT_KERNEL_TABLE_H

typedef struct wt_kernel_text {
    const char *path; ///< "kernels/fft/fft.cu": the name that compiler messages carry
    const char *text; ///< the whole file, NUL-terminated
    const char *only; ///< "90a": for that architecture alone, with what is particular to it; NULL = for all
} wt_kernel_text;

extern const wt_kernel_text wt__kernel_table[]; ///< sorted by path
extern const int wt__n_kernel_texts;

#endif
