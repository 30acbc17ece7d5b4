"""Write the reference part of docs/commands.md:  python3 docs/make_commands.py build/warptone

What stands above the line "## Reference" stays; the rest is what the program's own --help says.
"""
import os
import re
import subprocess
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "commands.md")


def help_of(*command):
    return subprocess.run([sys.argv[1], *command, "--help"], capture_output=True, text=True, check=True).stdout


def block(text):
    return "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())


head = open(PATH).read().split("## Reference")[0]
everything = help_of()
names = re.findall(r"^  ([a-z]+) {2,}", everything.split("commands:\n")[1].split("\n\n")[0], re.M)
with open(PATH, "w") as file:
    file.write(head + "## Reference\n\n" + block(everything))
    for name in names:
        file.write(f"\n### {name}\n\n" + block(help_of(name)))
