"""Write the reference part of docs/nodes.md:  build/warptone presets nodes --json | python3 docs/make_nodes.py

What stands above the line "## Reference" stays; the rest is made anew from the program's own table.
"""
import json
import os
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nodes.md")


def text(value):
    return str(value).replace("|", "\\|")


def node(n):
    lines = [f"### {n['name']}", "", n["summary"][0].upper() + n["summary"][1:] + ".", ""]
    if n["readings"]:
        lines += ["Shows " + ", ".join(f"`{r}`" for r in n["readings"]) + ".", ""]
    if n["params"]:
        lines += ["| parameter | range | if left out | |", "|---|---|---|---|"]
        for p in n["params"]:
            lines.append(f"| `{p['name']}` | {p['min']:g} .. {p['max']:g} {p['unit']} | {p['standard']:g} | {text(p['help'])} |")
        lines.append("")
    if n["options"]:
        lines += ["| option | value | if left out | |", "|---|---|---|---|"]
        for o in n["options"]:
            standard = "required" if o["standard"] is None else text(o["standard"])
            lines.append(f"| `{o['name']}` | {text(o['choices'] or 'text or number')} | {standard} | {text(o['help'])} |")
        lines.append("")
    return lines


head = open(PATH).read().split("## Reference")[0]
lines = ["## Reference", ""]
for n in json.load(sys.stdin):
    lines += node(n)
open(PATH, "w").write(head + "\n".join(lines))
