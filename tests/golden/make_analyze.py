"""Make the golden values of the command line:  python make_analyze.py [OUT]

What `warptone analyze` gives for options that are librosa's parameters: analyze/cases.txt has a line a case, how many
arrays it has, the bound by the largest value, and the options; analyze/values.npz has the arrays, one case behind the
other; analyze/in.wav is what they are of. Values are librosa 0.11.0 (or SciPy) in float64 on float32 samples. Run with
the versions that make_dsp.py pins.
"""
import io
import os
import struct
import sys
import zipfile

import librosa
import numpy as np
import scipy.signal

RATE = 22050
SHORT = "--n-fft 512 --hop 512"
FINE = "--n-fft 512 --hop 128"
NEAR = 2e-6


def make_input(path):
    """A tone that begins anew five times, jumps up, and is silent for a while, over noise."""
    t = np.arange(17640) / RATE
    x = 0.3 * np.sin(2 * np.pi * np.where(t < 0.56, 447.3, 700) * t) * np.exp(-9 * (t % 0.16))
    x = (x + 0.05 * np.sin(2 * np.pi * 1320 * t)) * (abs(t - 0.4) > 0.07)
    x = (x + 0.02 * np.random.default_rng(15).standard_normal(len(t))).astype("<f4")
    data = x.tobytes()
    with open(path, "wb") as out:
        out.write(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt \x10\0\0\0")
        out.write(struct.pack("<HHIIHH", 3, 1, RATE, RATE * 4, 4, 32) + b"data" + struct.pack("<I", len(data)) + data)
    return x.astype(np.float64)


def cases_of_spectra(y):
    f, short = librosa.feature, {"n_fft": 512, "hop_length": 512}
    size = np.abs(librosa.stft(y, **short))

    def mel(**more):
        return f.melspectrogram(y=y, sr=RATE, n_mels=40, **short, **more)

    loud = mel(power=1) * 2**31
    coefficients = f.mfcc(S=librosa.power_to_db(mel()))
    freqs = librosa.fft_frequencies(sr=RATE, n_fft=512)
    yield f"stft --no-center {SHORT}", librosa.stft(y, center=False, **short)
    yield f"mel --n-mels 40 --power 1 {SHORT}", mel(power=1)
    yield f"mel --n-mels 40 --no-center {SHORT}", mel(center=False)
    yield f"logmel --n-mels 40 --ref max --top-db 30 {SHORT}", librosa.power_to_db(mel(), ref=np.max, top_db=30)
    yield f"logmel --n-mels 40 --ref 0.01 --amin 1e-3 {SHORT}", librosa.power_to_db(mel(), ref=0.01, amin=1e-3)
    yield f"spectrogram_db --ref max --top-db 50 {SHORT}", librosa.amplitude_to_db(size, ref=np.max, top_db=50)
    yield f"mfcc --n-mels 40 --dct-norm none {SHORT}", f.mfcc(S=librosa.power_to_db(mel()), norm=None)
    for options, k in [("mfcc_delta --delta-width 5 --delta-mode mirror", {"width": 5, "mode": "mirror"}),
                       ("mfcc_delta2 --delta-width 11 --delta-mode nearest", {"width": 11, "order": 2,
                        "mode": "nearest"}),
                       ("mfcc_delta --delta-mode constant --delta-cval 3", {"mode": "constant", "cval": 3}),
                       ("mfcc_delta --delta-mode wrap", {"mode": "wrap"})]:
        yield f"{options} --n-mels 40 {SHORT}", f.delta(coefficients, **k)
    yield f"rms_delta3 {SHORT}", f.delta(f.rms(y=y, frame_length=512), order=3)[0]
    for options, k in [("--pcen-gain 0.8", {"gain": 0.8}), ("--pcen-bias 10", {"bias": 10}),
                       ("--pcen-power 0.25", {"power": 0.25}), ("--pcen-power 0", {"power": 0}),
                       ("--time-constant 0.06", {"time_constant": 0.06}), ("--eps 1e6", {"eps": 1e6}),
                       ("--pcen-b 0.1", {"b": 0.1}), ("--max-size 3", {"max_size": 3})]:
        yield f"pcen --n-mels 40 {options} {SHORT}", librosa.pcen(loud, sr=RATE, **k)
    yield (f"bandwidth --p 3 --no-norm {SHORT}",
           f.spectral_bandwidth(S=size, sr=RATE, n_fft=512, p=3, norm=False)[0])
    yield f"rolloff --roll-percent 0.5 {SHORT}", f.spectral_rolloff(S=size, sr=RATE, n_fft=512, roll_percent=0.5)[0]
    yield f"flatness --power 1 --amin 0.1 {SHORT}", f.spectral_flatness(S=size, power=1, amin=0.1)[0]
    for linear in False, True:
        yield (f"contrast --fmin 300 --n-bands 4 --quantile 0.1 {'--linear' if linear else ''} {SHORT}",
               f.spectral_contrast(S=size, sr=RATE, n_fft=512, fmin=300, n_bands=4, quantile=0.1, linear=linear))
    yield f"poly --poly-order 2 {SHORT}", f.poly_features(S=size, sr=RATE, n_fft=512, order=2)
    yield f"poly --poly-order 0 {SHORT}", f.poly_features(S=size, sr=RATE, n_fft=512, order=0)
    yield f"rms --padding reflect {SHORT}", f.rms(y=y, frame_length=512, pad_mode="reflect")[0]
    yield f"rms --no-center {SHORT}", f.rms(y=y, frame_length=512, center=False)[0]
    yield f"zcr --no-center {SHORT}", f.zero_crossing_rate(y, frame_length=512, center=False)[0]
    yield (f"salience --harmonics 1/2,1,2 --weights 0.5,1,0.25 --fill-value nan {SHORT}",
           librosa.salience(size, freqs=freqs, harmonics=[0.5, 1, 2], weights=[0.5, 1, 0.25]))
    yield (f"salience --harmonics 1,2,3 --all-bins {SHORT}",
           librosa.salience(size, freqs=freqs, harmonics=[1, 2, 3], filter_peaks=False))
    for options, k in [("--no-clip", {"clip": False}), ("--fill-nan", {"fill_nan": True})]:
        yield (f"reassigned --ref-power 1e-3 {options} {SHORT}",
               *librosa.reassigned_spectrogram(y=y, sr=RATE, ref_power=1e-3, **short, **k))
    yield f"piptrack --threshold 0.5 {SHORT}", *librosa.piptrack(y=y, sr=RATE, threshold=0.5, **short)
    for options, k in [("--resolution 0.3", {"resolution": 0.3}), ("--threshold 0.95", {"threshold": 0.95}),
                       ("--fmin 600", {"fmin": 600})]:
        yield (f"tuning {options} {SHORT}", np.float64(librosa.estimate_tuning(y=y, sr=RATE, **short, **k)))
    spectra = librosa.stft(y, **short)
    parts = librosa.decompose.hpss(spectra, margin=(2.0, 3.0))
    yield (f"hpss --margin 2 --margin-percussive 3 {SHORT}",
           *(librosa.istft(p, length=len(y), **short) for p in parts), 2e-4)  # hops of a frame: windows leave little


def cases_of_bins(y):
    f = librosa.feature
    for name, options, k in [
            ("cqt", "--tuning 0.3", {"tuning": 0.3}), ("cqt", "--filter-scale 0.5", {"filter_scale": 0.5}),
            ("cqt", "--filter-norm 2", {"norm": 2}), ("cqt", "--filter-norm inf", {"norm": np.inf}),
            ("cqt", "--filter-norm none", {"norm": None}), ("cqt", "--sparsity 0.2", {"sparsity": 0.2}),
            ("cqt", "--no-scale", {"scale": False}), ("cqt", "--window hamming", {"window": "hamming"}),
            ("cqt", "--window kaiser --window-parameter 6", {"window": ("kaiser", 6.0)}),
            ("cqt", "--padding reflect", {"pad_mode": "reflect"}), ("vqt", "--gamma 20", {"gamma": 20}),
            ("vqt", "--gamma 0", {"gamma": 0}), ("pseudo_cqt", "--filter-scale 0.7", {"filter_scale": 0.7}),
            ("hybrid_cqt", "--tuning -0.2 --sparsity 0.1", {"tuning": -0.2, "sparsity": 0.1})]:
        yield (f"{name} --fmin 220 --n-bins 24 {options}",
               getattr(librosa, name)(y, sr=RATE, fmin=220, n_bins=24, **k))
    yield ("vqt --fmin 220 --n-bins 14 --intervals 1,9/8,5/4,4/3,3/2,5/3,15/8",
           librosa.vqt(y, sr=RATE, fmin=220, n_bins=14, bins_per_octave=7,
                       intervals=[1, 9 / 8, 5 / 4, 4 / 3, 3 / 2, 5 / 3, 15 / 8]))
    for options, k in [("--norm 2", {"norm": 2}), ("--norm 1", {"norm": 1}), ("--norm none", {"norm": None}),
                       ("--tuning 0.2", {"tuning": 0.2}), ("--ctroct 3", {"ctroct": 3}),
                       ("--octwidth 1", {"octwidth": 1}),
                       ("--octwidth 0", {"octwidth": None}), ("--base-a", {"base_c": False})]:
        yield f"chroma {options} {SHORT}", f.chroma_stft(y=y, sr=RATE, n_fft=512, hop_length=512, **k)
    low = {"fmin": 110, "n_octaves": 4}
    for name, options, k in [
            ("chroma_cqt", "--norm none --threshold 0.2", {"norm": None, "threshold": 0.2}),
            ("chroma_cqt", "--bins-per-octave 24", {"bins_per_octave": 24}),
            ("chroma_cqt", "--hop 2048 --cqt-mode hybrid", {"hop_length": 2048, "cqt_mode": "hybrid"}),
            ("chroma_cqt", "--tuning 0.4", {"tuning": 0.4}),
            ("chroma_cens", "--win-len-smooth 11", {"win_len_smooth": 11}),
            ("chroma_cens", "--norm inf", {"norm": np.inf})]:
        yield f"{name} --fmin 110 --n-octaves 4 {options}", getattr(f, name)(y=y, sr=RATE, **low, **k)


def cases_of_time(y):
    f, fine = librosa.feature, {"n_fft": 512, "hop_length": 128}
    mean = librosa.onset.onset_strength(y=y, sr=RATE, n_mels=40, **fine)
    median = librosa.onset.onset_strength(y=y, sr=RATE, n_mels=40, aggregate=np.median, **fine)
    bands = f"--n-mels 40 {FINE}"
    for options, k in [("--lag 2", {"lag": 2}), ("--max-size 3", {"max_size": 3}), ("--detrend", {"detrend": True}),
                       ("--aggregate median", {"aggregate": np.median}), ("--no-center", {"center": False})]:
        yield f"onset_strength {options} {bands}", librosa.onset.onset_strength(y=y, sr=RATE, n_mels=40, **fine, **k)
    envelope = {"onset_envelope": mean, "sr": RATE, "hop_length": 128}
    for options, k in [("--delta 0.4", {"delta": 0.4}), ("--wait 40", {"wait": 40}),
                       ("--pre-max 40", {"pre_max": 40}), ("--post-max 40", {"post_max": 40}),
                       ("--pre-avg 0 --post-avg 1 --delta 0", {"pre_avg": 0, "post_avg": 1, "delta": 0}),
                       ("--no-normalize --delta 0.8", {"normalize": False, "delta": 0.8})]:
        yield f"onsets {options} {bands}", librosa.onset.onset_detect(**envelope, **k).astype(np.int32)
    for options, k in [("--start-bpm 60", {"start_bpm": 60}),
                       ("--start-bpm 60 --std-bpm 0.2", {"start_bpm": 60, "std_bpm": 0.2}),
                       ("--max-tempo 100", {"max_tempo": 100}), ("--ac-size 0.4", {"ac_size": 0.4})]:
        yield f"tempo {options} {bands}", f.tempo(**envelope, **k)[0]
    yield f"tempos --ac-size 0.4 {bands}", f.tempo(**envelope, ac_size=0.4, aggregate=None)
    for options, k in [("--tightness 1", {"tightness": 1}), ("--no-trim", {"trim": False})]:
        bpm, beats = librosa.beat.beat_track(onset_envelope=median, sr=RATE, hop_length=128, bpm=150, **k)
        yield f"beats --bpm 150 {options} {bands}", beats.astype(np.int32), np.float64(bpm)
    yield f"tempogram --tempogram-length 31 --no-norm {bands}", f.tempogram(**envelope, win_length=31, norm=None)
    yield f"fourier_tempogram --tempogram-length 30 {bands}", f.fourier_tempogram(**envelope, win_length=30)
    yield (f"plp --tempogram-length 100 --tempo-min 200 --tempo-max 500 {bands}",
           librosa.beat.plp(onset_envelope=median, sr=RATE, hop_length=128, win_length=100, tempo_min=200,
                            tempo_max=500))
    pitch = {"sr": RATE, "fmin": librosa.note_to_hz("C2"), "fmax": librosa.note_to_hz("C7"), "frame_length": 2048,
             "hop_length": 512}
    for options, k in [("--trough-threshold 0.5", {"trough_threshold": 0.5}),
                       ("--padding reflect", {"pad_mode": "reflect"}),
                       ("--no-center", {"center": False})]:
        yield f"yin {options}", librosa.yin(y, **pitch, **k)
    for options, k in [("--n-thresholds 20", {"n_thresholds": 20}),
                       ("--beta-parameters 1,18", {"beta_parameters": (1, 18)}),
                       ("--fmin 66 --n-thresholds 3 --boltzmann-parameter 700 --keep-unvoiced",
                        {"fmin": 66, "n_thresholds": 3, "boltzmann_parameter": 700, "fill_na": None}),
                        ("--resolution 0.3", {"resolution": 0.3}),
                       ("--max-transition-rate 10", {"max_transition_rate": 10}),
                       ("--switch-prob 1e-9", {"switch_prob": 1e-9}),
                       ("--no-trough-prob 0.5", {"no_trough_prob": 0.5}), ("--keep-unvoiced", {"fill_na": None})]:
        yield f"pyin {options}", *librosa.pyin(y, **{**pitch, **k})


def cases_of_signals(y):
    def through(taps):
        return np.convolve(y, taps)[15:-15]

    for options, window in [("hann", "hann"), ("kaiser --window-parameter 5", ("kaiser", 5.0)),
                            ("rectangular", "boxcar"),
                            ("blackman", "blackman")]:
        yield (f"fir --edges 1000 --taps 31 --window {options}",
               through(scipy.signal.firwin(31, 1000, fs=RATE, window=window)))
    yield ("fir --edges 1000 --taps 31 --no-scale", through(scipy.signal.firwin(31, 1000, fs=RATE, scale=False)))
    yield ("fir --edges 3000 --taps 31 --design least_squares --weights 1,10 --transition 1000",
           through(scipy.signal.firls(31, [0, 2500, 3500, RATE / 2], [1, 1, 0, 0], weight=[1, 10], fs=RATE)))
    yield ("fir --edges 3000 --taps 31 --design equiripple --weights 1,10 --transition 1000",
           through(scipy.signal.remez(31, [0, 2500, 3500, RATE / 2], [1, 0], weight=[1, 10], fs=RATE)),
           1e-3)  # its grid
    yield "savgol --derivative 1 --spacing 0.01", scipy.signal.savgol_filter(y, 11, 3, deriv=1, delta=0.01)
    size = np.abs(librosa.stft(y, n_fft=512, hop_length=128))
    for momentum in 0, 0.5:  # iterations magnify what float leaves of the magnitudes
        yield (f"griffin_lim --init zero --momentum {momentum} --iterations 4 {FINE}",
               librosa.griffinlim(size, init=None, momentum=momentum, n_iter=4, length=len(y), hop_length=128), 1e-4)
    yield ("pitch_shift --vocoder librosa --quality soxr_hq --steps 3 --bins-per-octave 24 --scale",
           librosa.effects.pitch_shift(y, sr=RATE, n_steps=3, bins_per_octave=24, scale=True))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "analyze")
    y = make_input(f"{folder}/in.wav")
    arrays, lines = {}, []
    for cases in cases_of_spectra, cases_of_bins, cases_of_time, cases_of_signals:
        for options, *values in cases(y):
            bound = values.pop() if isinstance(values[-1], float) and not isinstance(values[-1], np.floating) else NEAR
            lines.append(f"{len(values)} {bound:g} {' '.join(options.split())}\n")
            for v in map(np.asarray, values):
                single = {"f": np.float32, "c": np.complex64}.get(v.dtype.kind)
                arrays[f"{len(arrays):03}"] = np.array(v, single if single and v.ndim else None, order="C")
    with zipfile.ZipFile(f"{folder}/values.npz", "w") as out:  # as np.savez, without 64-bit sizes
        for name, v in arrays.items():
            member = io.BytesIO()
            np.save(member, v)
            out.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    with open(f"{folder}/cases.txt", "w") as out:
        out.writelines(lines)
    print(f"{len(lines)} cases, {len(arrays)} arrays, {os.path.getsize(f'{folder}/values.npz')} bytes")


if __name__ == "__main__":
    main()
