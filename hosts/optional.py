"""Libraries of the edges: some are required, some only add a feature. The build says what it left out."""
import subprocess

REQUIRED = {"sndfile": "libsndfile1-dev", "samplerate": "libsamplerate0-dev", "libcyaml": "libcyaml-dev",
            "yaml-0.1": "libyaml-dev", "jansson": "libjansson-dev", "libpng": "libpng-dev",
            "libpcre2-8": "libpcre2-dev", "libutf8proc": "libutf8proc-dev"}
OPTIONAL = {"jack": ("WT_HAVE_JACK", "live audio through JACK", "libjack-jackd2-dev"),
            "portaudio-2.0": ("WT_HAVE_PORTAUDIO", "live audio through PortAudio", "portaudio19-dev"),
            "rtmidi": ("WT_HAVE_RTMIDI", "MIDI ports of their own", "librtmidi-dev"),
            "liblo": ("WT_HAVE_LIBLO", "OSC control and session management", "liblo-dev")}
OPENED_AT_RUN_TIME = ("jack", "portaudio-2.0", "rtmidi")


def exists(package):
    return subprocess.run(["pkg-config", "--exists", package], stderr=subprocess.DEVNULL).returncode == 0


def has_header(name):
    return subprocess.run(["gcc", "-E", "-x", "c", "-"], input=f"#include <{name}>", text=True,
                          capture_output=True).returncode == 0


def find_packages(env):
    env["PACKAGES"] = list(REQUIRED) # what a static libwarptone wants
    for package, debian in REQUIRED.items():
        if not exists(package):
            raise SystemExit(f"scons: {package} not found: install {debian}, or run ./bootstrap")
        env.ParseConfig(f"pkg-config --cflags --libs {package}")
    for package, (macro, feature, debian) in OPTIONAL.items():
        if not exists(package):
            print(f"scons: {feature} is left out: {package} not found (Debian: {debian})")
            continue
        env.ParseConfig(f"pkg-config --cflags --libs {package}")
        env.Append(CPPDEFINES=[macro])
        if package not in OPENED_AT_RUN_TIME:
            env.Append(PACKAGES=[package])
    if not has_header("civetweb.h"): # no pkg-config file in Debian
        print("scons: the server (to come) is left out: civetweb not found (Debian: libcivetweb-dev)")
