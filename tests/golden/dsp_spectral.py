"""Golden cases: FFT, windows, STFT family, mel, MFCC, PCEN, Griffin-Lim, inversions, reassigned, Whisper."""
import librosa
import numpy as np
import scipy.optimize
import scipy.signal

from golden_set import lcg

SR = 22050


def add_cases(golden, whisper_filters):
    add_transforms(golden)
    add_stft(golden)
    add_mel(golden)
    add_cepstral(golden)
    add_inverse(golden)
    add_whisper(golden, whisper_filters)


def add_transforms(golden):
    for n in (1, 2, 60, 400, 1001, 1009, 2048):
        golden.case(f"rfft_{n}", "rfft", "noise", lambda y, ft, n: np.fft.rfft(y[:n]), goal=2e-7, n=n)
    for n in (63, 126):
        golden.case(f"fft_complex_{n}", "fft", "noise",
                    lambda y, ft, n, layout: np.fft.fft(y[:2 * n:2] + 1j * y[1:2 * n:2]), goal=2e-7, n=n,
                    layout="interleaved")
    windows = {"hann": "hann", "hamming": "hamming", "blackman": "blackman", "blackmanharris": "blackmanharris",
               "kaiser": ("kaiser", 8.6), "gaussian": ("gaussian", 9.0), "flattop": "flattop", "boxcar": "boxcar"}
    for name, window in windows.items():
        for periodic in (True, False):
            golden.case(f"window_{name}_{'periodic' if periodic else 'symmetric'}", "window", "",
                        lambda ft, window, n, periodic: scipy.signal.get_window(window, n, fftbins=periodic),
                        bound=1e-7, window=window, n=63 if name == "hann" else 64, periodic=periodic)


def run_stft(y, ft, **p):
    return librosa.stft(y, **p)


def add_stft(golden):
    settings = {
        "default": ("chirp", {}),
        "512_128_reflect": ("glide", dict(n_fft=512, hop_length=128, pad_mode="reflect")),
        "1024_nocenter": ("noise", dict(n_fft=1024, hop_length=256, center=False)),
        "win600_of_1024": ("plucks", dict(n_fft=1024, hop_length=300, win_length=600)),
        "win401_of_512_hamming": ("noise", dict(n_fft=512, hop_length=100, win_length=401, window="hamming")),
        "400_160_reflect": ("jfk16k", dict(n_fft=400, hop_length=160, pad_mode="reflect")),
        "odd_1023_edge": ("trumpet", dict(n_fft=1023, hop_length=257, pad_mode="edge")),
        "1000_ramp_blackman": ("sine", dict(n_fft=1000, hop_length=250, pad_mode="linear_ramp", window="blackman")),
        "256_boxcar_symmetric": ("noise", dict(n_fft=256, hop_length=64, pad_mode="symmetric", window="boxcar")),
        "kaiser_2048": ("drums", dict(n_fft=2048, hop_length=1024, window=("kaiser", 8.6))),
        "tiny_64": ("tiny", dict(n_fft=64, hop_length=16)),
    }
    for name, (signal, params) in settings.items():
        golden.case(f"stft_{name}", "stft", signal, run_stft, goal=5e-8, **params)

    # Every third bin of the spectrum is zeroed first: the inverse of a spectrum that no signal has.
    def run_istft(y, ft, zero_every, length, **p):
        d = librosa.stft(y, **p)
        if zero_every:
            d[::zero_every] = 0
        return librosa.istft(d, length=length, **p)

    def istft(name, signal, n_fft, hop, length=None, center=True, win=None, zero=3, window="hann"):
        golden.case(f"istft_{name}", "istft", signal, run_istft, goal=2e-7, n_fft=n_fft, hop_length=hop, length=length,
                    center=center, win_length=win, window=window, zero_every=zero)
    istft("2048_512", "chirp", 2048, 512)
    istft("2048_512_length", "glide", 2048, 512, length=22000)
    istft("400_160", "speech16k", 400, 160)
    # Hamming: a Hann window would divide the uncentred ends by almost nothing, and they would be the peak.
    istft("1024_nocenter", "noise", 1024, 256, center=False, window="hamming")
    istft("win600_of_1024", "plucks", 1024, 300, win=600)
    istft("roundtrip_1000", "trumpet", 1000, 250, zero=0)
    golden.case("reassigned_plucks", "reassigned_spectrogram", "plucks", run_reassigned, sr=SR, n_fft=1024,
                hop_length=256, fill_nan=False, clip=True, ref_power=1e-6)
    golden.case("reassigned_chirp", "reassigned_spectrogram", "chirp", run_reassigned, sr=SR, n_fft=2048,
                hop_length=512, fill_nan=True, clip=False, ref_power=1e-4)


def run_reassigned(y, ft, **p):
    return dict(zip(("freqs", "times", "mags"), librosa.reassigned_spectrogram(y, **p)))


def run_melspectrogram(y, ft, **p):
    return librosa.feature.melspectrogram(y=y, dtype=ft, **p)


def add_mel(golden):
    def bank(name, **p):
        golden.case(f"mel_{name}", "mel", "", lambda ft, **q: librosa.filters.mel(dtype=ft, **q), goal=2e-7, **p)
    bank("slaney_128", sr=SR, n_fft=2048, n_mels=128, htk=False, norm="slaney")
    bank("htk_40", sr=16000, n_fft=400, n_mels=40, htk=True, norm="slaney")
    bank("htk_40_nonorm", sr=SR, n_fft=1024, n_mels=40, htk=True, norm=None)
    bank("slaney_80_range", sr=16000, n_fft=512, n_mels=80, fmin=60.0, fmax=7600.0, htk=False, norm="slaney")
    bank("slaney_64_norm1", sr=SR, n_fft=1024, n_mels=64, htk=False, norm=1)
    bank("slaney_64_norm2", sr=SR, n_fft=1024, n_mels=64, htk=False, norm=2)
    bank("slaney_64_norminf", sr=SR, n_fft=1024, n_mels=64, htk=False, norm=np.inf)

    def mels(name, signal, **p):
        golden.case(f"melspectrogram_{name}", "melspectrogram", signal, run_melspectrogram, goal=2e-7, **p)
    mels("default", "strings", sr=SR)
    mels("htk_power1", "glide", sr=SR, n_fft=1024, hop_length=256, n_mels=40, htk=True, norm=None, power=1.0)
    mels("80_16k", "speech16k", sr=16000, n_fft=400, hop_length=160, n_mels=80, fmin=20.0, fmax=7600.0)
    mels("silence_parts", "parts", sr=SR, n_fft=2048, hop_length=512, n_mels=128)

    mel = golden.input("mel", librosa.feature.melspectrogram(y=golden.inputs["trumpet"], sr=SR, n_mels=64)[:, :48])
    golden.input("mel_scaled", mel * np.float32(2.0**31))

    def refs(ref):
        return {"max": np.max, "median": np.median}.get(ref, ref)

    def to_db(s, ft, ref, **p):
        return librosa.power_to_db(s, ref=refs(ref), **p)
    golden.case("power_to_db_default", "power_to_db", "mel", to_db, goal=2e-7, ref=1.0)
    golden.case("power_to_db_refmax", "power_to_db", "mel", to_db, goal=2e-7, ref="max", top_db=60.0)
    golden.case("power_to_db_notop", "power_to_db", "mel", to_db, goal=2e-7, ref=0.5, amin=1e-6, top_db=None)
    golden.case("power_to_db_refmedian", "power_to_db", "mel", to_db, goal=2e-7, ref="median", amin=1e-8, top_db=40.0)
    golden.case("amplitude_to_db_default", "amplitude_to_db", "mel",
                lambda s, ft, ref, **p: librosa.amplitude_to_db(s, ref=refs(ref), **p), goal=2e-7, ref=1.0)
    golden.case("amplitude_to_db_refmax", "amplitude_to_db", "mel",
                lambda s, ft, ref, **p: librosa.amplitude_to_db(s, ref=refs(ref), **p), goal=2e-7, ref="max",
                amin=1e-4, top_db=50.0)
    golden.case("db_to_power_20", "db_to_power", "noise",
                lambda y, ft, count, scale, ref: librosa.db_to_power(y[:count] * ft(scale), ref=ref),
                count=1000, scale=40.0, ref=2.0)
    golden.case("db_to_amplitude_20", "db_to_amplitude", "noise",
                lambda y, ft, count, scale, ref: librosa.db_to_amplitude(y[:count] * ft(scale), ref=ref),
                count=1000, scale=40.0, ref=2.0)
    golden.case("logmel_strings", "logmel", "strings", lambda y, ft, top_db, **p: librosa.power_to_db(
        run_melspectrogram(y, ft, **p), top_db=top_db), goal=2e-7, sr=SR, n_fft=2048, hop_length=512, n_mels=128,
        top_db=80.0)


def add_cepstral(golden):
    def mfcc(name, signal, **p):
        golden.case(f"mfcc_{name}", "mfcc", signal, lambda y, ft, **q: librosa.feature.mfcc(y=y, dtype=ft, **q),
                    goal=2e-7, **p)
    mfcc("default", "strings", sr=SR)
    mfcc("13_lifter22", "speech16k", sr=16000, n_mfcc=13, lifter=22, n_fft=400, hop_length=160, n_mels=40, htk=True)
    mfcc("dct1", "glide", sr=SR, n_mfcc=20, dct_type=1, norm=None, n_mels=40)
    mfcc("dct2_nonorm", "glide", sr=SR, n_mfcc=20, dct_type=2, norm=None, n_mels=40)
    mfcc("dct3_ortho", "trumpet", sr=SR, n_mfcc=20, dct_type=3, norm="ortho", n_mels=40)
    mfcc("silence_parts", "parts", sr=SR, n_mfcc=20)

    def delta(name, **p):
        golden.case(f"delta_{name}", "delta", "mel", lambda s, ft, **q: librosa.feature.delta(s, **q), **p)
    delta("default", width=9, order=1, mode="interp")
    delta("order2", width=9, order=2, mode="interp")
    delta("width5_nearest", width=5, order=1, mode="nearest")
    delta("width7_mirror", width=7, order=2, mode="mirror")
    delta("width9_constant", width=9, order=1, mode="constant", cval=0.0)
    delta("width9_wrap", width=9, order=1, mode="wrap")

    def pcen(name, **p):
        golden.case(f"pcen_{name}", "pcen", "mel_scaled", lambda s, ft, **q: librosa.pcen(s, **q), **p)
    pcen("default", sr=SR, hop_length=512)
    pcen("gain8_bias10", sr=SR, hop_length=512, gain=0.8, bias=10.0, power=0.25, time_constant=0.06, eps=1e-6)
    pcen("bias0", sr=SR, hop_length=512, gain=0.9, bias=0.0, power=0.5)
    pcen("power0", sr=SR, hop_length=512, gain=0.9, bias=2.0, power=0.0)
    pcen("max3", sr=SR, hop_length=512, max_size=3)
    pcen("b_given", sr=SR, hop_length=512, b=0.1)


class Phases(np.random.RandomState):
    """Gives librosa's Griffin-Lim the phases 2 pi u, u = (lcg(seed) + 1) / 2, bin after bin and frame after frame."""

    def __init__(self, seed):
        super().__init__(0)
        self.lcg_seed = seed

    def random(self, size):
        return ((lcg(self.lcg_seed, int(np.prod(size))) + 1) / 2).reshape(size)


def add_inverse(golden):
    golden.input("gl_mag", np.abs(librosa.stft(golden.inputs["glide"].astype(np.float64)[:11025], n_fft=512)))

    def run_griffinlim(s, ft, seed, init, **p):
        return librosa.griffinlim(s, random_state=Phases(seed), init=None if init == "zero" else init, **p)
    for n_iter in (1, 4, 32):
        for momentum in (0.0, 0.99):
            golden.case(f"griffinlim_{n_iter}_m{int(momentum * 100)}", "griffinlim", "gl_mag", run_griffinlim,
                        goal=1e-5, n_fft=512, n_iter=n_iter, momentum=momentum, seed=3, init="random")
    golden.case("griffinlim_32_zero", "griffinlim", "gl_mag", run_griffinlim, goal=1e-5, n_fft=512, n_iter=32,
                momentum=0.99, seed=0, init="zero")
    golden.case("griffinlim_4_length", "griffinlim", "gl_mag", run_griffinlim, goal=1e-5, n_fft=512, n_iter=4,
                momentum=0.5, seed=4, init="random", length=11100)

    # Underdetermined: librosa's answer is one of many; a judge compares the residual |A x - M| / |M|, kept beside it.
    def run_mel_to_stft(s, ft, sr, n_fft, power, **p):
        x = librosa.feature.inverse.mel_to_stft(s, sr=sr, n_fft=n_fft, power=power, **p)
        bank = librosa.filters.mel(sr=sr, n_fft=n_fft, n_mels=s.shape[0], dtype=ft)
        return {"mag": x, "residual": np.linalg.norm(bank @ x**power - s) / np.linalg.norm(s)}
    golden.case("mel_to_stft", "mel_to_stft", "mel", run_mel_to_stft, bound=1e-2, sr=SR, n_fft=2048, power=2.0)
    golden.input("nnls_a", np.abs(lcg(21, 40 * 12).reshape(40, 12)))
    golden.input("nnls_b", lcg(22, 40 * 9).reshape(40, 9) + 0.3)
    golden.case("nnls_overdetermined", "nnls", "nnls_a,nnls_b", lambda a, b, ft: np.stack(
        [scipy.optimize.nnls(a.astype(np.float64), column.astype(np.float64))[0] for column in b.T], axis=1))
    golden.case("mfcc_to_mel", "mfcc_to_mel", "mel", lambda s, ft, n_mfcc, n_mels: librosa.feature.inverse.mfcc_to_mel(
        librosa.feature.mfcc(S=librosa.power_to_db(s), n_mfcc=n_mfcc), n_mels=n_mels), n_mfcc=20, n_mels=64)


def add_whisper(golden, path):
    """openai/whisper audio.py log_mel_spectrogram() in NumPy: reflect-centred Hann 400/160, last frame dropped."""
    with np.load(path) as filters:
        banks = {80: filters["mel_80"]} | ({128: filters["mel_128"]} if "mel_128" in filters else {})

    def run(y, ft, n_mels, padding):
        y = np.concatenate([y, np.zeros(padding, ft)])
        power = np.abs(librosa.stft(y, n_fft=400, hop_length=160, pad_mode="reflect")[:, :-1])**2
        log = np.log10(np.maximum(banks[n_mels].astype(ft) @ power, 1e-10))
        return (np.maximum(log, log.max() - 8.0) + 4.0) / 4.0
    for n_mels in banks:
        golden.case(f"whisper_jfk_{n_mels}", "whisper_logmel", "jfk16k", run, goal=2e-7, n_mels=n_mels, padding=0)
    golden.case("whisper_speech_padded", "whisper_logmel", "speech16k", run, goal=2e-7, n_mels=80, padding=16000)
