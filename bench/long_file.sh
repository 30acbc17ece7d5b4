#!/bin/sh
# Features of one long file: HOURS (10) at 22.05 kHz, 16 bits, mono (1.6 GB in $TMPDIR): seconds and peak memory of each.
#
#   bench/long_file.sh WARPTONE [FEATURE ...]
set -e
warptone=$1
shift
[ $# -gt 0 ] || set -- logmel chroma beats pyin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 - "$folder/long.wav" "${HOURS:-10}" <<'END'
import array, math, random, sys, wave
path, hours, rate = sys.argv[1], float(sys.argv[2]), 22050
random.seed(1)
minute = array.array("h", bytes(120 * rate))
for k in range(120):  # a note of half a second with two harmonics, and noise
    hz = 110 * 2 ** (random.randrange(36) / 12)
    for i in range(rate // 2):
        fade = math.exp(-6 * i / rate)
        tone = sum(math.sin(2 * math.pi * h * hz * i / rate) / h for h in (1, 2, 3))
        minute[k * (rate // 2) + i] = round(9000 * fade * tone + random.uniform(-60, 60))
with wave.open(path, "wb") as file:
    file.setnchannels(1), file.setsampwidth(2), file.setframerate(rate)
    file.setnframes(round(hours * 3600 * rate))
    for k in range(round(hours * 60)):
        file.writeframesraw(minute[:60 * rate].tobytes())
END
for feature; do
    rm -f "$folder/out.npz"
    /usr/bin/time -f "$feature: %e s, %U user, %M KB" nice \
        "$warptone" analyze -f "$feature" --format npz --quiet ${WITH:---backend cpu} "$folder/long.wav" "$folder/out.npz"
done
