"""Random synthetic signals: tones, glides, plucks, drums, clicks, noise, silence, one on top or behind another."""
import numpy as np

RATE = 22050


def fade(y, seconds=0.005):
    n = min(len(y) // 2, int(seconds * RATE))
    ramp = np.arange(n) / n if n else 1
    y[:n] *= ramp
    y[len(y) - n:] *= ramp[::-1] if n else 1
    return y


def harmonics(rng, phase):
    """A tone of 1 to 10 harmonics that fall with a random power."""
    slope = rng.uniform(0.5, 2)
    return sum(np.sin(h * phase) / h ** slope for h in range(1, rng.integers(2, 12)))


def tone(rng, n):
    f0 = 2 ** rng.uniform(np.log2(60), np.log2(1800))
    t = np.arange(n) / RATE
    vibrato = rng.choice([0, 0.3]) * np.sin(2 * np.pi * rng.uniform(4, 7) * t) / 12
    return fade(harmonics(rng, 2 * np.pi * np.cumsum(f0 * 2 ** vibrato) / RATE))


def glide(rng, n):
    low, high = np.log2(rng.uniform(60, 1500, 2))
    return fade(harmonics(rng, 2 * np.pi * np.cumsum(2 ** np.linspace(low, high, n)) / RATE))


def plucks(rng, n):
    y, step = np.zeros(n), rng.uniform(0.1, 0.5)
    for begin in np.arange(rng.uniform(0, 0.2), n / RATE, step):
        at, f0 = int(begin * RATE), 110 * 2 ** (rng.integers(0, 40) / 12 + rng.uniform(-0.01, 0.01))
        t = np.arange(min(n - at, int(0.6 * RATE))) / RATE
        y[at:at + len(t)] += sum(np.sin(2 * np.pi * h * f0 * t) * np.exp(-t * (4 + 2 * h)) / h for h in range(1, 8))
    return y


def drums(rng, n):
    """Kicks, snares and hats on a random bar at 60 to 200 BPM, with some jitter."""
    y, beat = np.zeros(n), 60 / rng.uniform(60, 200) / 2
    t, pattern = np.arange(int(0.15 * RATE)) / RATE, rng.integers(0, 4, 8)
    for k, begin in enumerate(np.arange(rng.uniform(0, 0.5), n / RATE, beat)):
        hiss = rng.standard_normal(len(t))
        hits = [0 * t, np.sin(2 * np.pi * (50 * t + 4 * (1 - np.exp(-t * 30)))) * np.exp(-t * 25),
                (0.4 * hiss + 0.5 * np.sin(2 * np.pi * 190 * t)) * np.exp(-t * 35),
                np.diff(hiss, prepend=0.0) * np.exp(-t * 120) * 0.4]
        at = max(0, int((begin + rng.normal(0, 0.002)) * RATE))
        part = hits[pattern[k % 8]][:max(0, n - at)]
        y[at:at + len(part)] += part
    return y


def clicks(rng, n):
    y, t = np.zeros(n), np.arange(int(0.03 * RATE)) / RATE
    tick = np.sin(2 * np.pi * rng.uniform(500, 4000) * t) * np.exp(-t / 0.005)
    for begin in np.arange(rng.uniform(0, 0.5), n / RATE, 60 / rng.uniform(50, 220)):
        part = tick[:n - int(begin * RATE)]
        y[int(begin * RATE):][:len(part)] += part
    return y


def noise(rng, n):
    """White or brown, in bursts or throughout."""
    y = rng.standard_normal(n)
    if rng.random() < 0.5:
        y = np.cumsum(y) / 30
        y -= np.linspace(y[0], y[-1], n)
    return y * (np.sin(2 * np.pi * rng.uniform(0.2, 3) * np.arange(n) / RATE) > 0) if rng.random() < 0.5 else y


def silence(rng, n):
    return np.zeros(n)


KINDS = [tone, glide, plucks, drums, clicks, noise, silence]


def passage(rng, n):
    """One kind, or two on top of each other, at a random level."""
    y = sum(KINDS[rng.integers(len(KINDS))](rng, n) * 10 ** (-rng.uniform(0, 40) / 20)
            for _ in range(rng.integers(1, 3)))
    peak = np.abs(y).max()
    return y / peak * 10 ** (-rng.uniform(0, 30) / 20) if peak > 0 else y


def signal(seed):
    """One to four passages of 0.3 to 2 s behind each other; some with a floor of noise at -90 to -50 dB."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([passage(rng, int(rng.uniform(0.3, 2) * RATE)) for _ in range(rng.integers(1, 5))])
    if rng.random() < 0.5:
        y += 10 ** (-rng.uniform(50, 90) / 20) * rng.standard_normal(len(y))
    return y.astype(np.float32)
