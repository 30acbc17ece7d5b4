#!/bin/sh
# Features of 2,000 files of 6 s, 16 bits at 22.05 kHz (or FILES of them, at RATE with CHANNELS), in the page cache: on
# the CPU, on a GPU in batches, and on a GPU a file at a time. A row says how long the program took from start to end,
# the work itself, and what the workers' time went to, all in seconds.
#
#   bench/analyze.sh WARPTONE [FEATURES ...]
set -e
warptone=$1
shift
[ $# -gt 0 ] || set -- logmel mfcc,beats chroma,pyin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/in"
python3 - "$folder/in" "${RATE:-22050}" "${CHANNELS:-1}" "${FILES:-2000}" <<'END'
import random, sys, wave
folder, rate, channels, count = sys.argv[1], *map(int, sys.argv[2:])
frame = 2 * channels
noise = random.Random(1).randbytes(frame * (6 * rate + count * 50))
for k in range(count):
    with wave.open(f"{folder}/{k}.wav", "wb") as file:
        file.setnchannels(channels), file.setsampwidth(2), file.setframerate(rate)
        file.writeframes(noise[frame * 50 * k : frame * (50 * k + 6 * rate)])
END
row() { # FEATURES, what the program is told
    features=$1
    shift
    rm -rf "$folder/out"
    begin=$(date +%s.%N)
    "$warptone" analyze -f "$features" "$@" --format npz --json "$folder/in" "$folder/out/" >"$folder/json" || return 0
    python3 - "$folder/json" "$begin" "$(date +%s.%N)" "$features, $*" <<'END'
import json, sys
path, begin, end, what = sys.argv[1:]
told = json.load(open(path))
stages = " ".join(f"{name} {seconds:.2f}" for name, seconds in told["stages_s"].items())
print(f"{what}: {float(end) - float(begin):.2f}, {told['wall_s']:.2f} for {told['done']} files: {stages}", flush=True)
END
}
for features; do
    row "$features" --backend cpu
    for jobs in ${JOBS:-}; do row "$features" --backend cuda --jobs "$jobs"; done
    row "$features" --backend cuda
    row "$features" --backend cuda --tile 140000 # less than two files
done
