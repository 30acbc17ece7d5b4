"""What has become slower? A short set of rows of the benches, beside the rates that bench/rates.json keeps.

    python3 bench/rates.py [--only WORDS] [--runs N] [--limit SECONDS] [--write] [--folder build/bench] [--commit NAME]

Alone on the machine: the rows of an H200 take some 130 s, of which 40 s are the live ones. rates.json has, for each
machine (a GPU's name; the processors' name, kind and number), every row's rate, its commit and day, and by how much it
may fall, with the reason. Rows whose machine is another are not compared, only shown.

The table begins with what fell by more than that. Exit code: 1 if something fell, 2 if a row could not be measured.
After a change that is meant to move a rate: `--write` keeps what was measured now (with --runs 3, the medians), and
why belongs to the commit. A row that is new there may fall by twice the spread of these runs, 3 % at least, so it wants
several, and by a quarter at most: a lost third is to be seen on the worst machine.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "peers"))
import cpu_table

HERE = os.path.dirname(__file__)
LEAST_TOLERANCE, MOST_TOLERANCE, LEAST_RUNS = 0.03, 0.25, 3


def decode(shape, weights, tokens=64):
    """Tokens one by one after 1024."""
    return ["llm_cuda", shape, "1024", str(tokens), weights, "decode"], r"decode +at \d+ +([\d.]+) tok/s", "tok/s"


def hours(program, filter_, row):
    """Of many signals on the device; bench_tonal has no filter there."""
    return [program] + [filter_] * (program != "tonal") + ["cuda"], rf"{re.escape(row)} .*?([\d.]+) h/s", "h/s"


def p99(load, chain):
    command = ["roundtrip", "--chain", chain, "--row", f"resident:{load}:64:2000"]
    return command, rf"resident +{load} .*? p99 ([\d.]+) ", "us"


GPU_ROWS = {
    "8B bf16, a token": decode("qwen3-8b", "bf16"),
    "8B fp8, a token": decode("qwen3-8b", "fp8"),
    "8B int8, a token": decode("qwen3-8b", "int8"),
    "8B int4, a token": decode("qwen3-8b", "int4"),
    "0.6B bf16, a token": decode("qwen3-0.6b", "bf16", 128),
    "30B-A3B bf16, a token": decode("qwen3-30b-a3b", "bf16"),
    "30B-A3B int4, a token": decode("qwen3-30b-a3b", "int4"),
    "30B-A3B fp8, a token": decode("qwen3-30b-a3b", "fp8"),
    "STFT 2048/512": hours("spectral", "stft complex", "stft complex 2048/512"),
    "log-mel 128": hours("spectral", "mel 128", "mel 128 dB 2048/512"),
    "CQT 84": hours("tonal", None, "cqt 84"),
    "HPSS of 1025 magnitudes": hours("tonal", None, "hpss spectrogram"),
    "time stretch 1.25, default": hours("pitch", "stretch a", "stretch attacks"),
    "pYIN": hours("pitch", "pyin", "pyin"),
    "live voice, idle, p99": p99("idle", "voice"),
    "live voice beside a gemm, p99": p99("gemm", "voice"),
    "live analysis of 8 channels, idle, p99": p99("idle", "analysis8"),
    "live analysis of 8 channels beside a gemm, p99": p99("gemm", "analysis8"),
}
CPU_ROWS = {name: (program, filter_, row) for name, _, program, filter_, row, _, _ in cpu_table.ROWS}


# ---- the machine

def gpu_name():
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], stdout=subprocess.PIPE,
                              text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.splitlines()[0].strip()


def cpu_name():
    with open("/proc/cpuinfo") as f:
        said = f.read()
    name = re.search(r"model name\s*: (.*)", said).group(1).strip()
    kind = next((k for k in ("avx512f", "avx2") if k in said), "no AVX2")
    return f"{name}, {kind}, {len(os.sched_getaffinity(0))} processors"


# ---- measuring

def measure_gpu(row, folder, said):
    """`said` keeps what a command has printed in this round: some have several rows."""
    command, pattern, _ = row
    key = tuple(command)
    if key not in said:
        path = f"{folder}/bench_{command[0]}"
        said[key] = subprocess.run([path] + command[1:], stdout=subprocess.PIPE, text=True).stdout
    text = "\n".join(" ".join(line.split()) for line in said[key].splitlines())
    found = re.search(pattern, text)
    return float(found.group(1)) if found else None


def measure(rows, is_gpu, folder, n_runs, deadline):
    """Rounds of all rows, so that a bad minute of the machine is not one row's: the values of each."""
    values = {name: [] for name in rows}
    for _ in range(n_runs):
        said = {}
        for name, row in rows.items():
            if time.monotonic() > deadline:
                return values
            value = measure_gpu(row, folder, said) if is_gpu else cpu_table.ours(folder, *row)
            if value is not None:
                values[name].append(value)
    return values


# ---- comparing

def fall_of(value, kept, is_time):
    """By what part it is worse; negative where it is better."""
    return value / kept - 1 if is_time else 1 - value / kept


def compare(rows, is_gpu, values, kept):
    """Lines of the table, the largest fall first, and whether one fell and one is missing."""
    lines, fell, missing = [], False, False
    for name, row in rows.items():
        unit = row[2] if is_gpu else "x real time"
        if not values[name]:
            lines.append((9, f"| {name} | not measured | {unit} | | | |"))
            missing = True
            continue
        value, old = statistics.median(values[name]), kept.get(name)
        spread = f"{min(values[name]):,.1f} to {max(values[name]):,.1f}" if len(values[name]) > 1 else ""
        if not old:
            lines.append((-8, f"| {name} | {value:,.1f} | {unit} | {spread} | not kept | |"))
            continue
        fall = fall_of(value, old["value"], unit == "us")
        is_worse = fall > old["tolerance"]
        fell |= is_worse
        lines.append((fall, f"| {name} | {value:,.1f} | {unit} | {spread} | {old['value']:,.1f} ({old['commit']}) | "
                            f"{'**' if is_worse else ''}{0 - 100 * fall:+.1f} %{' FELL**' if is_worse else ''} |"))
    return [line for _, line in sorted(lines, key=lambda pair: -pair[0])], fell, missing


def tolerance_of(spread, n_runs):
    of_runs = f"the spread of {n_runs} runs was {100 * spread:.1f} %"
    if 2 * spread < LEAST_TOLERANCE:
        return {"tolerance": LEAST_TOLERANCE, "why": f"the least: {of_runs}"}
    if 2 * spread > MOST_TOLERANCE:
        return {"tolerance": MOST_TOLERANCE, "why": f"the most: {of_runs}"}
    return {"tolerance": round(2 * spread, 2), "why": f"twice: {of_runs}"}


def renew(kept, rows, is_gpu, values, commit):
    for name, row in rows.items():
        if not values[name]:
            continue
        value = statistics.median(values[name])
        spread = (max(values[name]) - min(values[name])) / value
        old = kept.get(name)
        if not old and len(values[name]) < LEAST_RUNS:
            print(f"{name}: is not kept; a new row wants --runs {LEAST_RUNS} at least, for its spread")
            continue
        kept[name] = {"value": round(value, 1), "unit": row[2] if is_gpu else "x real time", "commit": commit,
                      "day": datetime.date.today().isoformat(), "runs": len(values[name]),
                      **({k: old[k] for k in ("tolerance", "why")} if old else tolerance_of(spread, len(values[name])))}


def commit_of():
    said = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty", "--exclude=*"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout.strip()
    return said or "not named"


def main():
    options = argparse.ArgumentParser(description="What has become slower than bench/rates.json says?")
    options.add_argument("--only", default="", help="rows whose name has this in it")
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--limit", type=float, default=1e9, metavar="SECONDS", help="begin no row after these")
    options.add_argument("--write", action="store_true", help="keep what is measured now")
    options.add_argument("--folder", default="build/bench", help="of the bench programs")
    options.add_argument("--commit", default=commit_of(), help="that they were built from")
    options.add_argument("--file", default=os.path.join(HERE, "rates.json"))
    options.add_argument("--no-cpu", action="store_true")
    o = options.parse_args()
    deadline, kept, code = time.monotonic() + o.limit, {}, 0
    if os.path.exists(o.file):
        with open(o.file) as f:
            kept = json.load(f)
    machines = [(gpu_name(), GPU_ROWS, True), (None if o.no_cpu else cpu_name(), CPU_ROWS, False)]
    for machine, all_rows, is_gpu in machines:
        rows = {name: row for name, row in all_rows.items() if o.only in name}
        if not machine or not rows:
            continue
        values = measure(rows, is_gpu, o.folder, o.runs, deadline)
        lines, fell, missing = compare(rows, is_gpu, values, kept.get(machine, {}))
        print(f"{machine}, {o.commit}\n\n| row | now | | from, to | kept | change |\n|---|---|---|---|---|---|")
        print("\n".join(lines) + "\n")
        code = max(code, 2 if missing else 1 if fell else 0)
        if o.write:
            renew(kept.setdefault(machine, {}), rows, is_gpu, values, o.commit)
    if o.write:
        with open(o.file, "w") as f:
            json.dump(kept, f, indent=1)
            f.write("\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
