"""Values of librosa.stft and istft in float64 on a short noise, for tests/test_stft.c.

Run: python make_stft.py > stft_golden.h     with numpy==2.2.6 librosa==0.11.0 (PyPI)
"""
import librosa
import numpy as np

CASES = [  # n, n_fft, win_length, hop, window, pad, center, length (None = default)
    (100, 32, 32, 8, "HANN", "constant", True, None), (100, 32, 32, 8, "HANN", "reflect", True, 100),
    (97, 25, 20, 7, "HAMMING", "symmetric", True, 97), (90, 40, 30, 10, "BLACKMAN", "edge", True, 120),
    (90, 40, 30, 10, "HANN", "constant", False, None), (64, 16, 16, 16, "RECTANGULAR", "constant", True, 50),
    (5, 16, 16, 4, "HANN", "reflect", True, 5),
]
NAMES = {"HANN": "hann", "HAMMING": "hamming", "BLACKMAN": "blackman", "RECTANGULAR": "boxcar"}
PADS = {"constant": "ZERO", "reflect": "REFLECT", "symmetric": "SYMMETRIC", "edge": "EDGE"}


def noise(n, seed):
    """tests/support/testing.c"""
    out = []
    for _ in range(n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        word = seed >> 32
        out.append(float(np.float32((word - 2**32 if word >= 2**31 else word) * 2.0**-31)))
    return np.array(out)


def row(values):
    return ", ".join(f"{v:.9g}" for v in values)


print("// Made by make_stft.py with librosa 0.11.0. Do not edit.")
table = []
for i, (n, n_fft, win, hop, window, pad, center, length) in enumerate(CASES):
    x = noise(n, 77 + i)
    keys = dict(n_fft=n_fft, win_length=win, hop_length=hop, window=NAMES[window], center=center)
    spectrum = librosa.stft(x, pad_mode=pad, dtype=np.complex128, **keys)
    back = librosa.istft(spectrum, length=length, dtype=np.float64, **keys)
    pairs = np.stack([spectrum.T.real, spectrum.T.imag], -1).ravel()
    print(f"static const double spectrum_{i}[] = {{{row(pairs)}}};\nstatic const double back_{i}[] = {{{row(back)}}};")
    table.append(f"    {{{n}, {spectrum.shape[1]}, {length or 0}, {len(back)}, {77 + i}, spectrum_{i}, back_{i},\n"
                 f"     {{.n_fft = {n_fft}, .win_length = {win}, .hop = {hop}, .window = {{.kind = WT_WINDOW_{window}}},\n"
                 f"      .pad = WT_STFT_PAD_{PADS[pad]}, .no_center = {int(not center)}}}}},")
print("static const stft_case stft_cases[] = {\n" + "\n".join(table) + "\n};")
