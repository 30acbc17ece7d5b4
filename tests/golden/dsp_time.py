"""Golden cases: pitch, onset, tempo, beat, phase vocoder, stretch, shift, silence, spectral features."""
import librosa
import numpy as np

from golden_set import lcg

SR = 22050


def add_cases(golden):
    add_pitch(golden)
    add_onsets(golden)
    add_rhythm(golden)
    add_stretch(golden)
    add_features(golden)
    add_silence(golden)


def add_pitch(golden):
    def yin(name, signal, **p):
        golden.case(f"yin_{name}", "yin", signal, lambda y, ft, **q: librosa.yin(y, **q), **p)
    yin("glide", "glide", sr=SR, fmin=65.0, fmax=2093.0)
    yin("speech", "speech16k", sr=16000, fmin=60.0, fmax=500.0, frame_length=1024, hop_length=160)
    yin("threshold_nocenter", "trumpet", sr=SR, fmin=100.0, fmax=1500.0, frame_length=1500, hop_length=375,
        trough_threshold=0.3, center=False)
    yin("reflect", "plucks", sr=SR, fmin=100.0, fmax=2000.0, pad_mode="reflect")
    yin("sine", "sine", sr=SR, fmin=65.0, fmax=2093.0)

    def pyin(name, signal, **p):
        golden.case(f"pyin_{name}", "pyin", signal, lambda y, ft, **q: dict(zip(
            ("f0", "voiced", "prob"), librosa.pyin(y, **q))), **p)
    pyin("glide", "glide", sr=SR, fmin=65.0, fmax=1000.0)
    pyin("speech", "speech16k", sr=16000, fmin=60.0, fmax=500.0, frame_length=1024, hop_length=256)
    pyin("parts", "parts", sr=SR, fmin=100.0, fmax=1200.0)
    pyin("options", "plucks", sr=SR, fmin=130.0, fmax=1500.0, n_thresholds=50, beta_parameters=(2, 9),
         boltzmann_parameter=3, resolution=0.2, max_transition_rate=20.0, switch_prob=0.05, no_trough_prob=0.02)

    pyin("keep_nocenter", "parts", sr=SR, fmin=100.0, fmax=1200.0, fill_na=None, center=False)

    golden.case("autocorrelate_plucks", "autocorrelate", "plucks",
                lambda y, ft, max_size: librosa.autocorrelate(y, max_size=max_size), max_size=1500)
    golden.case("autocorrelate_tiny", "autocorrelate", "tiny", lambda y, ft: librosa.autocorrelate(y))
    golden.input("salience_s", np.abs(librosa.stft(golden.inputs["plucks"], n_fft=1024, hop_length=1024))[:200, :20])

    def run_salience(s, ft, sr, n_fft, harmonics, weights, filter_peaks, fill_value):
        freqs = librosa.fft_frequencies(sr=sr, n_fft=n_fft)[:s.shape[0]]
        return librosa.salience(s, freqs=freqs, harmonics=harmonics, weights=weights, filter_peaks=filter_peaks,
                                fill_value=fill_value)
    golden.case("salience_peaks", "salience", "salience_s", run_salience, sr=SR, n_fft=1024, harmonics=(1, 2, 3, 4),
                weights=(1.0, 0.5, 0.33, 0.25), filter_peaks=True, fill_value=0.0)
    golden.case("salience_all", "salience", "salience_s", run_salience, sr=SR, n_fft=1024, harmonics=(0.5, 1, 2),
                weights=None, filter_peaks=False, fill_value=0.0)


AGGREGATES = {"mean": np.mean, "median": np.median}


def envelope(y, ft, aggregate="mean", **p):
    return librosa.onset.onset_strength(y=y, dtype=ft, aggregate=AGGREGATES[aggregate], **p)


def add_onsets(golden):
    def strength(name, signal, **p):
        golden.case(f"onset_strength_{name}", "onset_strength", signal, envelope, **p)
    strength("drums", "drums", sr=SR)
    strength("drums_median", "drums", sr=SR, aggregate="median")
    strength("superflux", "trumpet", sr=SR, lag=2, max_size=3, n_mels=138, n_fft=1024, hop_length=220)
    strength("plucks_detrend", "plucks", sr=SR, detrend=True, center=False)

    def run_detect(y, ft, units, backtrack, sr, hop_length, normalize):
        return librosa.onset.onset_detect(onset_envelope=envelope(y, ft, sr=sr, hop_length=hop_length), sr=sr,
                                          hop_length=hop_length, units=units, backtrack=backtrack, normalize=normalize)
    for signal in ("drums", "clicks", "plucks", "jazz"):
        for backtrack in (False, True):
            golden.case(f"onset_detect_{signal}{'_back' if backtrack else ''}", "onset_detect", signal, run_detect,
                        sr=SR, hop_length=512, units="frames", backtrack=backtrack, normalize=True)
    golden.case("onset_detect_samples", "onset_detect", "drums", run_detect, sr=SR, hop_length=256, units="samples",
                backtrack=False, normalize=True)

    def run_rms_backtrack(y, ft, sr, hop_length):
        frames = run_detect(y, ft, "frames", False, sr, hop_length, True)
        return librosa.onset.onset_backtrack(frames, librosa.feature.rms(y=y, hop_length=hop_length, dtype=ft)[0])
    golden.case("onset_backtrack_rms", "onset_backtrack", "plucks", run_rms_backtrack, sr=SR, hop_length=512)
    golden.input("peaks", lcg(61, 300))
    golden.case("peak_pick", "peak_pick", "peaks", lambda x, ft, **p: librosa.util.peak_pick(x, **p), pre_max=3,
                post_max=4, pre_avg=5, post_avg=6, delta=0.3, wait=4)


def plp_with_ties(envelope, sr, hop_length=512, win_length=384, low=30, high=300, tie=1e-12):
    """librosa.beat.plp where bins are equally strong: it keeps all of them, but which are equal rounding decides. Its own
    float64 and float32 are 1e-3 apart for one pulse, 0.5 for one every 32 frames; these are exact numbers' results."""
    spectra = librosa.stft(envelope.astype(np.float64), n_fft=win_length, hop_length=1)
    tempi = librosa.fourier_tempo_frequencies(sr=sr, hop_length=hop_length, win_length=win_length)
    spectra[(tempi < low) | (tempi > high)] = 0
    size = np.abs(spectra)
    spectra[size < size.max(axis=0) * (1 - tie)] = 0
    spectra.real[np.abs(spectra.real) < tie * size] = 0
    spectra /= np.finfo(np.float64).tiny ** 0.5 + np.abs(spectra.max(axis=0))
    pulse = librosa.istft(spectra, hop_length=1, n_fft=win_length, length=len(envelope))
    return librosa.util.normalize(np.maximum(pulse, 0))


def add_rhythm(golden):
    def tempo(name, signal, ac_size=8.0, **p):
        golden.case(f"tempo_{name}", "tempo", signal, lambda y, ft, sr, aggregate, **q: librosa.feature.tempo(
            onset_envelope=envelope(y, ft, sr=sr), sr=sr, aggregate=AGGREGATES.get(aggregate), **q), bound=1e-9,
            sr=SR, ac_size=ac_size, **p)
    tempo("clicks", "clicks", aggregate="mean")
    tempo("drums", "drums", aggregate="mean", start_bpm=100.0)
    tempo("jazz", "jazz", aggregate="mean", ac_size=4.0, std_bpm=0.5, max_tempo=200.0)
    tempo("jazz_frames", "jazz", aggregate=None)
    golden.input("tick", np.arange(130) == 60)  # envelopes
    golden.input("beats32", np.arange(300) % 32 == 5)
    for name, aggregate in (("tick", "mean"), ("tick_frames", None)):
        golden.case(f"tempo_{name}", "tempo", "tick", lambda e, ft, sr, aggregate, envelope: librosa.feature.tempo(
            onset_envelope=e, sr=sr, aggregate=AGGREGATES.get(aggregate)), bound=1e-9, sr=SR, aggregate=aggregate,
            envelope=True)

    def gram(op, name, signal, **p):
        golden.case(f"{op}_{name}", op, signal, lambda y, ft, sr, **q: getattr(librosa.feature, op)(
            onset_envelope=envelope(y, ft, sr=sr), sr=sr, **q), sr=SR, **p)
    gram("tempogram", "drums", "drums", win_length=384)
    gram("tempogram", "jazz_100", "jazz", win_length=100, norm=None, window="hamming")
    gram("tempogram", "drums_nocenter", "drums", win_length=64, center=False)
    gram("fourier_tempogram", "drums", "drums", win_length=384)
    gram("fourier_tempogram", "jazz_nocenter", "jazz", win_length=100, center=False)
    gram("tempogram_ratio", "drums", "drums")

    def run_beats(y, ft, sr, **p):
        bpm, frames = librosa.beat.beat_track(onset_envelope=envelope(y, ft, "median", sr=sr), sr=sr, **p)
        return {"bpm": bpm, "frames": frames}
    for name, signal, p in (("clicks", "clicks", {}), ("drums", "drums", {}), ("jazz", "jazz", {}),
                            ("jazz_loose", "jazz", dict(tightness=20, trim=False, start_bpm=100.0)),
                            ("drums_given", "drums", dict(bpm=100.0, trim=False)),
                            ("trumpet", "trumpet", {})):
        golden.case(f"beat_track_{name}", "beat_track", signal, run_beats, sr=SR, **p)

    def run_plp(y, ft, sr, **p):
        return librosa.beat.plp(onset_envelope=envelope(y, ft, "median", sr=sr), sr=sr, **p)
    golden.case("plp_drums", "plp", "drums", run_plp, sr=SR)
    for name in ("tick", "beats32"):
        golden.case(f"plp_{name}", "plp", name, lambda e, ft, sr, envelope: plp_with_ties(e, sr), sr=SR, envelope=True)
    golden.case("plp_jazz_range", "plp", "jazz", run_plp, sr=SR, win_length=192, tempo_min=60.0, tempo_max=180.0)


def add_stretch(golden):
    def run_vocoder(y, ft, n_fft, hop_length, rate):
        return librosa.phase_vocoder(librosa.stft(y, n_fft=n_fft, hop_length=hop_length), rate=rate,
                                     hop_length=hop_length)
    for name, signal, rate in (("fast2", "glide", 2.0), ("slow_half", "plucks", 0.5), ("1_3", "trumpet", 1.3)):
        golden.case(f"phase_vocoder_{name}", "phase_vocoder", signal, run_vocoder, bound=2e-6, n_fft=2048,
                    hop_length=512, rate=rate)
    for name, signal, p in (("fast", "glide", dict(rate=1.5)), ("slow", "trumpet", dict(rate=0.8)),
                            ("1024", "plucks", dict(rate=1.25, n_fft=1024, hop_length=256))):
        golden.case(f"time_stretch_{name}", "time_stretch", signal,
                    lambda y, ft, **q: librosa.effects.time_stretch(y, **q), bound=2e-6, **p)
    for name, signal, p in (("up4", "sine", dict(n_steps=4)), ("down_3", "trumpet", dict(n_steps=-3)),
                            ("quarter_scale", "glide", dict(n_steps=1, bins_per_octave=24, scale=True)),
                            ("noise_up4", "noise", dict(n_steps=4)), ("noise_down4", "noise", dict(n_steps=-4)),
                            ("noise_up_half", "noise", dict(n_steps=0.5)), ("noise_up9", "noise", dict(n_steps=9)),
                            ("noise_down_half", "noise", dict(n_steps=-0.5)),
                            ("noise_up13", "noise", dict(n_steps=13))):
        golden.case(f"pitch_shift_{name}", "pitch_shift", signal,
                    lambda y, ft, **q: librosa.effects.pitch_shift(y, **q), bound=2e-6, sr=SR, **p)


def add_features(golden):
    def feature(op, name, signal, short=None, **p):
        golden.case(f"{short or op}_{name}", op, signal, lambda y, ft, **q: getattr(librosa.feature, op)(y=y, **q), **p)
    for signal in ("trumpet", "drums"):
        feature("spectral_centroid", signal, signal, "centroid", sr=SR)
        feature("spectral_flatness", signal, signal, "flatness")
        feature("spectral_contrast", signal, signal, "contrast", sr=SR)
        feature("spectral_rolloff", signal, signal, "rolloff", sr=SR)
    feature("spectral_centroid", "1024", "jazz", "centroid", sr=SR, n_fft=1024, hop_length=512, win_length=800)
    feature("spectral_bandwidth", "trumpet", "trumpet", "bandwidth", sr=SR)
    feature("spectral_bandwidth", "p3_nonorm", "glide", "bandwidth", sr=SR, p=3, norm=False)
    feature("spectral_rolloff", "low10", "jazz", "rolloff", sr=SR, roll_percent=0.1)
    feature("spectral_flatness", "power1", "noise", "flatness", amin=1e-8, power=1.0, n_fft=512, hop_length=128)
    feature("spectral_contrast", "linear", "trumpet", "contrast", sr=SR, fmin=100.0, n_bands=5, quantile=0.1,
            linear=True)
    feature("poly_features", "order1", "trumpet", sr=SR, order=1)
    feature("poly_features", "order3", "glide", sr=SR, order=3, n_fft=1024, hop_length=512)
    feature("zero_crossing_rate", "speech", "speech16k", "zcr", frame_length=1024, hop_length=256)
    feature("zero_crossing_rate", "nocenter", "drums", "zcr", frame_length=2048, hop_length=512, center=False)

    def run_rms(y, ft, **p):
        return librosa.feature.rms(y=y, dtype=ft, **p)
    golden.case("rms_default", "rms", "drums", run_rms, frame_length=2048, hop_length=512)
    golden.case("rms_reflect_1000", "rms", "speech16k", run_rms, frame_length=1000, hop_length=250, pad_mode="reflect")
    golden.case("rms_nocenter", "rms", "drums", run_rms, frame_length=1024, hop_length=256, center=False)
    golden.case("rms_spectrum", "rms", "trumpet", lambda y, ft, n_fft: librosa.feature.rms(
        S=np.abs(librosa.stft(y, n_fft=n_fft)), frame_length=n_fft, dtype=ft), n_fft=2048)


def add_silence(golden):
    for name, signal, p in (("parts", "parts", dict(top_db=60)), ("parts_20", "parts", dict(top_db=20)),
                            ("drums_512", "drums", dict(top_db=15, frame_length=512, hop_length=128))):
        golden.case(f"trim_{name}", "trim", signal, lambda y, ft, **q: librosa.effects.trim(y, **q)[1], **p)
        golden.case(f"split_{name}", "split", signal, lambda y, ft, **q: librosa.effects.split(y, **q), **p)
    for name, p in (("default", dict(coef=0.97)), ("85_zi", dict(coef=0.85, zi=0.25))):
        golden.case(f"preemphasis_{name}", "preemphasis", "speech16k", lambda y, ft, coef, zi=None:
                    librosa.effects.preemphasis(y, coef=coef, zi=None if zi is None else [zi]), **p)
        golden.case(f"deemphasis_{name}", "deemphasis", "speech16k", lambda y, ft, coef, zi=None:
                    librosa.effects.deemphasis(y, coef=coef, zi=None if zi is None else np.array([zi])), **p)
