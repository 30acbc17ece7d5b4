"""Make the golden values of the signal processing set:  python make_dsp.py AUDIO_FOLDER WHISPER_MEL_FILTERS [OUT]

Every value is librosa 0.11.0 (or SciPy, NumPy, scikit-learn where librosa has none) in float64 on float32 inputs. A
case's floor is the error of the same call in float32 relative to the peak; its bound is max(3 * floor, 1e-6) unless the
case says otherwise. Run with the versions below and one thread; two runs give the same bytes.
"""
import os
import sys

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import importlib.metadata
import warnings

PINNED = {"librosa": "0.11.0", "numpy": "2.4.6", "scipy": "1.17.1", "soxr": "1.1.0", "numba": "0.68.1",
          "scikit-learn": "1.9.1", "soundfile": "0.14.0"}  # Python 3.11


def main():
    for package, version in PINNED.items():
        found = importlib.metadata.version(package)
        if found != version:
            sys.exit(f"make_dsp: {package} {found}, want {version}")
    warnings.simplefilter("ignore")
    import dsp_filters
    import dsp_signals
    import dsp_spectral
    import dsp_time
    import dsp_tonal
    from golden_set import GoldenSet

    audio, whisper_filters = sys.argv[1:3]
    golden = GoldenSet(sys.argv[3] if len(sys.argv) > 3 else os.path.join(os.path.dirname(__file__), "dsp"))
    dsp_signals.add_inputs(golden, audio)
    dsp_spectral.add_cases(golden, whisper_filters)
    dsp_tonal.add_cases(golden)
    dsp_time.add_cases(golden)
    dsp_filters.add_cases(golden)
    golden.close()
    print(f"{len(golden.rows)} cases of {len({row[1] for row in golden.rows})} ops in {golden.folder}")


if __name__ == "__main__":
    main()
