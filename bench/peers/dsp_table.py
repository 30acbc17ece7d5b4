"""One table of signal processing on a GPU: ours by the bench programs, torch and torchaudio beside them in the same
run.

    python3 bench/peers/dsp_table.py [FOLDER of the bench programs = build/bench] > table.md

Ours: 64 to 1024 signals on the device (bench_spectral.c and so on say how many). Peers: their own batch, data on the
device, best of a few, between events. Hours of audio a second.

The limit is what an H200 could do at most: the bytes that must go in and out at 4.65 TB/s (what a plain read of its
memory reaches), or the additions and multiplications at 132 SMs x 128 lanes x 1.98 GHz, 64 lanes in double, a fused
multiply-add counted once. A transform of n points counts 5 n log2 n, of real frames half of it; pYIN counts as YIN, HPSS
by its bytes alone. It takes no account of the way through shared memory, so nothing reaches it.
"""
import math
import re
import subprocess
import sys

BYTES, LANES = 4.65e12, 132 * 128 * 1.98e9
HOUR = 3600


def frame_work(n):
    return 2.5 * n * math.log2(n) + n  # transform and window


def limit(n_bytes, work=0.0, doubles=0.0):
    """Hours a second, from what one second of audio takes."""
    by_bytes, by_work = n_bytes / BYTES, (work + 2 * doubles) / LANES
    return 1 / max(by_bytes, by_work) / HOUR, "bytes" if by_bytes >= by_work else "arithmetic"


def spectral_limit(rate, n, hop, kind, bands=0, coefficients=0):
    f, bins = rate / hop, n // 2 + 1
    if kind == "stft" or kind == "istft":
        return limit(rate * 4 + f * bins * 8, f * frame_work(n))
    if kind == "magnitude":
        return limit(rate * 4 + f * bins * 4, f * (frame_work(n) + 3 * bins))
    if kind == "griffin-lim":
        return limit(32 * (f * bins * 4 + rate * 16), 32 * f * (2 * frame_work(n) + 14 * bins))
    out = coefficients or bands
    return limit(rate * 4 + f * out * 4, f * (frame_work(n) + 5 * bins + bands * coefficients))


def stretch_limit(rate, frames_in, frames_out, follow):
    """Frames of 2048 in double, `follow` operations a bin in double, and a transform back in float."""
    made = frames_out * frame_work(2048)
    return limit(rate * 4 * 1.8, made, frames_in * frame_work(2048) + frames_out * 1025 * follow)


R, F, SPEECH = 22050, 22050 / 512, (16000, 400, 160)
YIN = F * 3 * 2.5 * 4096 * 12  # three real transforms of 4096 a frame
SHIFT = 2 ** (4 / 12)
# name, our program and its filter, our row, peer's row or None, aim, limit
ROWS = [
    ("STFT 400/160, 16 kHz", "spectral", "stft complex 400/160", "stft speech", "3x", spectral_limit(*SPEECH, "stft")),
    ("STFT 2048/512", "spectral", "stft complex 2048/512", "stft music", "1200 h/s",
     spectral_limit(R, 2048, 512, "stft")),
    ("ISTFT 2048/512", "spectral", "istft 2048/512", "istft music", "3x", spectral_limit(R, 2048, 512, "istft")),
    ("mel 80 400/160, 16 kHz", "spectral", "mel 80 400/160", "mel speech", "8x", spectral_limit(*SPEECH, "mel", 80)),
    ("mel 128", "spectral", "mel 128 2048/512", "mel music", "-", spectral_limit(R, 2048, 512, "mel", 128)),
    ("log-mel 128", "spectral", "mel 128 dB 2048/512", "log-mel music", "1500 h/s",
     spectral_limit(R, 2048, 512, "mel", 128)),
    ("MFCC 40 400/160, 16 kHz", "spectral", "mfcc 40 400/160", "mfcc speech", "8x",
     spectral_limit(*SPEECH, "mel", 80, 40)),
    ("MFCC 20", "spectral", "mfcc 20 2048/512", "mfcc music", "1200 h/s", spectral_limit(R, 2048, 512, "mel", 128, 20)),
    ("Griffin-Lim 32, in float", "spectral", "griffin-lim 32 2048/512", "griffin-lim music", "10x, 12 h/s",
     spectral_limit(R, 2048, 512, "griffin-lim")),
    ("time stretch 1.25, librosa's", "pitch", "stretch 1.25", "stretch music", "6x", stretch_limit(R, F, F / 1.25, 60)),
    ("time stretch 1.25, locked", "pitch", "stretch locked", None, "-", stretch_limit(R, 2 * F / 1.25, F / 1.25, 8)),
    ("time stretch 1.25, attacks (default)", "pitch", "stretch attacks", "stretch music", "300 h/s",
     stretch_limit(R, 2 * F / 1.25, F / 1.25, 8)),
    ("pitch shift 4 semitones", "pitch", "pitch shift 4", "shift music", "15x",
     limit(R * 8, F * SHIFT * frame_work(2048), 2 * F * SHIFT * frame_work(2048) + R * 480)),
    ("resample 44.1 to 48 kHz, fast", "resample", "44100 to 48000 Hz fast", "resample", "4x, 600 h/s",
     limit(4 * 92100, 48000 * 144)),
    ("resample 44.1 to 48 kHz, best", "resample", "44100 to 48000 Hz best", "resample", "-",
     limit(4 * 92100, 0, 48000 * 480)),
    ("pitch (YIN; peer NCCF)", "pitch", "yin", "pitch music", "15x", limit(R * 4, 0, YIN)),
    ("pYIN", "pitch", "pyin", None, "50 h/s", limit(R * 4, 0, YIN)),
    ("beats", "pitch", "beats", None, "500 h/s", spectral_limit(R, 2048, 512, "mel", 128)),
    ("CQT 84", "tonal", "cqt 84", None, "400 h/s",
     limit(R * 4 + F * 84 * 8, R * 100 + 7 * F * (frame_work(256) + 84 / 7 * 80))),
    ("HPSS of 1025 magnitudes", "tonal", "hpss spectrogram", None, "250 h/s", limit(F * 1025 * 12)),
]


def run(program, filters):
    rows = {}
    for name in filters:
        command = [program, name, "cuda"] if name else [program, "cuda"]
        for line in subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines():
            found = re.search(r"([\d.]+) h/s", line)
            if not found:
                continue
            words = [w for w in line[:found.start()].split() if w not in ("cuda", "pitch:", "gpu")]
            key = " ".join(words).removeprefix("resample ")
            key = re.sub(r"^pitch (?=(stretch|yin|beats|pitch|pyin|onset))", "", key)
            rows[key] = float(found.group(1))
    return rows


def ours(folder):
    filters = {"spectral": ["stft complex", "istft", "mel", "mfcc", "griffin"],
               "pitch": ["stretch", "shift 4", "yin", "beats"],
               "resample": [None], "tonal": [None]}
    return {kind: run(f"{folder}/bench_{kind}", some) for kind, some in filters.items()}


def from_files(folder):
    """From WAV files in the page cache: hours a second, and those of the copies to the device alone."""
    lines = subprocess.run([f"{folder}/bench_files"], stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"page cache.* ([\d.]+) h/s.* ([\d.]+) GB/s of ([\d.]+)", lines)
    if not found:
        return None, None
    hours, rate, copies = map(float, found.groups())
    return hours, hours * copies / rate


def row_of(name, value, other, aim, most, by):
    cells = [name, "not run" if value is None else f"{value:.4g}", f"{other:.4g}" if other else "-",
             f"{value / other:.1f}" if value and other else "-", aim, f"{most:.4g}" if most else "-", by,
             f"{100 * value / most:.0f} %" if value and most else "-"]
    return "| " + " | ".join(cells) + " |"


def peers():
    import torch
    import torchaudio
    from torch_dsp import best_ms

    def hours(audio_s, work, repeats):
        return audio_s / HOUR / (best_ms(work, repeats + 2) * 1e-3)  # of which the first two warm up

    t = torchaudio.transforms
    speech = torch.randn(256, 60 * 16000, device="cuda")
    music = torch.randn(64, 60 * R, device="cuda")
    wide = torch.randn(64, 60 * 44100, device="cuda")
    short, long = torch.hann_window(400, device="cuda"), torch.hann_window(2048, device="cuda")
    spectra = torch.stft(music, 2048, 512, window=long, return_complex=True)
    mel = t.MelSpectrogram(16000, 400, hop_length=160, n_mels=80).cuda()
    music_mel = t.MelSpectrogram(R, 2048, hop_length=512, n_mels=128).cuda()
    mfcc = t.MFCC(16000, 40, melkwargs={"n_fft": 400, "hop_length": 160, "n_mels": 80}).cuda()
    music_mfcc = t.MFCC(R, 20, melkwargs={"n_fft": 2048, "hop_length": 512, "n_mels": 128}).cuda()
    db = t.AmplitudeToDB("power", 80).cuda()
    stretch = t.TimeStretch(hop_length=512, n_freq=1025, fixed_rate=1.25).cuda()
    griffin = t.GriffinLim(2048, n_iter=32, hop_length=512, power=1.0).cuda()
    shift, resample = t.PitchShift(R, 4, n_fft=2048, hop_length=512).cuda(), t.Resample(44100, 48000).cuda()

    def stretched():
        z = torch.stft(music, 2048, 512, window=long, return_complex=True)
        return torch.istft(stretch(z), 2048, 512, window=long)

    magnitude = spectra.abs()
    works = {
        "stft speech": (256 * 60, lambda: torch.stft(speech, 400, 160, window=short, return_complex=True), 6),
        "stft music": (64 * 60, lambda: torch.stft(music, 2048, 512, window=long, return_complex=True), 6),
        "istft music": (64 * 60, lambda: torch.istft(spectra, 2048, 512, window=long), 6),
        "mel speech": (256 * 60, lambda: mel(speech), 6),
        "mel music": (64 * 60, lambda: music_mel(music), 6),
        "log-mel music": (64 * 60, lambda: db(music_mel(music)), 6),
        "mfcc speech": (256 * 60, lambda: mfcc(speech), 6),
        "mfcc music": (64 * 60, lambda: music_mfcc(music), 6),
        "griffin-lim music": (64 * 60, lambda: griffin(magnitude), 2),
        "stretch music": (64 * 60, stretched, 4),
        "shift music": (8 * 60, lambda: shift(music[:8]), 2),
        "resample": (64 * 60, lambda: resample(wide), 6),
        "pitch music": (8 * 60, lambda: torchaudio.functional.detect_pitch_frequency(music[:8], R), 2),
    }
    rows = {}
    for name, (audio_s, work, repeats) in works.items():
        try:
            rows[name] = hours(audio_s, work, repeats)
        except Exception as error:  # a peer that lacks an op or memory is no failure of the run
            print(f"{name}: {type(error).__name__}: {str(error)[:80]}", file=sys.stderr)
    return rows, f"torch {torch.__version__}, torchaudio {torchaudio.__version__}, {torch.cuda.get_device_name()}"


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build/bench"
    mine, (files, copies) = ours(folder), from_files(folder)
    try:
        theirs, what = peers()
    except ImportError as error:
        theirs, what = {}, f"no peers: {error}"
    print(f"{what}; 22.05 kHz, 2048/512 where a row does not say, hours of audio a second\n")
    print("| op | ours | peer | ratio | aim | limit | by | share |\n|---|---|---|---|---|---|---|---|")
    for name, program, row, peer, aim, (most, by) in ROWS:
        value = next((v for k, v in mine[program].items() if k == row or k.startswith(row + " ")), None)
        print(row_of(name, value, theirs.get(peer), aim, most, by))
    print(row_of("16-bit WAV files in the page cache to log-mel", files, None, "0.80 of the copies", copies, "copies"))

main()
