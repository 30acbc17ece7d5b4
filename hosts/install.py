"""warptone.pc: what pkg-config tells of an installed libwarptone."""
import re
import subprocess

TEXT = """prefix={prefix}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: warptone
Description: Real-time audio engine in C: chains of effects, analysis, language models, on a GPU or the CPU
Version: {version}
Libs: -L${{libdir}} -lwarptone
Libs.private: {libraries} -lm -ldl -pthread
Cflags: -I${{includedir}}
"""


def write_pc(target, source, env):
    version = re.search(r'WARPTONE_VERSION "(.*)"', open(str(source[0])).read())[1]
    listing = subprocess.run(["pkg-config", "--libs", *env["PACKAGES"]], capture_output=True, text=True, check=True)
    with open(str(target[0]), "w") as file:
        file.write(TEXT.format(prefix=env["PREFIX"], version=version, libraries=listing.stdout.strip()))
