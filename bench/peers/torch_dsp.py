"""What torch and torchaudio need for the work of bench_spectral, on the same GPU: hours of audio per second.

Data on the device, synchronised by events, best of several; the shapes are those of our own rows.
"""
import torch
import torchaudio


def best_ms(work, repeats=8):
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return min(times[2:])


def row(name, audio_s, work):
    try:
        ms = best_ms(work)
        print(f"torch  {name:<34} {ms:9.3f} ms   {audio_s / 3600 / (ms * 1e-3):8.1f} h/s", flush=True)
    except Exception as error:  # a peer that lacks an op or memory is no failure of the run
        print(f"torch  {name:<34} not run: {type(error).__name__}: {str(error)[:80]}", flush=True)


def main():
    print(f"torch {torch.__version__}, torchaudio {torchaudio.__version__}, {torch.cuda.get_device_name()}")
    speech = torch.randn(256, 60 * 16000, device="cuda")
    music = torch.randn(64, 60 * 22050, device="cuda")
    wide = torch.randn(64, 60 * 44100, device="cuda")
    hann = {n: torch.hann_window(n, device="cuda") for n in (400, 2048)}
    transforms = torchaudio.transforms
    row("stft 400/160 16k 256x60s", 256 * 60, lambda: torch.stft(speech, 400, 160, window=hann[400], return_complex=True))
    mel = transforms.MelSpectrogram(16000, 400, hop_length=160, n_mels=80).cuda()
    row("mel 80 400/160 16k 256x60s", 256 * 60, lambda: mel(speech))
    mfcc = transforms.MFCC(16000, 40, melkwargs={"n_fft": 400, "hop_length": 160, "n_mels": 80}).cuda()
    row("mfcc 40 400/160 16k 256x60s", 256 * 60, lambda: mfcc(speech))
    row("stft 2048/512 22k 64x60s", 64 * 60, lambda: torch.stft(music, 2048, 512, window=hann[2048], return_complex=True))
    mel2 = transforms.MelSpectrogram(22050, 2048, hop_length=512, n_mels=128).cuda()
    row("mel 128 2048/512 22k 64x60s", 64 * 60, lambda: mel2(music))
    centroid = transforms.SpectralCentroid(22050, 2048, hop_length=512).cuda()
    row("stft and centroid 2048/512 22k 64x60s", 64 * 60, lambda: centroid(music))
    low_pass = torchaudio.functional.lowpass_biquad
    row("low-pass, 1 section 22k 64x60s", 64 * 60, lambda: low_pass(music, 22050, 1000.0))
    deltas, bands = transforms.ComputeDeltas(9).cuda(), mel2(music)
    row("delta 9 of 128 bands 22k 64x60s", 64 * 60, lambda: deltas(bands))
    frames = torch.nn.functional.pad(music, (1024, 1024)).unfold(1, 2048, 512)
    row("rms 2048/512 22k 64x60s", 64 * 60, lambda: torch.sqrt(torch.mean(frames * frames, -1)))
    signs = (torch.nn.functional.pad(music.unsqueeze(1), (1024, 1024), "replicate").squeeze(1) < -1e-10)
    row("zero crossings 2048/512 22k 64x60s", 64 * 60,
        lambda: (signs[:, 1:] != signs[:, :-1]).unfold(1, 2047, 512).float().mean(-1))
    half = music[:, :30 * 22050]
    n_fft = 1 << 21

    def autocorrelation():
        z = torch.fft.rfft(half, n_fft)
        return torch.fft.irfft(z * z.conj(), n_fft)[:, :half.shape[1]]

    row("autocorrelation 22k 64x30s", 64 * 30, autocorrelation)
    loudness = transforms.Loudness(22050).cuda()
    row("integrated loudness, no true peak 22k 8x60s", 8 * 60, lambda: loudness(music[:8].unsqueeze(1)))
    spectrum = torch.stft(wide, 2048, 512, window=hann[2048], return_complex=True)
    row("stft 2048/512 44k 64x60s", 64 * 60, lambda: torch.stft(wide, 2048, 512, window=hann[2048], return_complex=True))
    row("istft 2048/512 44k 64x60s", 64 * 60, lambda: torch.istft(spectrum, 2048, 512, window=hann[2048]))
    resample = transforms.Resample(44100, 48000).cuda()
    row("resample 44.1k to 48k 64x60s", 64 * 60, lambda: resample(wide))
    griffin = transforms.GriffinLim(2048, n_iter=32, hop_length=512, power=1.0).cuda()
    magnitude = torch.stft(music[:8], 2048, 512, window=hann[2048], return_complex=True).abs()
    row("griffin-lim 32 2048/512 22k 8x60s", 8 * 60, lambda: griffin(magnitude))
    row("griffin-lim 32 2048/512 22k 64x60s", 64 * 60, lambda: griffin(torch.cat([magnitude] * 8)))
    stretch = transforms.TimeStretch(hop_length=512, n_freq=1025, fixed_rate=1.25).cuda()
    narrow = torch.stft(music, 2048, 512, window=hann[2048], return_complex=True)
    row("time stretch 1.25, spectra only 22k 64x60s", 64 * 60, lambda: stretch(narrow))

    def stretched():
        spectra = torch.stft(music, 2048, 512, window=hann[2048], return_complex=True)
        return torch.istft(stretch(spectra), 2048, 512, window=hann[2048])

    row("time stretch 1.25, audio to audio 22k 64x60s", 64 * 60, stretched)
    shift = transforms.PitchShift(22050, 4, n_fft=2048, hop_length=512).cuda()
    row("pitch shift 4 22k 8x60s", 8 * 60, lambda: shift(music[:8]))
    row("pitch (nccf) 22k 8x60s", 8 * 60, lambda: torchaudio.functional.detect_pitch_frequency(music[:8], 22050))


main()
