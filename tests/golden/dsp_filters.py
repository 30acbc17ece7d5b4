"""Golden cases: resampling, filter designs, filtering, Savitzky-Golay and loudness."""
import librosa
import numpy as np
import scipy.signal

SR = 22050
TIGHT = 1e-9  # designs are double precision on both sides; elliptic and remez lose a few digits in their iterations


def add_cases(golden):
    add_resampling(golden)
    add_iir(golden)
    add_fir(golden)
    add_filtering(golden)
    add_loudness(golden)


def add_resampling(golden):
    def resample(name, signal, bound=None, **p):
        golden.case(f"resample_{name}", "resample", signal, lambda y, ft, **q: librosa.resample(y, **q), bound=bound,
                    goal=5e-7, **p)
    resample("hq_2to1", "trumpet", orig_sr=22050, target_sr=11025, res_type="soxr_hq")
    resample("hq_2to1_scale", "glide", orig_sr=2, target_sr=1, res_type="soxr_hq", scale=True)
    resample("hq_22k_16k", "glide", orig_sr=22050, target_sr=16000, res_type="soxr_hq")
    resample("hq_16k_22k", "speech16k", orig_sr=16000, target_sr=22050, res_type="soxr_hq")
    resample("hq_44k_48k", "chirp", orig_sr=44100, target_sr=48000, res_type="soxr_hq")
    resample("hq_1to2", "plucks", orig_sr=11025, target_sr=22050, res_type="soxr_hq")
    # noise begins and ends at once and fills the band: each way that soxr lays out its chain
    for orig, target in ((44100, 48000), (48000, 44100), (44100, 16000), (48000, 16000), (44100, 22050),
                         (48000, 22050), (44100, 24000), (24000, 16000), (16000, 24000), (44101, 48000),
                         (48000, 44101), (79997, 50000), (8000, 48000), (11025, 48000), (44100, 8000), (48000, 4000)):
        resample(f"hq_noise_{orig}_{target}", "noise", orig_sr=orig, target_sr=target, res_type="soxr_hq")
    resample("poly_22k_16k", "plucks", orig_sr=22050, target_sr=16000, res_type="polyphase")
    resample("poly_16k_48k", "speech16k", orig_sr=16000, target_sr=48000, res_type="polyphase")
    resample("poly_2to1", "noise", orig_sr=22050, target_sr=11025, res_type="polyphase")


DESIGNS = {
    "butter": lambda n, wn, kind, fs, **p: scipy.signal.butter(n, wn, kind, output="sos", fs=fs),
    "cheby1": lambda n, wn, kind, fs, rp: scipy.signal.cheby1(n, rp, wn, kind, output="sos", fs=fs),
    "cheby2": lambda n, wn, kind, fs, rs: scipy.signal.cheby2(n, rs, wn, kind, output="sos", fs=fs),
    "ellip": lambda n, wn, kind, fs, rp, rs: scipy.signal.ellip(n, rp, rs, wn, kind, output="sos", fs=fs),
    "bessel": lambda n, wn, kind, fs, norm: scipy.signal.bessel(n, wn, kind, output="sos", fs=fs, norm=norm),
}


def add_iir(golden):
    def design(op, name, **p):
        sections = DESIGNS[op](**p)
        golden.case(f"{op}_{name}_sos", op, "", lambda ft, **q: sections, bound=TIGHT, **p)
        # What a design does must agree whatever the order and pairing of its sections: gain at 0, fs/64 ... fs/2.
        golden.case(f"{op}_{name}_response", op, "", lambda ft, fs, **q: scipy.signal.sosfreqz(
            sections, worN=np.linspace(0, fs / 2, 33), fs=fs)[1], bound=TIGHT, **p)
    design("butter", "low4", n=4, wn=1000.0, kind="lowpass", fs=48000.0)
    design("butter", "high5", n=5, wn=200.0, kind="highpass", fs=16000.0)
    design("butter", "band3", n=3, wn=(300.0, 3400.0), kind="bandpass", fs=16000.0)
    design("cheby1", "low5", n=5, wn=4000.0, kind="lowpass", fs=48000.0, rp=0.5)
    design("cheby1", "stop2", n=2, wn=(900.0, 1100.0), kind="bandstop", fs=22050.0, rp=1.0)
    design("cheby2", "high6", n=6, wn=3000.0, kind="highpass", fs=48000.0, rs=60.0)
    design("ellip", "low7", n=7, wn=5000.0, kind="lowpass", fs=44100.0, rp=0.1, rs=80.0)
    design("ellip", "band4", n=4, wn=(1000.0, 2000.0), kind="bandpass", fs=22050.0, rp=0.5, rs=50.0)
    design("bessel", "low4_phase", n=4, wn=1000.0, kind="lowpass", fs=48000.0, norm="phase")


def add_fir(golden):
    def taps(name, op, run, bound=TIGHT, **p):
        golden.case(name, op, "", lambda ft, **q: run(**q), bound=bound, **p)

    def firwin(n_taps, cutoff, window, kind, fs):
        return scipy.signal.firwin(n_taps, cutoff, window=window, pass_zero=kind, fs=fs)
    taps("firwin_low_hamming", "firwin", firwin, n_taps=101, cutoff=3000.0, window="hamming", kind="lowpass",
         fs=16000.0)
    taps("firwin_band_kaiser", "firwin", firwin, n_taps=128, cutoff=(500.0, 2000.0), window=("kaiser", 7.0),
         kind="bandpass", fs=16000.0)
    taps("firwin_high_blackman", "firwin", firwin, n_taps=63, cutoff=200.0, window="blackman", kind="highpass",
         fs=8000.0)

    def firls(n_taps, bands, desired, weight, fs):
        return scipy.signal.firls(n_taps, bands, desired, weight=weight, fs=fs)
    taps("firls_low", "firls", firls, n_taps=73, bands=(0.0, 2000.0, 2500.0, 8000.0), desired=(1.0, 1.0, 0.0, 0.0),
         weight=(1.0, 10.0), fs=16000.0)
    taps("firls_band", "firls", firls, n_taps=101, bands=(0.0, 500.0, 700.0, 1500.0, 1800.0, 4000.0),
         desired=(0.0, 0.0, 1.0, 1.0, 0.0, 0.0), weight=(1.0, 1.0, 1.0), fs=8000.0)

    def remez(n_taps, bands, desired, weight, fs):
        return scipy.signal.remez(n_taps, bands, desired, weight=weight, fs=fs, maxiter=100, grid_density=32)
    # remez stops when its extrema stand still on the grid; another grid's answer differs: ours by 4e-6 and 8e-6.
    taps("remez_low", "remez", remez, bound=5e-5, n_taps=65, bands=(0.0, 2000.0, 2600.0, 8000.0), desired=(1.0, 0.0),
         weight=(1.0, 20.0), fs=16000.0)
    taps("remez_band", "remez", remez, bound=5e-5, n_taps=80, bands=(0.0, 500.0, 800.0, 1500.0, 1900.0, 4000.0),
         desired=(0.0, 1.0, 0.0), weight=(1.0, 1.0, 1.0), fs=8000.0)
    for width, order, derivative in ((9, 2, 0), (11, 3, 1), (7, 4, 2)):
        taps(f"savgol_coeffs_{width}_{order}_{derivative}", "savgol_coeffs", lambda width, order, derivative:
             scipy.signal.savgol_coeffs(width, order, deriv=derivative), width=width, order=order,
             derivative=derivative)


def add_filtering(golden):
    def run_sos(y, ft, design, zero_phase, **p):
        sections = DESIGNS[design](**p).astype(ft)
        return (scipy.signal.sosfiltfilt if zero_phase else scipy.signal.sosfilt)(sections, y)
    low = dict(n=4, wn=1000.0, kind="lowpass", fs=16000.0)
    golden.case("sosfilt_butter4", "sosfilt", "speech16k", run_sos, design="butter", zero_phase=False, **low)
    golden.case("sosfilt_ellip7", "sosfilt", "noise", run_sos, design="ellip", zero_phase=False, n=7, wn=5000.0,
                kind="lowpass", fs=22050.0, rp=0.1, rs=80.0)
    golden.case("sosfiltfilt_butter4", "sosfiltfilt", "speech16k", run_sos, design="butter", zero_phase=True, **low)
    golden.case("sosfiltfilt_tiny", "sosfiltfilt", "tiny", run_sos, design="butter", zero_phase=True, n=2, wn=1000.0,
                kind="highpass", fs=16000.0)
    golden.case("lfilter_3_3", "lfilter", "noise", lambda y, ft, b, a: scipy.signal.lfilter(
        np.asarray(b, ft), np.asarray(a, ft), y), b=(0.2, 0.3, 0.1), a=(1.0, -0.6, 0.25))
    golden.case("lfilter_fir", "lfilter", "noise", lambda y, ft, b, a: scipy.signal.lfilter(
        np.asarray(b, ft), np.asarray(a, ft), y), b=(0.5, -0.25, 0.125, 0.0625, 0.3), a=(1.0,))
    golden.case("fftconvolve_full", "convolve", "noise,tiny", lambda x, h, ft, mode: scipy.signal.fftconvolve(
        x, h, mode=mode), mode="full")
    golden.case("savgol_filter_interp", "savgol_filter", "tiny", lambda y, ft, width, order, derivative, mode:
                scipy.signal.savgol_filter(y, width, order, deriv=derivative, mode=mode), width=11, order=3,
                derivative=1, mode="interp")


def k_weighting(fs):
    """The two sections of BS.1770 at any rate: its 48 kHz filters as analogue prototypes, bilinear with warping."""
    k = np.tan(np.pi * 1681.974450955533 / fs)
    vh, q = 10 ** (3.999843853973347 / 20), 0.7071752369554196
    vb, a0 = vh ** 0.4996667741545416, 1 + k / q + k * k
    shelf = [(vh + vb * k / q + k * k) / a0, 2 * (k * k - vh) / a0, (vh - vb * k / q + k * k) / a0, 1.0,
             2 * (k * k - 1) / a0, (1 - k / q + k * k) / a0]
    k, q = np.tan(np.pi * 38.13547087602444 / fs), 0.5003270373238773
    a0 = 1 + k / q + k * k
    return np.array([shelf, [1.0, -2.0, 1.0, 1.0, 2 * (k * k - 1) / a0, (1 - k / q + k * k) / a0]])


def integrated_loudness(y, ft, sr):
    """BS.1770-4 integrated loudness of a mono signal: 400 ms blocks, 75 % overlap, gates -70 LUFS and -10 LU."""
    y = scipy.signal.sosfilt(k_weighting(sr), y.astype(np.float64))
    block, hop = int(round(0.4 * sr)), int(round(0.1 * sr))
    power = np.array([np.mean(y[n:n + block] ** 2) for n in range(0, len(y) - block + 1, hop)])
    power = power[-0.691 + 10 * np.log10(power + 1e-30) > -70]
    gate = -0.691 + 10 * np.log10(power.mean()) - 10
    return -0.691 + 10 * np.log10(power[-0.691 + 10 * np.log10(power) > gate].mean())


def add_loudness(golden):
    for sr in (8000, 16000, 22050, 44100, 48000, 96000):
        golden.case(f"k_weighting_{sr}", "k_weighting", "", lambda ft, sr: k_weighting(sr), bound=1e-9, sr=sr)
    for signal, sr in (("jfk16k", 16000), ("drums", 22050), ("parts", 22050), ("jazz", 22050)):
        golden.case(f"loudness_{signal}", "loudness", signal, integrated_loudness, sr=sr)
    # A meter that interpolates four times may read 0.2 dB low (EBU Tech 3341, section 2.10): 2.3 % of the peak.
    golden.case("true_peak_chirp", "true_peak", "chirp", lambda y, ft, ratio: np.abs(
        scipy.signal.resample(np.pad(y, 512), ratio * (len(y) + 1024))).max(), bound=2.3e-2, ratio=16)
