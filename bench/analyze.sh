#!/bin/sh
# Features of 2,000 files of 6 s, 16 bits at 22.05 kHz (or RATE with CHANNELS), in the page cache: on the CPU, on a GPU in
# batches, and on a GPU a file at a time.
#
#   bench/analyze.sh WARPTONE [FEATURES ...]
set -e
warptone=$1
shift
[ $# -gt 0 ] || set -- logmel mfcc,beats chroma,pyin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/in"
python3 - "$folder/in" "${RATE:-22050}" "${CHANNELS:-1}" <<'END'
import random, sys, wave
folder, rate, channels = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
frame = 2 * channels
noise = random.Random(1).randbytes(frame * (6 * rate + 2000 * 50))
for k in range(2000):
    with wave.open(f"{folder}/{k}.wav", "wb") as file:
        file.setnchannels(channels), file.setsampwidth(2), file.setframerate(rate)
        file.writeframes(noise[frame * 50 * k : frame * (50 * k + 6 * rate)])
END
for features; do
    for way in "cpu" "cuda" "cuda --tile 140000"; do # less than two files
        rm -rf "$folder/out"
        printf '%s, %s: ' "$features" "$way"
        "$warptone" analyze -f "$features" --backend $way --format npz "$folder/in" "$folder/out/" 2>&1 | tail -n 1
    done
done
