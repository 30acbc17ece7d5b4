"""Run each cmocka program in turn, show its output, and fail when one failed."""
import os
import subprocess
import sys
import time


def run_tests(target, source, env):
    failed = []
    programs = [str(node) for node in source if os.path.basename(str(node)).startswith("test_")]
    for program in programs:
        begin = time.monotonic()
        print(f"--- {os.path.basename(program)}", flush=True)
        result = subprocess.run([os.path.abspath(program)], env=env["ENV"], timeout=900)
        print(f"    {time.monotonic() - begin:.1f} s", flush=True)
        if result.returncode:
            failed.append(os.path.basename(program))
    if failed:
        sys.stderr.write(f"tests: {len(failed)} of {len(programs)} programs failed: {', '.join(failed)}\n")
        return 1
    print(f"tests: {len(programs)} programs passed")
    open(str(target[0]), "w").close()
    return 0
