"""One table of signal processing on two processors: ours by the bench programs and librosa 0.11.0, in turns in one run.

    python3 -m venv venv && venv/bin/pip install librosa==0.11.0
    venv/bin/python bench/peers/cpu_table.py [FOLDER of the bench programs = build/bench] [ROUNDS = 3] > table.md

Times real time at 22.05 kHz mono, 2048/512, by the clock: the median of the rounds, in brackets the least and most. Ours
is what a program calls its best (bench_spectral, bench_pitch: two threads; bench_tonal: two programs at once, one a
processor, added up). librosa has what it has by itself, two threads for BLAS; its rows are the best of three calls in
float32, after one that compiles. Both see white noise of a minute, pitch, beats and stretch a voice that glides.

The limit is what the processors could do at most in the same run: the op's transforms at the rate of this library's
own of 64 times 2048 real points (bench_fft, one core, twice; 2.5 n log2 n a real transform), or its bytes
in and out at the rate of a copy by two threads, whichever is less. What else an op does (medians, Viterbi, dynamic
programming) counts as nothing, so no op reaches it, and pYIN and HPSS are far from it.
"""
import math
import os
import re
import statistics
import subprocess
import sys
import threading
import time

for pool in ("OPENBLAS", "OMP", "NUMBA"):
    os.environ.setdefault(f"{pool}_NUM_THREADS", "2")
R, F, SECONDS = 22050, 22050 / 512, 60


def real_transform(n):
    return 2.5 * n * math.log2(n)


FRAME = F * real_transform(2048)
# name, aim, program, its filter, its row, work and bytes of a second of audio
ROWS = [
    ("STFT 2048/512", 25000, "spectral", "stft complex", "stft complex 2048/512", FRAME, 4 * R + F * 1025 * 8),
    ("mel 128", 25000, "spectral", "mel 128", "mel 128 2048/512", FRAME, 4 * R + F * 128 * 4),
    ("CQT 84", 8000, "tonal", "cqt 84", "cqt 84 one core", F * 7 * real_transform(256) + 100 * R, 4 * R + F * 84 * 8),
    ("HPSS, samples to samples", 800, "tonal", "hpss", "hpss audio one core", 3 * FRAME, 12 * R),
    ("pYIN", 500, "pitch", "pyin", "pyin cpu", 3 * F * real_transform(4096), 4 * R),
    ("Griffin-Lim 32, in float", 300, "spectral", "griffin-lim 32", "griffin-lim 32 2048/512", 65 * FRAME, 8 * R),
    ("beats", 10000, "pitch", "beats", "beats cpu", FRAME, 4 * R),
    ("stretch 1.25, librosa's", 3000, "pitch", "stretch 1.25", "stretch 1.25 cpu", FRAME * 2.6, 4 * R * 1.8),
]


# ---- ours

def rate_of(lines, row):
    """The first number behind the row's name that is times real time."""
    for line in lines.splitlines():
        words = " ".join(line.split())
        found = re.match(rf"(?:cpu |pitch )?{re.escape(row)}.*? ([\d.]+) x( |$)", words)
        if found:
            return float(found.group(1))
    return None


def ours(folder, program, filter_, row):
    path = f"{folder}/bench_{program}"
    if program != "tonal":
        return rate_of(subprocess.run([path, filter_, "cpu"], stdout=subprocess.PIPE, text=True).stdout, row)
    both = [subprocess.Popen(["taskset", "-c", str(core), path, filter_], stdout=subprocess.PIPE, text=True)
            for core in sorted(os.sched_getaffinity(0))[:2]]
    rates = [rate_of(p.communicate()[0], row) for p in both]
    return None if None in rates else sum(rates)


# ---- librosa

def voice(n):
    import numpy as np
    t = np.arange(n) / R
    phase = np.cumsum(2 * np.pi * 220 * 2 ** (0.5 * np.sin(t)) / R)
    tone = np.sin(phase) + 0.5 * np.sin(2 * phase) + 0.3 * np.sin(3 * phase)
    hiss = np.random.default_rng(1).uniform(-0.5, 0.5, n)
    return (np.where(t % 1 < 0.8, 0.3 * tone, 0) + 0.02 * hiss).astype(np.float32)


def works():
    import librosa
    import numpy as np
    noise, tone = np.random.default_rng(1).uniform(-1, 1, R * SECONDS).astype(np.float32), voice(R * SECONDS)
    magnitudes = np.abs(librosa.stft(noise))
    return {
        "STFT 2048/512": lambda: librosa.stft(noise),
        "mel 128": lambda: librosa.feature.melspectrogram(y=noise, sr=R),
        "CQT 84": lambda: librosa.cqt(noise, sr=R),
        "HPSS, samples to samples": lambda: librosa.effects.hpss(noise),
        "pYIN": lambda: librosa.pyin(tone, sr=R, fmin=65.406, fmax=2093.005),
        "Griffin-Lim 32, in float": lambda: librosa.griffinlim(magnitudes),
        "beats": lambda: librosa.beat.beat_track(y=tone, sr=R),
        "stretch 1.25, librosa's": lambda: librosa.effects.time_stretch(tone, rate=1.25),
    }


def theirs(work, repeats):
    best = math.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return SECONDS / best


# ---- the machine

def copy_rate():
    """Bytes a second that two threads read and write, of 128 MiB each."""
    import numpy as np
    pairs = [(np.ones(1 << 25, np.float32), np.ones(1 << 25, np.float32)) for _ in range(2)]
    best = math.inf
    for _ in range(5):
        threads = [threading.Thread(target=np.copyto, args=pair) for pair in pairs]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = min(best, time.perf_counter() - begin)
    return 2 * 2 * pairs[0][0].nbytes / best


def transform_rate(folder):
    """Operations a second of two cores."""
    lines = subprocess.run([f"{folder}/bench_fft", "real 2048 x 64"], stdout=subprocess.PIPE, text=True).stdout
    us = [float(v) for v in re.findall(r"real 2048 x 64\s+ours\s+([\d.]+) us", lines)]
    return 2 * 64 * real_transform(2048) / (min(us) * 1e-6)


def spread(values):
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build/bench"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    import librosa
    peers, mine, other = works(), {}, {}
    for work in peers.values():
        work()  # compiles, fills caches
    copies, flops = [], []
    for _ in range(rounds):
        copies.append(copy_rate())
        flops.append(transform_rate(folder))
        for name, _, program, filter_, row, _, _ in ROWS:
            rate = ours(folder, program, filter_, row)
            if rate is None:
                sys.exit(f"bench_{program} \"{filter_}\" has no row \"{row}\"")
            mine.setdefault(name, []).append(rate)
            other.setdefault(name, []).append(theirs(peers[name], 1 if name in ("pYIN", "HPSS, samples to samples") else 3))
    print(f"librosa {librosa.__version__}, {rounds} rounds; copies {max(copies) * 1e-9:.1f} GB/s, transforms "
          f"{max(flops) * 1e-9:.0f} GFLOP/s\n")
    print("| op | ours | librosa | ratio | aim | limit | by | share |\n|---|---|---|---|---|---|---|---|")
    for name, aim, _, _, _, work, n_bytes in ROWS:
        by_work, by_bytes = max(flops) / work, max(copies) / n_bytes
        most, value = min(by_work, by_bytes), statistics.median(mine[name])
        print(f"| {name} | {spread(mine[name])} | {spread(other[name])} | {value / statistics.median(other[name]):.0f} | "
              f"{aim:,} | {most:,.0f} | {'transforms' if by_work < by_bytes else 'bytes'} | {100 * value / most:.0f} % |")


if __name__ == "__main__":
    main()
