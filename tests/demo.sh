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
echo "listen to $out/voice.wav and $out/mastered, look at $out/voice.png"
