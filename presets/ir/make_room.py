"""Impulse response of a small living room, written to small-room.flac beside this file: 48 kHz, stereo, 0.45 s.

Early part: image sources up to the third order of a shoe box of 5.1 x 3.9 x 2.6 m (J. Allen, D. Berkley, "Image method
for efficiently simulating small-room acoustics", JASA 65, 1979), walls that reflect 0.78, heard by two cardioids 17 cm
apart and 110 degrees open (ORTF). Late part: noise in octave bands that falls by 60 dB in 0.42 s at 125 Hz to 0.22 s
at 8 kHz, faded in over the first 30 ms. The direct sound is left out: the preset mixes the room under the dry signal.

numpy 2.2.6, soundfile 0.13.1; run without arguments.
"""
import os
import numpy as np
import soundfile

RATE, LENGTH, SPEED = 48000, 21600, 343.0
ROOM, SOURCE, HEAD = np.array([5.1, 3.9, 2.6]), np.array([1.3, 2.2, 1.5]), np.array([3.4, 1.7, 1.4])
REFLECT, ORDER = 0.78, 3
DECAY_S = {125: 0.42, 250: 0.40, 500: 0.36, 1000: 0.33, 2000: 0.30, 4000: 0.26, 8000: 0.22}


def early(side):
    h = np.zeros(LENGTH)
    ear = HEAD + np.array([0, 0.085 * side, 0])
    angle = np.radians(180 - 55 * side)  # towards the source's end of the room, opened outwards
    axis = np.array([np.cos(angle), np.sin(angle), 0])
    for n in np.ndindex(*(2 * ORDER + 1,) * 3):
        n = np.array(n) - ORDER
        order = np.abs(n).sum()
        if order == 0 or order > ORDER:
            continue
        image = n * ROOM + np.where(n % 2 == 0, SOURCE, ROOM - SOURCE)
        path = image - ear
        distance = np.linalg.norm(path)
        gain = REFLECT**order / distance * 0.5 * (1 + path @ axis / distance)
        at = distance / SPEED * RATE
        k = np.arange(int(at) - 15, int(at) + 17)
        h[k] += gain * np.sinc(k - at) * np.hanning(34)[1:-1]
    return h


def late(rng):
    spectrum = np.fft.rfft(rng.standard_normal(LENGTH))
    f, t, h = np.fft.rfftfreq(LENGTH, 1 / RATE), np.arange(LENGTH) / RATE, np.zeros(LENGTH)
    for centre, decay in DECAY_S.items():
        distance = np.abs(np.log2(np.maximum(f, 1) / centre))
        h += np.fft.irfft(spectrum * np.cos(np.pi / 2 * np.minimum(distance, 1)), LENGTH) * 10 ** (-3 * t / decay)
    return h * np.minimum(t / 0.03, 1)


rng = np.random.default_rng(1)
room = []
for side in (1, -1):
    first, tail = early(side), late(rng)
    at = slice(1440, 4320)  # 30 to 90 ms: the tail carries on at the level of the last images
    level = np.sqrt(np.mean(first[:1440] ** 2)) * 10 ** (-3 * 0.045 / 0.33)
    room.append(first + tail * level / np.sqrt(np.mean(tail[at] ** 2)))
room = np.array(room)
room *= np.minimum((LENGTH - np.arange(LENGTH)) / 2400, 1)  # end in silence
room /= np.sqrt((room**2).sum(1).max())                     # energy 1: noise keeps its level
soundfile.write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "small-room.flac"), room.T, RATE, "PCM_16")
