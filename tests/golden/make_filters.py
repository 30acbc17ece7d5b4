"""Golden values of tests/test_filter.c, test_fir_design.c and test_resample.c.

    python3.11 -m venv v && v/bin/pip install numpy==2.2.6 scipy==1.15.3 librosa==0.11.0 soxr==1.1.0
    v/bin/python tests/golden/make_filters.py

Writes C tables below tests/golden/filters: what scipy.signal and librosa answer in float64.
"""
import os
import numpy as np
import scipy.signal as sg

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "filters")
ORIGIN = ("// Made by tests/golden/make_filters.py with numpy 2.2.6, scipy 1.15.3, librosa 0.11.0.\n"
          "// clang-format off\n")


def noise(n, seed=1):
    """The generator of tests/support/testing.c, as float32."""
    out = np.empty(n, np.float32)
    for k in range(n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        out[k] = np.float32(np.int32(np.uint32(seed >> 32).view(np.int32))) * np.float32(2**-31)
    return out


def numbers(values):
    return ", ".join(repr(float(v)) for v in np.ravel(values))


def rows(values, width=4):
    values = list(np.ravel(values))
    return ",\n".join("     " + numbers(values[k:k + width]) for k in range(0, len(values), width))


FAMILIES = {"butter": "WT_BUTTERWORTH", "cheby1": "WT_CHEBYSHEV_I", "cheby2": "WT_CHEBYSHEV_II",
            "ellip": "WT_ELLIPTIC", "bessel": "WT_BESSEL"}
BANDS = {"lowpass": ("WT_LOW_PASS", [3000]), "highpass": ("WT_HIGH_PASS", [1500]),
         "bandpass": ("WT_BAND_PASS", [1000, 6000]), "bandstop": ("WT_BAND_STOP", [2000, 9000])}
GRID = np.array([0.0, 0.01, 0.03, 0.05, 0.0625, 0.08, 0.11, 0.15, 0.2, 0.26, 0.35, 0.45, 0.5])


def sos_cases():
    """Every family and band at orders 1 to 12 (a spread), responses on GRID, and 8 late samples of filtered noise."""
    x = noise(600).astype(np.float64)
    lines = []
    for family, c_family in FAMILIES.items():
        for band, (c_band, edges) in BANDS.items():
            for order in (1, 2, 3, 5, 8, 12):
                sos = sg.iirfilter(order, edges if len(edges) > 1 else edges[0], 0.5, 50, band, ftype=family,
                                   output="sos", fs=44100)
                # from zeros and poles: at 24 poles sections carry the rounding of their coefficients
                z, p, k = sg.iirfilter(order, edges if len(edges) > 1 else edges[0], 0.5, 50, band, ftype=family,
                                       output="zpk", fs=44100)
                w = np.exp(2j * np.pi * GRID)
                h = np.array([k * np.prod([(v - a) / (v - b) for a, b in
                                           zip(list(z) + [0] * (len(p) - len(z)), p)]) for v in w])
                y = sg.sosfilt(sos, x)[-4:]
                both = numbers((edges + [0])[:2])
                lines.append(f"    {{{c_family}, {c_band}, {order}, {{{both}}}, {len(sos)},\n"
                             f"     {{{numbers(h.real)}}},\n     {{{numbers(h.imag)}}},\n     {{{numbers(y)}}}}},\n")
    return lines


def main():
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "sos.h"), "w") as out:
        out.write(ORIGIN + f"static const double golden_cycles[{len(GRID)}] = {{{numbers(GRID)}}};\n")
        out.write(f"// 0.5 dB ripple, 50 dB attenuation, 44.1 kHz; y: the last 4 of 600 frames of noise, seed 1\n"
                  f"static const struct {{ int family, band, order; double edge_hz[2]; int n_sections;\n"
                  f"    double real[{len(GRID)}], imaginary[{len(GRID)}], y[4]; }} golden_sos[] = {{\n")
        out.writelines(sos_cases())
        out.write("};\n")
        sos = sg.butter(4, 0.125, output="sos")
        out.write(f"static const double golden_zi[{2 * len(sos)}] = {{{numbers(sg.sosfilt_zi(sos))}}};\n")
        b, a = sg.butter(5, 0.25)
        out.write(f"static const double golden_lfilter_b[6] = {{{numbers(b)}}};\n"
                  f"static const double golden_lfilter_a[6] = {{{numbers(a)}}};\n"
                  f"static const double golden_lfilter_zi[5] = {{{numbers(sg.lfilter_zi(b, a))}}};\n")
        x = noise(100).astype(np.float64) + 0.5
        x = x.astype(np.float32).astype(np.float64)
        out.write("// of the first 100 frames of noise + 0.5\n")
        out.write(f"static const double golden_filtfilt[100] = {{\n{rows(sg.sosfiltfilt(sos, x))}}};\n")
        unpadded = sg.sosfiltfilt(sos, x, padtype=None)
        out.write(f"static const double golden_filtfilt_unpadded[100] = {{\n{rows(unpadded)}}};\n")
        import librosa
        out.write(f"static const double golden_preemphasis[100] = {{\n{rows(librosa.effects.preemphasis(x))}}};\n")
        out.write(f"static const double golden_deemphasis[100] = {{\n{rows(librosa.effects.deemphasis(x))}}};\n")
    fir_tables()
    resample_tables()


def resample_tables():
    import soxr
    with open(os.path.join(FOLDER, "soxr.h"), "w") as out:
        out.write(ORIGIN.replace("librosa 0.11.0", "soxr 1.1.0"))
        for name, n, in_hz, out_hz in (("hq", 501, 2, 1), ("third", 900, 3, 1), ("doubled", 150, 1, 2),
                                       ("tripled", 120, 1, 3)):
            out.write(f"// soxr.resample(noise({n}), {in_hz}, {out_hz}, quality='HQ') in float64\n")
            y = soxr.resample(noise(n).astype(np.float64), in_hz, out_hz, quality="HQ")
            out.write(f"static const double golden_soxr_{name}[{len(y)}] = {{\n{rows(y)}}};\n")
        n, at = 1500000, 1600000  # where soxr's clock is 7e-5 frames early
        out.write(f"// frames {at} and on of soxr.resample(noise({n}), 44101, 48000, quality='HQ') in float64\n")
        y = soxr.resample(noise(n).astype(np.float64), 44101, 48000, quality="HQ")[at:at + 32]
        out.write(f"static const double golden_soxr_late[{len(y)}] = {{\n{rows(y)}}};\n")


def fir_tables():
    with open(os.path.join(FOLDER, "fir.h"), "w") as out:
        out.write(ORIGIN)

        def table(name, values, comment):
            out.write(f"// {comment}\nstatic const double golden_{name}[{len(values)}] = {{\n{rows(values)}}};\n")

        table("low_pass", sg.firwin(31, 0.3), "firwin(31, 0.3)")
        table("band_pass", sg.firwin(40, [0.2, 0.5], pass_zero=False, window=("kaiser", 7.5)),
              "firwin(40, [0.2, 0.5], pass_zero=False, window=('kaiser', 7.5))")
        table("multi_band", sg.firwin(33, [0.1, 0.4, 0.7], pass_zero=False, window="blackman", scale=False),
              "firwin(33, [0.1, 0.4, 0.7], pass_zero=False, window='blackman', scale=False)")
        table("least_squares", sg.firls(41, [0, 0.3, 0.4, 1], [1, 1, 0, 0], weight=[1, 10]),
              "firls(41, [0, 0.3, 0.4, 1], [1, 1, 0, 0], weight=[1, 10])")
        table("slopes", sg.firls(25, [0, 0.5, 0.6, 1], [0, 1, 0.5, 0]), "firls(25, [0, 0.5, 0.6, 1], [0, 1, 0.5, 0])")
        table("equiripple", sg.remez(51, [0, 0.15, 0.2, 0.5], [1, 0], weight=[1, 20], fs=1, maxiter=100),
              "remez(51, [0, 0.15, 0.2, 0.5], [1, 0], weight=[1, 20], fs=1)")
        table("equiripple_even", sg.remez(60, [0, 0.1, 0.14, 0.3, 0.33, 0.5], [0, 1, 0], fs=1, maxiter=100),
              "remez(60, [0, 0.1, 0.14, 0.3, 0.33, 0.5], [0, 1, 0], fs=1)")
        x = noise(40).astype(np.float64)
        table("savgol", sg.savgol_filter(x, 9, 3), "savgol_filter(noise(40), 9, 3)")
        table("savgol_slope", sg.savgol_filter(x, 11, 4, deriv=2, delta=0.5),
              "savgol_filter(noise(40), 11, 4, deriv=2, delta=0.5)")


if __name__ == "__main__":
    main()
