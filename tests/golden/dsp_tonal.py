"""Golden cases: constant-Q family, tuning, chroma, tonnetz, HPSS, masks, median and neighbour filters, NMF."""
import librosa
import numpy as np
import scipy.ndimage
import sklearn.decomposition

from golden_set import lcg

SR = 22050


def add_cases(golden):
    add_constant_q(golden)
    add_tuning(golden)
    add_chroma(golden)
    add_separation(golden)
    add_filters(golden)
    add_nmf(golden)


def add_constant_q(golden):
    def q(name, op, signal, **p):
        golden.case(f"{op}_{name}", op, signal, lambda y, ft, **r: getattr(librosa, op)(y, **r), goal=1e-6, **p)
    q("default", "cqt", "trumpet", sr=SR)
    q("plucks_36", "cqt", "plucks", sr=SR, hop_length=512, fmin=65.40639132514966, n_bins=108, bins_per_octave=36)
    q("hop256_24", "cqt", "glide", sr=SR, hop_length=256, fmin=110.0, n_bins=96, bins_per_octave=24)
    q("nosparse_noscale", "cqt", "plucks", sr=SR, hop_length=512, fmin=110.0, n_bins=60, sparsity=0.0, scale=False)
    q("filter_scale_half", "cqt", "strings", sr=SR, hop_length=512, filter_scale=0.5, tuning=0.2)
    q("tuning_auto", "cqt", "plucks", sr=SR, hop_length=512, fmin=110.0, n_bins=60, tuning=None)
    q("norm2_hamming", "cqt", "trumpet", sr=SR, hop_length=512, fmin=110.0, n_bins=48, norm=2, window="hamming")
    q("early_decimation", "cqt", "chirp", sr=SR, hop_length=1024, fmin=55.0, n_bins=24)
    q("reflect_16k", "cqt", "speech16k", sr=16000, hop_length=128, fmin=80.0, n_bins=60, pad_mode="reflect")
    q("norm_inf", "cqt", "plucks", sr=SR, hop_length=512, fmin=110.0, n_bins=48, norm=np.inf)
    q("norm_none", "cqt", "trumpet", sr=SR, hop_length=512, fmin=110.0, n_bins=48, norm=None)
    q("edge", "cqt", "plucks", sr=SR, hop_length=512, fmin=110.0, n_bins=48, pad_mode="edge")
    q("default", "vqt", "trumpet", sr=SR)
    q("gamma0", "vqt", "plucks", sr=SR, fmin=110.0, n_bins=60, gamma=0.0)
    q("gamma20", "vqt", "strings", sr=SR, hop_length=256, fmin=65.40639132514966, n_bins=72, gamma=20.0)
    q("just5", "vqt", "plucks", sr=SR, fmin=110.0, n_bins=48, intervals="ji5")
    q("default", "hybrid_cqt", "trumpet", sr=SR)
    q("hop256", "hybrid_cqt", "glide", sr=SR, hop_length=256, fmin=110.0, n_bins=72)
    q("default", "pseudo_cqt", "trumpet", sr=SR)
    q("fmin220_24", "pseudo_cqt", "plucks", sr=SR, fmin=220.0, n_bins=72, bins_per_octave=24)

    def run_icqt(y, ft, length, **p):
        frame = {k: v for k, v in p.items() if k != "n_bins"}
        return librosa.icqt(librosa.cqt(y, **p), length=length, **frame)
    golden.case("icqt_default", "icqt", "trumpet", run_icqt, goal=1e-6, sr=SR, hop_length=512,
                fmin=32.70319566257483, n_bins=84, length=None)
    golden.case("icqt_24_length", "icqt", "plucks", run_icqt, goal=1e-6, sr=SR, hop_length=256, fmin=110.0, n_bins=96,
                bins_per_octave=24, length=30000)
    golden.case("icqt_noscale", "icqt", "glide", run_icqt, goal=1e-6, sr=SR, hop_length=512, fmin=110.0, n_bins=60,
                scale=False, length=26460)
    golden.case("cqt_filter_lengths", "cqt_lengths", "", lambda ft, fmin, n_bins, gamma, sr:
                librosa.filters.wavelet_lengths(freqs=librosa.cqt_frequencies(n_bins, fmin=fmin), sr=sr,
                                                gamma=gamma)[0], fmin=32.70319566257483, n_bins=84, gamma=None, sr=SR)


def add_tuning(golden):
    def run(y, ft, **p):
        return librosa.estimate_tuning(y=y, **p)
    golden.case("tuning_plucks", "estimate_tuning", "plucks", run, sr=SR, n_fft=2048)
    golden.case("tuning_sine", "estimate_tuning", "sine", run, sr=SR, n_fft=2048)
    golden.case("tuning_strings_36", "estimate_tuning", "strings", run, sr=SR, n_fft=4096, resolution=0.02,
                bins_per_octave=36)

    def run_piptrack(y, ft, **p):
        return dict(zip(("pitches", "mags"), librosa.piptrack(y=y, **p)))
    golden.case("piptrack_glide", "piptrack", "glide", run_piptrack, sr=SR)
    golden.case("piptrack_plucks_range", "piptrack", "plucks", run_piptrack, sr=SR, n_fft=1024, hop_length=512,
                fmin=200.0, fmax=1500.0, threshold=0.02)


def add_chroma(golden):
    def bank(name, **p):
        golden.case(f"chroma_{name}", "chroma_filter", "", lambda ft, **q: librosa.filters.chroma(dtype=ft, **q), **p)
    bank("bank_default", sr=SR, n_fft=2048)
    bank("bank_24_tuned", sr=SR, n_fft=4096, n_chroma=24, tuning=0.3, ctroct=4.0, octwidth=3.0, norm=1, base_c=False)

    def run_stft(y, ft, **p):
        return librosa.feature.chroma_stft(y=y, dtype=ft, **p)
    golden.case("chroma_stft_default", "chroma_stft", "plucks", run_stft, sr=SR)
    golden.case("chroma_stft_tuning0", "chroma_stft", "trumpet", run_stft, sr=SR, tuning=0.0, n_fft=4096,
                hop_length=1024)
    golden.case("chroma_stft_norm2", "chroma_stft", "strings", run_stft, sr=SR, tuning=0.1, norm=2)
    golden.case("chroma_stft_norm1_24", "chroma_stft", "strings", run_stft, sr=SR, tuning=0.0, norm=1, n_chroma=24)
    golden.case("chroma_stft_norm_none", "chroma_stft", "trumpet", run_stft, sr=SR, tuning=0.0, norm=None)

    def run_cqt(y, ft, **p):
        return librosa.feature.chroma_cqt(y=y, **p)
    golden.case("chroma_cqt_default", "chroma_cqt", "plucks", run_cqt, sr=SR)
    # soxr sums in float32 whatever it is given, and normalising weak frames lifts that: with soxr's chain in float64 in
    # its place librosa 0.11.0 is 1.83e-6 of the peak away from its own value here (the other two cases: 3.4e-7, 2.7e-7)
    golden.case("chroma_cqt_12_norm2", "chroma_cqt", "trumpet", run_cqt, bound=2.5e-6, floor=1.8e-6, sr=SR,
                bins_per_octave=12, n_octaves=6, norm=2, tuning=0.0)
    golden.case("chroma_cqt_threshold", "chroma_cqt", "strings", run_cqt, sr=SR, threshold=0.2, tuning=0.0)

    def run_cens(y, ft, **p):
        return librosa.feature.chroma_cens(y=y, **p)
    golden.case("chroma_cens_default", "chroma_cens", "trumpet", run_cens, sr=SR, tuning=0.0)
    golden.case("chroma_cens_smooth11", "chroma_cens", "plucks", run_cens, sr=SR, tuning=0.0, win_len_smooth=11,
                norm=np.inf)
    golden.case("tonnetz_plucks", "tonnetz", "plucks", lambda y, ft, **p: librosa.feature.tonnetz(y=y, **p), sr=SR)
    golden.input("chroma_matrix", np.abs(lcg(31, 12 * 30).reshape(12, 30)))
    golden.case("tonnetz_matrix", "tonnetz", "chroma_matrix",
                lambda c, ft: librosa.feature.tonnetz(chroma=c))
    golden.case("cens_matrix", "chroma_cens", "chroma_matrix",
                lambda c, ft, **p: librosa.feature.chroma_cens(C=c, **p), win_len_smooth=7, bins_per_octave=12)


def add_separation(golden):
    def run(y, ft, n_fft, hop_length, **p):
        h, p = librosa.decompose.hpss(np.abs(librosa.stft(y, n_fft=n_fft, hop_length=hop_length)), **p)
        return {"harm": h, "perc": p}

    def hard(y, ft, n_fft, hop_length, **p):
        masks = run(y, ft, n_fft, hop_length, **p)
        return {k: v.astype(np.int32) for k, v in masks.items()}
    golden.input("mix", 0.7 * golden.inputs["plucks"][:26460] + 0.5 * golden.inputs["drums"][:26460])
    golden.case("hpss_default", "hpss", "mix", run, goal=2e-7, n_fft=2048, hop_length=512, kernel_size=31, power=2.0,
                margin=1.0)
    golden.case("hpss_17_9", "hpss", "mix", run, goal=2e-7, n_fft=1024, hop_length=256, kernel_size=(17, 9), power=1.0,
                margin=1.0)
    golden.case("hpss_margin", "hpss", "mix", run, goal=2e-7, n_fft=2048, hop_length=512, kernel_size=31, power=2.0,
                margin=(1.5, 3.0))
    golden.case("hpss_mask", "hpss", "mix", run, goal=2e-7, n_fft=1024, hop_length=512, kernel_size=(13, 31), power=2.0,
                mask=True, margin=1.0)
    golden.case("hpss_hard", "hpss", "mix", hard, n_fft=1024, hop_length=512, kernel_size=31, power=np.inf, mask=True,
                margin=1.0)
    golden.case("hpss_silence_mask", "hpss", "parts", run, n_fft=1024, hop_length=512, kernel_size=31, power=2.0,
                mask=True, margin=1.0)
    golden.case("hpss_even_kernel", "hpss", "mix", run, goal=2e-7, n_fft=512, hop_length=512, kernel_size=(8, 12),
                power=2.0, margin=1.0)
    golden.case("hpss_audio", "effects_hpss", "mix", lambda y, ft, **p: dict(zip(
        ("harm", "perc"), librosa.effects.hpss(y, **p))), n_fft=2048, hop_length=512, kernel_size=31, power=2.0,
        margin=1.0)


def add_filters(golden):
    golden.input("mask_x", np.where(lcg(41, 40 * 50) > -0.9, np.abs(lcg(42, 40 * 50)), 0).reshape(40, 50))
    golden.input("mask_ref", np.where(lcg(43, 40 * 50) > -0.9, np.abs(lcg(44, 40 * 50)), 0).reshape(40, 50))

    def mask(x, ref, ft, **p):
        out = librosa.util.softmask(x, ref, **p)
        return out.astype(np.int32) if p["power"] == np.inf else out
    golden.case("softmask_p1", "softmask", "mask_x,mask_ref", mask, goal=2e-7, power=1.0, split_zeros=False)
    golden.case("softmask_p2_split", "softmask", "mask_x,mask_ref", mask, goal=2e-7, power=2.0, split_zeros=True)
    golden.case("softmask_p05", "softmask", "mask_x,mask_ref", mask, goal=2e-7, power=0.5, split_zeros=False)
    golden.case("softmask_inf", "softmask", "mask_x,mask_ref", mask, power=np.inf, split_zeros=False)

    for rows, columns in ((1, 31), (31, 1), (5, 3), (1, 8)):
        golden.case(f"median_{rows}x{columns}", "median_filter", "mask_x", lambda x, ft, rows, columns, mode:
                    scipy.ndimage.median_filter(x, size=(rows, columns), mode=mode), bound=1e-7, rows=rows,
                    columns=columns, mode="reflect")

    aggregates = {"mean": np.mean, "median": np.median}

    def nn(x, ft, aggregate, **p):
        return librosa.decompose.nn_filter(x, aggregate=aggregates[aggregate], **p)
    golden.case("nn_filter_mean", "nn_filter", "mask_x", nn, aggregate="mean", k=5, width=3, metric="euclidean",
                sym=False)
    golden.case("nn_filter_median_cosine", "nn_filter", "mask_x", nn, aggregate="median", k=7, width=1,
                metric="cosine", sym=True)


def add_nmf(golden):
    golden.input("nmf_v", np.abs(librosa.stft(golden.inputs["plucks"], n_fft=256, hop_length=512))[:, :40])
    golden.input("nmf_w", np.abs(lcg(51, 129 * 6).reshape(129, 6)) + 0.01)
    golden.input("nmf_h", np.abs(lcg(52, 6 * 40).reshape(6, 40)) + 0.01)

    # As librosa hands it to scikit-learn: components are the columns of W; scikit-learn sees V transposed.
    def run(v, w, h, ft, n_iter, solver, loss):
        model = sklearn.decomposition.NMF(6, init="custom", solver=solver, beta_loss=loss, tol=0, max_iter=n_iter)
        activations = model.fit_transform(np.ascontiguousarray(v.T), W=np.ascontiguousarray(h.T),
                                          H=np.ascontiguousarray(w.T))
        return {"w": model.components_.T, "h": activations.T}
    golden.case("nmf_mu_50", "decompose", "nmf_v,nmf_w,nmf_h", run, n_iter=50, solver="mu", loss="frobenius")
    golden.case("nmf_cd_20", "decompose", "nmf_v,nmf_w,nmf_h", run, n_iter=20, solver="cd", loss="frobenius")
    golden.case("nmf_mu_kl_20", "decompose", "nmf_v,nmf_w,nmf_h", run, n_iter=20, solver="mu", loss="kullback-leibler")
