/// Reads .npy files of version 1 and 2 (NumPy's format page, numpy/lib/format.py), little-endian and C order.
#ifndef WT_TEST_NPY_H
#define WT_TEST_NPY_H

#include <stddef.h>
#include <warptone/status.h>

enum { NPY_MAX_DIMS = 8 };

typedef struct npy {
    char   kind;                ///< 'f' float, 'c' complex, 'i' signed integer, 'b' bool
    int    item_bytes;          ///< f 4 8, c 8 16, i 4 8, b 1
    int    n_dims;              ///< 0 for a scalar
    size_t shape[NPY_MAX_DIMS];
    size_t count;               ///< product of the shape: elements, a complex number is one
    void  *data;                ///< [count] elements as stored; freed by npy_free
} npy;

/// Read a whole file. Anything but f4 f8 c8 c16 i4 i8 bool in C order is refused with a sentence; `a` is then empty.
/// Errors: WT_ERR_FILE, WT_ERR_FORMAT, WT_ERR_NO_MEMORY.  [any]
wt_status npy_read(const char *path, npy *a);

/// Read member `k` of an .npz whose members are stored, not compressed. Errors: also WT_ERR_FILE behind the last.
/// [any]
wt_status npz_read(const char *path, int k, npy *a);

/// Free what npy_read took; an empty array is fine.
void npy_free(npy *a);

/// The elements as numbers, [count] or, for complex, [2 * count] interleaved; caller frees with free. NULL: no memory.
double *npy_doubles(const npy *a);
float  *npy_floats(const npy *a);

#endif
