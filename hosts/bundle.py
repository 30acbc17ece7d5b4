"""scons bundle: a folder that runs on any x86-64 Linux with glibc 2.36 or newer and no installed libraries.

Programs, tests and benches find their libraries in lib/ beside them ($ORIGIN); what belongs to glibc and the GPU driver
stays the machine's own, and so do JACK, PortAudio and RtMidi: they are opened at run time, libjack must fit the server,
and the others find devices through the machine's ALSA.
"""
import os
import re
import shutil
import subprocess

FROM_THE_MACHINE = re.compile(r"^(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|util|nsl|cuda|nvrtc|cublas\w*))[.-]")


def libraries_of(program):
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*(\S+) => (/\S+)", listing, re.M)
    return {name: path for name, path in found if not FROM_THE_MACHINE.match(name)}


def bundle(target, source, env):
    folder = os.path.dirname(str(target[0]))
    shutil.rmtree(folder, ignore_errors=True)
    libraries = {}
    for node in source:
        program = str(node)
        kind = os.path.basename(os.path.dirname(program))
        place = os.path.join(folder, kind if kind in ("tests", "bench") else "")
        os.makedirs(place, exist_ok=True)
        copy = shutil.copy2(program, place)
        subprocess.run(["strip", "--strip-debug", copy], check=True)
        libraries.update(libraries_of(program))
    os.makedirs(os.path.join(folder, "lib"))
    for name, path in libraries.items():
        copy = shutil.copy2(os.path.realpath(path), os.path.join(folder, "lib", name))
        subprocess.run(["strip", "--strip-debug", copy], check=True)
    for data in ("presets", "tests/data", "tests/golden"):
        if os.path.isdir(data):
            shutil.copytree(data, os.path.join(folder, data), dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    shutil.copy2("LICENSE", folder)
    open(str(target[0]), "w").write("\n".join(sorted(libraries)) + "\n")
