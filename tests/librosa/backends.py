"""Random calls of `warptone analyze` on the CPU and on a GPU: features, options and signals by chance.

    venv/bin/python tests/librosa/backends.py [--calls 350] [--first 0] [--jobs 8] [--seconds 80] [--only NAME,...]
                                              [--sides cpu,cuda] [build/warptone [other/warptone]]

Call k has its number as its seed and the features in turn; one of five is of slopes instead. With two
programs the first side is run by the first, the second by the other. Told is what differs: exit codes, names, shapes,
integers, what is no number, and floats by more than 2e-6 of the array's peak, slopes of the peak of what they are slopes
of (where nothing changes they are its last digits), HPSS of both parts. Exit 0: nothing; 1: something; 77: there is no
numpy.
"""
import argparse
import multiprocessing
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

BOUND = 2e-6
LENGTHS = [2, 3, 5, 16, 30, 64, 77, 100, 128, 200, 256, 400, 441, 480, 512, 600, 640, 768, 800, 882, 960, 1000, 1021,
           1024, 1200, 1323, 1536, 1764, 1792, 1920, 2000, 2048, 2205, 2400, 2816, 3000, 3072, 3328, 4096, 4410, 4800,
           6000, 6144, 8192, 8820, 9600, 12000, 16384, 20000, 32768]
SLOPES = ["spectrogram", "mel", "logmel", "pcen", "chroma", "chroma_cqt", "tonnetz", "rms", "centroid", "bandwidth",
          "flatness", "contrast", "onset_strength", "salience", "pseudo_cqt", "zcr"]


# ---- signals

def write_wav(path, x, rate, float32):
    import numpy as np
    x = np.atleast_2d(x)
    data = x.T.astype("<f4").tobytes() if float32 else (x.T.clip(-1, 1) * 32767).astype("<i2").tobytes()
    width = 4 if float32 else 2
    kind = struct.pack("<HHIIHH", 3 if float32 else 1, len(x), rate, rate * len(x) * width, len(x) * width, 8 * width)
    head = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt \x10\0\0\0" + kind + b"data"
    with open(path, "wb") as out:
        out.write(head + struct.pack("<I", len(data)) + data)


def make_files(folder):
    """Random signals, of several rates, lengths and channels; silence, an offset, what is no number."""
    import numpy as np
    from random_signals import RATE, signal
    rng = np.random.default_rng(1)
    os.makedirs(f"{folder}/in")
    for k in range(12):
        write_wav(f"{folder}/in/{k}.wav", signal(k), RATE, k % 3 != 0)
    stereo = [signal(20), signal(21)]
    n = min(len(y) for y in stereo)
    write_wav(f"{folder}/in/stereo44.wav", np.stack([y[:n] for y in stereo]), 44100, True)
    write_wav(f"{folder}/in/mono16.wav", signal(22), 16000, False)
    write_wav(f"{folder}/in/mono48.wav", signal(23), 48000, False)
    write_wav(f"{folder}/in/noise.wav", 0.2 * rng.standard_normal(8 * RATE), RATE, False)
    write_wav(f"{folder}/in/short.wav", 0.2 * rng.standard_normal(3000), RATE, False)
    write_wav(f"{folder}/in/seven.wav", 0.1 * rng.standard_normal((7, 30000)), 44100, False)
    write_wav(f"{folder}/in/silence.wav", np.zeros(30000), RATE, True)
    write_wav(f"{folder}/in/level.wav", 0.5 + 0.1 * signal(28), RATE, True)
    write_wav(f"{folder}/in/quiet.wav", 1e-7 * signal(26), RATE, True)
    holes = signal(27)
    holes[1000::5000], holes[1::9000] = np.nan, np.inf
    write_wav(f"{folder}/in/holes.wav", holes, RATE, True)
    decay = np.exp(-np.arange(6000) / 900)
    write_wav(f"{folder}/impulse.wav", 0.1 * rng.standard_normal(6000) * decay, RATE, True)
    write_wav(f"{folder}/playback.wav", 0.3 * np.concatenate([signal(24), signal(25)]), RATE, True)


# ---- options

# Phases that vocoders add up along frames that do not overlap are the rounding's: an input's last digit moves their
# output by 1e-3. HPSS and istft of such frames divide by what windows leave between them, which shows the last digits of
# resamplers that sum in float. These have frames that overlap.
OVERLAPPING = ["time_stretch", "pitch_shift", "hpss", "istft"]


def draw_spectra(r, feature):
    o, n = [], 2048
    if r.random() < 0.6:
        n = r.choice(LENGTHS)
        o += ["--n-fft", n]
    if feature in OVERLAPPING:
        o += ["--hop", r.choice([max(1, n // 4), max(1, n // 2), max(1, n // 3)])]
    elif r.random() < 0.5:
        o += ["--hop", r.choice([max(1, n // 4), max(1, n // 2), n, max(1, n // 3), r.randint(max(1, n // 16), 2 * n),
                                 512, 160])]
    if r.random() < 0.2:
        o += ["--win-length", r.randint(1, n)]
    return o


# an option, how often, its values
OFTEN = [
    ("--n-mels", 0.3, [1, 2, 13, 40, 64, 80, 128, 200, 256, 500]), ("--n-mfcc", 0.2, [1, 13, 20, 40]),
    ("--n-bins", 0.2, [1, 12, 24, 60, 84]), ("--bins-per-octave", 0.1, [3, 12, 24, 36]),
    ("--n-chroma", 0.2, [6, 12, 24, 36]), ("--fmin", 0.2, [20, 32.7, 65.4, 110, 300]),
    ("--fmax", 0.2, [500, 1000, 2093, 3000, 5000]), ("--margin", 0.3, [1, 2, 5]),
    ("--padding", 0.15, ["reflect", "symmetric", "edge", "ramp"]),
    ("--window", 0.15, ["hamming", "blackman", "blackman_harris", "flat_top", "rectangular"]),
    ("--speed", 0.6, [0.5, 0.8, 1, 1.25, 2, 3.7]), ("--steps", 0.6, [-12, -5, -0.5, 3, 7, 12]),
    ("--vocoder", 0.6, ["transient", "locked", "librosa", "wsola"]), ("--components", 0.2, [1, 3, 8, 17]),
    ("--iterations", 0.8, [1, 2, 3, 10]), ("--bpm", 0.2, [60, 97, 180]), ("--top-db", 0.3, [10, 30, 60]),
    ("--rate", 0.4, [0, 8000, 16000, 22050, 44100, 48000]), ("--tile", 0.2, [10000, 50000, 100000]),
    ("--quality", 0.3, ["best", "fast", "soxr_hq", "polyphase"]),
    ("--family", 0.6, ["butterworth", "chebyshev1", "chebyshev2", "elliptic", "bessel"]),
    ("--order", 0.5, [1, 2, 3, 5, 8, 12]), ("--ripple", 0.2, [0.1, 3]), ("--attenuation", 0.2, [40, 80]),
    ("--design", 0.6, ["window", "least_squares", "equiripple"]), ("--taps", 0.5, [5, 21, 63, 101, 255]),
    ("--polynomial", 0.4, [0, 1, 2, 4]), ("--derivative", 0.3, [0, 1, 2]), ("--coefficient", 0.4, [0.5, 0.9, 0.97]),
    ("--by", 0.6, ["loudness", "rms", "peak"]), ("--target", 0.4, [-40, -23, -14, -3]),
    ("--ceiling", 0.3, [-6, -1, 0]), ("--max-gain", 0.3, [6, 24, 50]),
    ("--denoiser", 0.6, ["lsa", "wiener", "gate"]), ("--noise", 0.3, ["0,0.3", "0.2,0.8"]),
    ("--max-cut", 0.3, [6, 30, 60]), ("--tail", 0.4, [16, 64, 256, 500]),
]
# settings of ops: the features that have them, how often, and their values
OF_DECIBELS = "logmel mfcc mfcc_delta mfcc_delta2 spectrogram_db"
OF_MEL = "mel logmel mfcc mfcc_to_mel mfcc_to_audio mel_to_stft mel_to_audio"
OF_CQT = "cqt vqt pseudo_cqt hybrid_cqt icqt"
OF_FOLDED = "chroma_cqt chroma_cens tonnetz"
OF_ONSETS = ("onset_strength onsets tempo tempos beats tempogram fourier_tempogram tempo_ratios plp")
OF_TEMPO = "tempo tempos beats tempo_ratios"
SETTINGS = [
    (OF_DECIBELS, 0.4, "--ref", ["max", 0.01, 100]), (OF_DECIBELS + " flatness", 0.3, "--amin", [1e-8, 1e-5, 0.01]),
    (OF_DECIBELS, 0.3, "--top-db", [20, 120, 1000]), (OF_MEL + " flatness", 0.4, "--power", [0.5, 1, 1.5, 3]),
    ("mfcc mfcc_delta mfcc_delta2 mfcc_to_mel mfcc_to_audio", 0.4, "--dct-norm", ["none"]),
    ("mfcc_delta mfcc_delta2", 0.5, "--delta-width", [3, 5, 11, 31]),
    ("mfcc_delta mfcc_delta2", 0.5, "--delta-mode", ["interp", "nearest", "mirror", "constant", "wrap"]),
    ("pcen", 0.5, "--pcen-gain", [0, 0.5, 0.8]), ("pcen", 0.5, "--pcen-bias", [0, 1, 10]),
    ("pcen", 0.5, "--pcen-power", [0, 0.25, 1]), ("pcen", 0.5, "--time-constant", [0.06, 1]),
    ("pcen", 0.3, "--pcen-b", [0.05, 1]), ("pcen " + OF_ONSETS, 0.4, "--max-size", [1, 2, 3, 5]),
    (OF_CQT, 0.5, "--filter-scale", [0.5, 0.8, 2]), (OF_CQT, 0.3, "--filter-norm", ["1", "2", "inf", "none"]),
    (OF_CQT, 0.3, "--sparsity", [1e-6, 0.05, 0.2]), (OF_CQT + " fir", 0.3, "--no-scale", None),
    (OF_CQT + " chroma " + OF_FOLDED, 0.4, "--tuning", [-0.4, 0, 0.123, 0.5]),
    ("vqt", 0.5, "--gamma", [0, 5, 30]), ("vqt", 0.3, "--intervals", ["1,9/8,5/4,4/3,3/2,5/3,15/8", "1,1.2,1.6"]),
    ("nsgt insgt", 0.5, "--slice", [4096, 16384, 30000, 131072]),
    ("chroma " + OF_FOLDED, 0.4, "--norm", ["inf", "1", "2", "none"]), ("chroma", 0.3, "--ctroct", [3, 6.5]),
    ("chroma", 0.4, "--octwidth", [0, 1, 4]), ("chroma", 0.3, "--base-a", None),
    (OF_FOLDED, 0.4, "--n-octaves", [3, 5, 6]), (OF_FOLDED, 0.4, "--cqt-mode", ["full", "hybrid"]),
    ("chroma_cens", 0.5, "--win-len-smooth", [1, 2, 11, 80]),
    (OF_FOLDED + " piptrack tuning", 0.3, "--threshold", [0.01, 0.05, 0.4]),
    ("tuning", 0.5, "--resolution", [0.001, 0.05, 0.3]), ("pyin", 0.4, "--resolution", [0.05, 0.25]),
    ("rolloff", 0.6, "--roll-percent", [0.01, 0.5, 0.99]), ("bandwidth", 0.6, "--p", [0.5, 1, 3]),
    ("bandwidth tempogram", 0.4, "--no-norm", None), ("contrast", 0.4, "--n-bands", [1, 3, 5]),
    ("contrast", 0.4, "--quantile", [0.01, 0.1, 0.5]), ("contrast", 0.4, "--linear", None),
    ("poly", 0.6, "--poly-order", [0, 2, 3]), ("salience", 0.5, "--harmonics", ["1", "1/2,1,2,3", "1,2.5"]),
    ("salience", 0.4, "--all-bins", None), ("salience", 0.4, "--fill-value", ["nan", 0, -1]),
    ("reassigned", 0.5, "--ref-power", [1e-3, 0.1]), ("reassigned", 0.4, "--fill-nan", None),
    ("reassigned", 0.4, "--no-clip", None), ("hpss residual hpss_masks", 0.4, "--margin-percussive", [1, 3]),
    ("pitch_shift", 0.4, "--scale", None), ("pitch_shift", 0.3, "--formant-order", [10, 40]),
    ("griffin_lim mel_to_audio mfcc_to_audio", 0.4, "--init", ["random", "zero"]),
    ("griffin_lim mel_to_audio mfcc_to_audio", 0.4, "--momentum", [0, 0.5, 0.9]), ("savgol", 0.4, "--spacing", [0.01, 3]),
    ("fir", 0.5, "--window", ["hamming", "hann", "blackman", "rectangular"]),
    (OF_ONSETS, 0.4, "--lag", [1, 2, 5]), (OF_ONSETS, 0.3, "--detrend", None),
    (OF_ONSETS, 0.3, "--aggregate", ["mean", "median"]), ("onsets", 0.3, "--delta", [0, 0.2, 0.5]),
    ("onsets", 0.3, "--wait", [0, 10]), ("onsets", 0.3, "--pre-max", [0, 4]), ("onsets", 0.3, "--post-max", [1, 4]),
    ("onsets", 0.3, "--pre-avg", [0, 10]), ("onsets", 0.3, "--post-avg", [1, 10]),
    ("onsets", 0.3, "--no-normalize", None), (OF_TEMPO, 0.4, "--start-bpm", [60, 90, 200]),
    (OF_TEMPO, 0.3, "--std-bpm", [0.3, 2]), (OF_TEMPO, 0.3, "--max-tempo", [150, 240]),
    (OF_TEMPO, 0.3, "--ac-size", [2, 5, 12]), ("beats", 0.4, "--tightness", [1, 30, 400]),
    ("beats", 0.3, "--no-trim", None),
    ("tempogram fourier_tempogram tempo_ratios plp", 0.5, "--tempogram-length", [30, 101, 200, 500]),
    ("plp", 0.4, "--tempo-min", [20, 60]), ("plp", 0.4, "--tempo-max", [150, 250]),
    ("yin", 0.5, "--trough-threshold", [0.01, 0.3]), ("pyin", 0.4, "--n-thresholds", [3, 50]),
    ("pyin", 0.4, "--beta-parameters", ["1,18", "2,5"]), ("pyin", 0.4, "--boltzmann-parameter", [0.5, 4]),
    ("pyin", 0.4, "--max-transition-rate", [10, 60]), ("pyin", 0.4, "--switch-prob", [0.001, 0.2]),
    ("pyin", 0.4, "--no-trough-prob", [0.001, 0.5]), ("pyin", 0.3, "--keep-unvoiced", None),
    ("vad", 0.5, "--vad-enter", [6, 15]), ("vad", 0.5, "--vad-leave", [1, 5]), ("vad", 0.3, "--vad-min", [-100, -30]),
    ("vad", 0.4, "--hangover", [10, 1000]), ("loudness", 0.4, "--no-true-peak", None),
]
FLAGS = [("--htk", 0.1), ("--no-center", 0.15), ("--keep-formants", 0.3), ("--backtrack", 0.3), ("--channels", 0.3)]


def draw(number, features, folder):
    """Features, options and the file of a call."""
    r = random.Random(number)
    feature = features[number % len(features)]
    if r.random() < 0.2:
        feature = r.choice(SLOPES) + r.choice(["_delta", "_delta2"])
    o = draw_spectra(r, feature)
    for name, share, values in OFTEN:
        if r.random() < share:
            o += [name, r.choice(values)]
    o += [name for name, share in FLAGS if r.random() < share]
    made = feature.removesuffix("2").removesuffix("_delta")
    for features_of_it, share, name, values in SETTINGS:
        if (feature in features_of_it.split() or made in features_of_it.split()) and r.random() < share:
            o += [name] if values is None else [name, r.choice(values)]
    if made != feature and r.random() < 0.3:
        o += ["--delta-width", r.choice([3, 5, 15])]
    if r.random() < 0.5:
        o += ["--band", "low" if r.random() < 0.5 else "high", "--edges", r.choice([50, 300, 1000, 3000])]
    else:
        o += ["--band", r.choice(["pass", "stop"]), "--edges", r.choice(["100,400", "300,3400", "900,1000"])]
    if feature == "whisper":
        o = ["--rate", 16000, "--n-fft", 400, "--hop", 160]
    o += ["--impulse", f"{folder}/impulse.wav", "--playback", f"{folder}/playback.wav"]
    files = sorted(os.listdir(f"{folder}/in"))
    return feature, [str(v) for v in o], f"{folder}/in/{r.choice(files)}"


# ---- calls

def run(side, program, feature, options, path, out):
    """The exit code, and the arrays or the message."""
    import numpy as np
    command = [program, "analyze", "-q", "-j", "1", "-f", feature, "--backend", side, *options, path, out]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        return -99, "longer than 90 s"
    if done.returncode:
        return done.returncode, done.stderr.strip()[-300:]
    with np.load(out) as arrays:
        return 0, dict(arrays)


def differences(want, got, least_peak):
    """Of two sets of arrays: lines, and the largest difference of floats by their peak."""
    import numpy as np
    if list(want) != list(got):
        return [f"NAMES {list(want)} {list(got)}"], 0
    lines, worst = [], 0
    for name, v in want.items():
        w = got[name]
        if v.shape != w.shape or v.dtype != w.dtype:
            lines.append(f"SHAPE {name} {v.dtype}{v.shape} {w.dtype}{w.shape}")
        elif v.dtype.kind in "iub" and (v != w).any():
            lines.append(f"INT {name} {int((v != w).sum())} of {v.size}")
        elif v.dtype.kind in "fc" and v.size:
            there = np.isfinite(v)
            shape = v.shape
            if (there != np.isfinite(w)).any() or (v[np.isinf(v)] != w[np.isinf(v)]).any():
                lines.append(f"FINITE {name} {int((there != np.isfinite(w)).sum())} of {v.size}")
                continue
            v, w = v[there].astype(np.complex128), w[there].astype(np.complex128)
            peak, off = np.abs(v).max(initial=least_peak), np.abs(v - w).max(initial=0)
            share = off / peak if peak else off
            worst = max(worst, share)
            if share > BOUND:
                k = int(np.abs(v - w).argmax())
                lines.append(f"FLOAT {share:.1e} {name} peak {peak:.4g} off {off:.2g}, {w[k]:.7g} for {v[k]:.7g}, number "
                             f"{k} of {shape}, {int((np.abs(v - w) > BOUND * peak).sum())} so")
    return lines, worst


def peak_below(slopes, *call):
    """The largest number of what slopes are of, or of the two parts of a signal; 0 of what is neither."""
    import numpy as np
    feature = slopes.removesuffix("2").removesuffix("_delta")
    if feature == slopes != "hpss":
        return 0
    code, arrays = run(call[0], call[1], feature, *call[2:])
    return 0 if code else max(np.abs(v[np.isfinite(v)]).max(initial=0) for v in arrays.values())


def compare(task):
    """(feature, refused, lines, worst) of a call, or None when the time is over."""
    number, features, folder, sides, programs, end = task
    if time.time() > end:
        return None
    feature, options, path = draw(number, features, folder)
    out = f"{folder}/{os.getpid()}.npz"
    results = [run(side, program, feature, options, path, out) for side, program in zip(sides, programs)]
    codes, lines, worst = [code for code, _ in results], [], 0
    if codes[0] != codes[1]:
        lines = [f"EXIT {codes[0]} {codes[1]} {' | '.join(str(r) for c, r in results if c)}"]
    elif not 0 <= codes[0] <= 3 or codes[0] == 1:
        lines = [f"EXIT {codes[0]} {results[0][1]}"]
    elif not codes[0]:
        least = peak_below(feature, sides[0], programs[0], options, path, out)
        lines, worst = differences(results[0][1], results[1][1], least)
    call = " ".join([feature, *options, path]).replace(folder + "/", "")
    return feature, codes[0] != 0, [f"{line} | {number}: {call}" for line in lines], worst


def features_of(program):
    text = subprocess.run([program, "analyze", "--help"], capture_output=True, text=True, check=True).stdout
    lines = text.split("features:\n")[1].split("\n\noptions:")[0].splitlines()
    return [line.split()[0] for line in lines]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--calls", type=int, default=350)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--jobs", type=int, default=8)
    options.add_argument("--seconds", type=float, default=80)
    options.add_argument("--only", help="features")
    options.add_argument("--sides", default="cpu,cuda")
    options.add_argument("warptone", nargs="*", default=["build/warptone"])
    o = options.parse_args()
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    programs = [os.path.abspath(p) for p in (o.warptone[0], o.warptone[-1])]
    features = o.only.split(",") if o.only else features_of(programs[0])
    n = refused = n_off = 0
    worst = {}
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(o.jobs) as pool:
        make_files(folder)
        end = time.time() + o.seconds
        tasks = [(k, features, folder, o.sides.split(","), programs, end) for k in range(o.first, o.first + o.calls)]
        for result in pool.imap_unordered(compare, tasks):
            if not result:
                continue
            feature, no, lines, share = result
            n, refused, n_off = n + 1, refused + no, n_off + bool(lines)
            worst[feature] = max(worst.get(feature, 0), share)
            for line in lines:
                print(line, flush=True)
    print(f"{n} calls of {o.calls}, {refused} refused, {n_off} differ; worst:",
          ", ".join(f"{f} {w:.1e}" for f, w in sorted(worst.items(), key=lambda x: -x[1])[:24]))
    sys.exit(n_off > 0)


if __name__ == "__main__":
    main()
