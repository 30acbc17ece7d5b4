#!/bin/sh
# The main job on the audio in the repository: what ./bootstrap demo runs. Results lie in build/demo.
set -eu
cd "$(dirname "$0")/.."
out=build/demo
mkdir -p $out
build/warptone info
echo
echo "presets:"
build/warptone presets list
echo
echo "one file, with a picture:"
build/warptone process -p voice-clean --plot $out/voice.png tests/data/jfk.flac $out/voice.wav
echo
echo "a folder, mastered to -16 LUFS:"
build/warptone process -p podcast-master --format flac tests/data $out/mastered
echo
echo "a voice in a hall, as three voices, on the telephone; an orchestra through tape:"
for preset in hall harmonizer telephone; do
    build/warptone process -p $preset --tail tests/data/jfk.flac $out/$preset.wav
done
build/warptone process -p tape-echo --tail tests/data/hungarian-dance-5.flac $out/tape-echo.wav
echo
echo "what is in the orchestra: bands, notes and beats:"
build/warptone analyze -f mel,chroma_cqt,beats tests/data/hungarian-dance-5.flac $out/dance.png
echo
echo "listen to $out/*.wav and $out/mastered beside tests/data, look at $out/voice.png and $out/dance.png"
