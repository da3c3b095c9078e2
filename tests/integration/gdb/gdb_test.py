#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stops a recorded program in gdb and checks the output of the commands in tools/gdb.

Exit status: 0 pass, 1 failure, 77 if gdb has no Python or may not trace processes.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

LAUNCHES_BEFORE = 20
LAUNCHES_ALONE = 10  # while the writer is stopped, so their records stay pending


def run_gdb(args, commands, directory):
    """Output of gdb commands in the recorded program."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("XTRACE_", "CUDA_", "NVTX_", "LD_", "DEBUGINFOD_"))}
    command = [args.gdb, "-nx", "-q", "-batch"]
    for line in commands:
        command += ["-ex", line]
    command += ["--args", args.program, "1", "1", "1000"]
    environment.update(XTRACE_DATA=directory, XTRACE_CUPTI=args.cupti)
    settings = [f"set environment CUDA_INJECTION64_PATH {args.inject}",
                f"set environment LD_LIBRARY_PATH {args.simgpu}"]
    command[4:4] = [word for line in settings for word in ("-ex", line)]
    done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True,
                          timeout=100)
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    for name in ("gdb", "commands", "inject", "simgpu", "cupti", "program"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-gdb-") as directory:
        probe = run_gdb(args, ["python print('has python')", "break main", "run"], directory)
        if "has python" not in probe or "Breakpoint 1, " not in probe:
            print("gdb has no Python or cannot trace processes here:", probe)
            sys.exit(77)
        output = run_gdb(args, [
            "set pagination off", "set breakpoint pending on", "break sim_launch_kernel",
            f"ignore 1 {LAUNCHES_BEFORE}", "run", "set scheduler-locking on",
            f"ignore 1 {LAUNCHES_ALONE - 1}", "continue", f"source {args.commands}",
            "xtrace buffers", "xtrace ring 1 4", "xtrace writer", "xtrace ring 99"], directory)
    calls = [line.split() for line in output.splitlines() if re.match(r" +\d+ +\d+ claimed ", line)]
    pending = re.search(r"(\d+) pending records, the last 4:", output)
    records = re.findall(r"^ +\d+ XT_RECORD_\w+ +\d+ bytes at 0x", output, re.M)
    failures = [name for name, holds in (
        ("a claimed thread buffer with the calls of the program",
         any(int(words[5]) >= LAUNCHES_BEFORE + LAUNCHES_ALONE for words in calls)),
        ("pending records", pending and int(pending.group(1)) >= LAUNCHES_ALONE),
        ("the last four records", len(records) == 4),
        ("counters of the ring", re.search(r"^XT_RING_CALLS_SEEN +\d+$", output, re.M)),
        ("the writer's thread", re.search(r"^writer_id +[1-9]", output, re.M)),
        ("an error for an unknown index", "no thread buffer has the index 99" in output)) if not holds]
    if failures:
        print(output)
        print("missing in the output:", "; ".join(failures))
        sys.exit(1)


if __name__ == "__main__":
    main()
