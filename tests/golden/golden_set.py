"""The container of the golden set: .npy files and one manifest.tsv that a C program reads with sscanf-like means.

A case holds one result. What is larger than CAP numbers is stored as every rs-th row and cs-th column, together with
NAME.sum.npy: for each column the sum over rows of cos(row) * value (a 1-D result: for each 256 values the sum of
cos(index in the 256) * value), so that a wrong number outside the selection is seen too.
"""
import os

import numpy as np

CAP = 1600      # numbers a case stores; a complex value counts as two
SEGMENT = 256   # values of a 1-D result that one sum covers
HEADER = "case op inputs params output shape type select sum peak floor bound goal integer".split()


class GoldenSet:
    def __init__(self, folder):
        self.folder, self.rows, self.inputs, self.used = folder, [], {}, set()
        os.makedirs(folder, exist_ok=True)

    def input(self, name, array):
        """Store an input once, as float32 (rounded first: both precisions see the same numbers)."""
        self.inputs[name] = np.ascontiguousarray(array, dtype="<f4")
        return self.inputs[name]

    def write(self, name, array):
        with open(os.path.join(self.folder, name), "wb") as file:
            np.lib.format.write_array(file, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)

    def case(self, name, op, inputs, function, bound=None, goal=None, floor=None, **params):
        """Run `function(*inputs, ft=..., **params)` in float64 and float32 and store the float64 result.

        A dict of results makes one case each, named NAME_key. `bound` replaces max(3 * floor, 1e-6); `goal` is the
        tighter figure the project wants to reach, kept beside the bound; `floor` is a floor that float32 inputs do not
        show, since librosa computes part of it in float32 whatever it is given.
        """
        inputs = inputs.split(",") if inputs else []
        for used in inputs:
            if used not in self.used:
                self.write(f"in_{used}.npy", self.inputs[used])
            self.used.add(used)
        results = []
        for ft in (np.float64, np.float32):
            result = function(*[self.inputs[i].astype(ft) for i in inputs], ft=ft, **params)
            results.append(result if isinstance(result, dict) else {"": result})
        for key in results[0]:
            full = f"{name}_{key}" if key else name
            self.result(full, op, inputs, params, results[0][key], results[1][key], bound, goal,
                        floor or 0)

    def result(self, name, op, inputs, params, value, single, bound, goal, least_floor):
        value, single = np.atleast_1d(value), np.atleast_1d(single)
        if value.ndim > 2 or value.size == 0:
            raise ValueError(f"{name}: shape {value.shape}, want 1 or 2 dimensions that are not empty")
        integer = value.dtype.kind in "biu"
        floor = max(error_of_peak(value, single), least_floor) if single.shape == value.shape else np.inf
        if bound is None:
            bound = 0.0 if integer else max(3 * floor, 1e-6)
        if not np.isfinite(bound):
            raise ValueError(f"{name}: float32 gives shape {single.shape}, float64 {value.shape}: choose another input")
        value = value.astype("<i4" if integer else "<c16" if np.iscomplexobj(value) else "<f8")
        rs, cs = steps_of(value)
        rows = value.reshape(-1, value.shape[-1])
        kept = rows[::rs, ::cs].reshape(-1) if value.ndim == 1 else rows[::rs, ::cs]
        self.write(f"{name}.npy", kept)
        if rs * cs > 1:
            self.write(f"{name}.sum.npy", sums_of(value))
        text = ";".join(f"{k}={text_of(v)}" for k, v in params.items()) or "-"
        files = ",".join(f"in_{i}.npy" for i in inputs) or "-"
        shape = "x".join(str(n) for n in value.shape)
        self.rows.append([name, op, files, text, f"{name}.npy", shape, value.dtype.str[1:], f"{rs},{cs}",
                          f"{name}.sum.npy" if rs * cs > 1 else "-", f"{peak_of(value):.17g}",
                          f"{floor:.2g}", f"{bound:.3g}", f"{min(goal or bound, bound):.3g}", str(int(integer))])

    def close(self):
        names = [row[0] for row in self.rows]
        if len(set(names)) != len(names):
            raise ValueError(f"case named twice: {sorted(n for n in names if names.count(n) > 1)}")
        with open(os.path.join(self.folder, "manifest.tsv"), "w", newline="\n") as file:
            file.write("\t".join(HEADER) + "\n")
            file.writelines("\t".join(row) + "\n" for row in self.rows)


def error_of_peak(value, other):
    """Largest difference relative to the largest magnitude; a NaN must meet a NaN or counts as a whole peak."""
    value, other = np.asarray(value).astype(np.complex128), np.asarray(other).astype(np.complex128)
    lost = np.isnan(value) != np.isnan(other)
    finite = np.isfinite(value) & np.isfinite(other)
    peak = peak_of(value)
    error = np.abs(value[finite] - other[finite]).max(initial=0.0)
    return 1.0 if lost.any() else float(error / peak)


def peak_of(value):
    """Largest finite magnitude; 1 for an all-zero result, which is compared absolutely."""
    return float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) or 1.0


def steps_of(value):
    """Row and column steps (odd, so no parity is missed) that leave at most CAP numbers."""
    cap = CAP // 2 if np.iscomplexobj(value) else CAP
    rows, columns = (1, value.shape[0]) if value.ndim == 1 else value.shape
    rs = cs = 1
    while -(-rows // rs) * -(-columns // cs) > cap:
        if -(-rows // rs) >= 2 * -(-columns // cs):
            rs += 2
        else:
            cs += 2
    return rs, cs


def sums_of(value):
    if value.ndim == 1:
        padded = np.concatenate([value, np.zeros(-len(value) % SEGMENT, value.dtype)])
        value = padded.reshape(-1, SEGMENT).T
    value = np.where(np.isfinite(value), value, 0)
    weights = np.cos(np.arange(value.shape[0], dtype=np.float64))
    out = np.zeros(value.shape[1], dtype=np.complex128 if np.iscomplexobj(value) else np.float64)
    for weight, row in zip(weights, value):
        out += weight * row
    return out


def text_of(value):
    if value is None:
        return "none"
    if isinstance(value, (tuple, list)):
        return ",".join(text_of(v) for v in value)
    if isinstance(value, bool):
        return str(int(value))
    return f"{value!r}" if isinstance(value, float) else str(value)


def lcg(seed, count):
    """Uniform noise in [-1, 1): the same numbers as noise() of tests/support/testing.c."""
    out, mask = np.empty(count), (1 << 64) - 1
    for n in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) & mask
        high = seed >> 32
        out[n] = np.float32(high - (1 << 32) if high >> 31 else high) * np.float32(2.0**-31)
    return out
