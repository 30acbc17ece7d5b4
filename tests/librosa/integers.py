"""Onsets, beats, tempi, voiced frames, pitches and silence of random signals: `warptone analyze` beside librosa 0.11.0.

    python3 -m venv venv && venv/bin/pip install librosa==0.11.0 soundfile
    venv/bin/python tests/librosa/integers.py [--files 1000] [--first 0] [--jobs 2] [--only NAME,...] [build/warptone]

Each file has a random seed, its number, and one of four settings. librosa computes in float64 from the same float32
samples. A row a kind of answer says of how many files it is not the same; a line a file says where, and whether librosa
in float32 has the same answer as in float64. Exit 0: none differ; 1: some do; 77: there is no librosa 0.11.0.
"""
import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile

for pool in ("OPENBLAS", "NUMBA", "OMP"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

# n_fft, hop, top_db of trim and split
SETTINGS = [(2048, 512, 60), (2048, 256, 40), (1024, 512, 30), (4096, 1024, 80)]


def frames_of(setting):
    return {"n_fft": setting[0], "hop_length": setting[1]}


def strength(y, setting, aggregate=None):
    import librosa
    return librosa.onset.onset_strength(y=y, sr=22050, aggregate=aggregate, **frames_of(setting))


def onsets(y, setting):
    import librosa
    return {"onsets": librosa.onset.onset_detect(onset_envelope=strength(y, setting), sr=22050, hop_length=setting[1])}


def beats(y, setting):
    import librosa
    import numpy as np
    envelope, hop = strength(y, setting, np.median), setting[1]
    tempo, frames = librosa.beat.beat_track(onset_envelope=envelope, sr=22050, hop_length=hop)
    return {"beats": frames, "beat_tempo": tempo_bin(tempo, hop)}


def tempo(y, setting):
    import librosa
    bpm = librosa.feature.tempo(onset_envelope=strength(y, setting), sr=22050, hop_length=setting[1])
    return {"tempo": tempo_bin(bpm, setting[1])}


def pyin(y, setting):
    import librosa
    f0, voiced, _ = librosa.pyin(y, sr=22050, fmin=librosa.note_to_hz("C2"), fmax=librosa.note_to_hz("C7"),
                                 frame_length=setting[0], hop_length=setting[1])
    return {"voiced": voiced.astype(int), "pitch": pitch_bins(f0)}


def silence(y, setting, name):
    import librosa
    level = {"top_db": setting[2], "frame_length": setting[0], "hop_length": setting[1]}
    return {name: librosa.effects.trim(y, **level)[1] if name == "trim" else librosa.effects.split(y, **level)}


# by the names of `warptone analyze`
THEIRS = {"onsets": onsets, "beats": beats, "tempo": tempo, "pyin": pyin,
          "trim": lambda y, setting: silence(y, setting, "trim"), "split": lambda y, setting: silence(y, setting, "split")}
ANSWERS = {"beats": ("beats", "beat_tempo"), "pyin": ("voiced", "pitch")}


def tempo_bin(bpm, hop):
    """The lag in frames: 0 = no tempo."""
    import numpy as np
    bpm = np.atleast_1d(bpm)
    return np.round(np.divide(60 * 22050 / hop, bpm, out=0 * bpm, where=bpm > 0)).astype(int)


def pitch_bins(f0):
    """Tenths of a semitone above C2; -1 = unvoiced."""
    import numpy as np
    bins = 120 * np.log2(np.where(np.isnan(f0), 1, f0) / 65.40639132514966)
    return np.where(np.isnan(f0), -1, np.round(bins)).astype(int)


def ours(path, setting):
    import numpy as np
    made = np.load(path)
    change = {"beat_tempo": lambda x: tempo_bin(x, setting[1]), "tempo": lambda x: tempo_bin(x, setting[1]),
              "f0": lambda x: pitch_bins(x.astype(float)), "trim": np.ravel, "voiced": lambda x: x.astype(int)}
    return {"pitch" if name == "f0" else name: change.get(name, np.array)(made[name]) for name in made.files}


def where(a, b):
    """What the difference is, in a few words."""
    import numpy as np
    a, b = np.asarray(a).ravel(), np.asarray(b).ravel()
    if a.shape != b.shape:
        return f"{len(a)} for {len(b)}: {sorted(set(a) ^ set(b))[:6]}"
    at = np.flatnonzero(a != b)
    return f"{len(at)} of {len(a)}: " + ", ".join(f"[{k}] {a[k]} for {b[k]}" for k in at[:3])


def compare(task):
    import numpy as np
    from random_signals import signal
    folder, features, k = task
    setting, y = SETTINGS[k % len(SETTINGS)], signal(k)
    mine = ours(f"{folder}/out{k % len(SETTINGS)}/{k}.npz", setting)
    bad, lines = [], []
    for feature in features:
        other = THEIRS[feature](y.astype(np.float64), setting)
        off = [name for name in other if not np.array_equal(mine[name], other[name])]
        single = THEIRS[feature](y, setting) if off else {}
        for name in off:
            same = "the same" if np.array_equal(single[name], other[name]) else "else"
            lines.append(f"file {k} {setting} {name}: {where(mine[name], other[name])}; librosa in float32 is {same}")
        bad += off
    return bad, lines


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--files", type=int, default=1000)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--only", default=",".join(THEIRS), help="of " + ",".join(THEIRS))
    options.add_argument("warptone", nargs="?", default="build/warptone")
    o = options.parse_args()
    features = o.only.split(",")
    if not set(features) <= set(THEIRS):
        options.error(f"--only {o.only}, want some of {','.join(THEIRS)}")
    try:
        import librosa
        import soundfile
        from random_signals import RATE, signal
    except ImportError as error:
        print(f"skipped: {error}; the first lines of {__file__} say how to make what it needs")
        sys.exit(77)
    if librosa.__version__ != "0.11.0":
        print(f"skipped: librosa is {librosa.__version__}, want 0.11.0")
        sys.exit(77)
    counts, n = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(o.first, o.first + o.files)
        for k in numbers:
            os.makedirs(f"{folder}/in{k % len(SETTINGS)}", exist_ok=True)
            soundfile.write(f"{folder}/in{k % len(SETTINGS)}/{k}.wav", signal(k), RATE, "FLOAT")
        for s, (n_fft, hop, top_db) in enumerate(SETTINGS):
            if os.path.isdir(f"{folder}/in{s}"):
                subprocess.run([o.warptone, "analyze", "-q", "-f", o.only, "--n-fft", str(n_fft), "--hop", str(hop),
                                "--top-db", str(top_db), "--backend", "cpu", "--format", "npz", f"{folder}/in{s}",
                                f"{folder}/out{s}/"], check=True)
        with multiprocessing.Pool(o.jobs) as pool:
            for bad, lines in pool.imap(compare, [(folder, features, k) for k in numbers]):
                n += 1
                for name in bad:
                    counts[name] = counts.get(name, 0) + 1
                for line in lines:
                    print(line, flush=True)
    print(f"{n} files, librosa {librosa.__version__}; not the same of:")
    for feature in features:
        for name in ANSWERS.get(feature, (feature,)):
            print(f"  {name:<10} {counts.get(name, 0)}")
    sys.exit(bool(counts))


if __name__ == "__main__":
    main()
