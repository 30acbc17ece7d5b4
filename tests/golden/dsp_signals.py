"""The inputs of the golden set: short synthetic signals whose truth is known, and excerpts of real audio."""
import os

import numpy as np
import soundfile
import soxr

from golden_set import lcg

SR = 22050


def seconds(duration, sr=SR):
    return np.arange(int(duration * sr)) / sr


def chirp():
    """Exponential sweep, 110 Hz to 7 kHz in 1 s, Hann-faded over 10 ms at both ends."""
    t, rate = seconds(1.0), np.log(7000 / 110)
    fade = np.minimum(1, np.minimum(t, t[-1] - t) / 0.01)
    return 0.8 * np.sin(2 * np.pi * 110 * np.expm1(rate * t) / rate) * 0.5 * (1 - np.cos(np.pi * fade))


def glide():
    """Five harmonics (1/h) of a voice that glides 180 Hz -> 360 Hz in 1.2 s; f0(t) = 180 * 2^(t / 1.2)."""
    t = seconds(1.2)
    phase = 2 * np.pi * 180 * 1.2 / np.log(2) * (2 ** (t / 1.2) - 1)
    return 0.3 * sum(np.sin(h * phase) / h for h in range(1, 6))


def clicks():
    """120 BPM: 1 kHz ticks of 5 ms decay every 0.5 s from 0.25 s on, 5 s."""
    t, y = seconds(0.05), np.zeros(int(5 * SR))
    for beat in np.arange(0.25, 4.9, 0.5):
        start = int(beat * SR)
        y[start:start + len(t)] += 0.9 * np.sin(2 * np.pi * 1000 * t) * np.exp(-t / 0.005)
    return y


def plucks():
    """Six decaying plucked tones (seven harmonics), one each 0.2 s, tuned 17 cent sharp."""
    y, t = np.zeros(int(1.4 * SR)), seconds(0.4)
    for k, semitone in enumerate([0, 4, 7, 12, 9, 5]):
        f0 = 220 * 2 ** ((semitone + 0.17) / 12)
        tone = sum(np.sin(2 * np.pi * h * f0 * t) * np.exp(-t * (5 + 2 * h)) / h for h in range(1, 8))
        start = int((0.02 + 0.2 * k) * SR)
        y[start:start + len(t)] += 0.35 * tone[:len(y) - start]
    return y


def drums():
    """100 BPM: kick on 1 and 3, noise snare on 2 and 4, hi-hats on eighths; 4.8 s."""
    y, t = np.zeros(int(4.8 * SR)), seconds(0.15)
    hiss = lcg(77, len(t))
    kick = np.sin(2 * np.pi * (50 * t + 4 * (1 - np.exp(-t * 30)))) * np.exp(-t * 25)
    snare = (0.6 * hiss + 0.5 * np.sin(2 * np.pi * 190 * t)) * np.exp(-t * 35)
    hat = np.diff(hiss, prepend=0.0) * np.exp(-t * 120) * 0.4
    for eighth in range(16):
        start = int(eighth * 0.3 * SR)
        hit = hat + (kick if eighth % 4 == 0 else snare if eighth % 4 == 2 else 0)
        y[start:start + len(t)] += 0.7 * hit[:len(y) - start]
    return y


def parts():
    """Silence 0.4 s, sine 330 Hz 0.5 s, silence 0.4 s, noise at -30 dB 0.3 s, silence 0.4 s."""
    tone = 0.5 * np.sin(2 * np.pi * 330 * seconds(0.5))
    hush = np.zeros(int(0.4 * SR))
    return np.concatenate([hush, tone, hush, 0.0316 * lcg(5, int(0.3 * SR)), hush])


def excerpt(path, start, duration, sr):
    """Mono mean of the channels, resampled by soxr HQ when the file has another rate."""
    y, rate = soundfile.read(path, dtype="float64", always_2d=True)
    y = y[int(start * rate):int((start + duration) * rate)].mean(axis=1)
    return y if rate == sr else soxr.resample(y, rate, sr, quality="HQ")


def add_inputs(golden, audio):
    for signal in (chirp, glide, clicks, plucks, drums, parts):
        golden.input(signal.__name__, signal())
    golden.input("noise", lcg(1, SR // 2))
    golden.input("sine", 0.5 * np.sin(2 * np.pi * 440 * seconds(0.8)))
    golden.input("tiny", lcg(9, 100))
    golden.input("jfk16k", excerpt(os.path.join(audio, "speech/jfk.wav"), 0.3, 2.5, 16000))
    golden.input("speech16k", excerpt(os.path.join(audio, "speech/1089-134691-0000.flac"), 0.4, 1.2, 16000))
    golden.input("trumpet", excerpt(os.path.join(audio, "music/solo-trumpet.ogg"), 0.5, 1.5, SR))
    golden.input("jazz", excerpt(os.path.join(audio, "music/vibe-ace.ogg"), 8.0, 5.0, SR))
    golden.input("strings", excerpt(os.path.join(audio, "music/hungarian-dance-5.ogg"), 10.0, 1.2, SR))
