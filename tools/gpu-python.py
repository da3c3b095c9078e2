#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python's frames on a real GPU: how many launches have them, whether they are right, what they cost.

Runs tests/gpu/python_work.py of each kind from an unpacked tarball (share/xtrace/gpu-python.py), an
installation or a build tree. Prints for each kind what recording adds to a step without Python frames
and with them, the percent of launches with Python frames, what the log counts of Python, and the first
lines of its folded stacks. What it adds is measured within one process, which switches recording off
and on every few steps: processes differ from each other by more. Where the program makes NVTX marks,
the Python frames of each are held against what sys._getframe() said there.

Exit status: 0 all frames are right, 1 some are not or a program failed, 2 usage.
"""

import argparse
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("driver", "eager", "compile", "graph", "loader", "autograd", "cupy", "jax")
LAUNCHES = (1, 2)
MODES = ("off", "mixed")


class Places:
    """Where programs lie: beside us in an installation, or in a build tree."""

    def __init__(self, build):
        root = os.path.dirname(os.path.dirname(HERE))
        self.work = os.path.join(HERE, "samples", "python_work.py")
        self.dump = os.path.join(root, "bin", "xtrace-dump")
        if build or not os.path.exists(os.path.join(root, "bin", "xtrace")):
            root = build or os.path.join(os.path.dirname(HERE), "build")
            self.work = os.path.join(os.path.dirname(HERE), "tests", "gpu", "python_work.py")
            self.dump = os.path.join(HERE, "xtrace-dump")
        self.xtrace = os.path.join(root, "bin", "xtrace")
        self.merge = os.path.join(root, "bin", "xtrace-merge")
        self.simulated = os.path.join(root, "lib", "xtrace", "simgpu")


def run_once(places, options, kind, mode, folder, is_switched=False):
    """Milliseconds of a step, and (if it switches) those that recording adds."""
    command = [options.python, places.work, kind, "--steps", str(options.steps)]
    environment = dict(os.environ)
    if mode == "bare" and options.simulate:
        environment["LD_LIBRARY_PATH"] = places.simulated
    if mode != "bare":
        shutil.rmtree(folder, ignore_errors=True)
        switching = ["--capture-range", "cudaProfilerApi"] if is_switched else []
        command = [places.xtrace, "record", *(["--simulate"] if options.simulate else []),
                   "--python", mode, *switching, "-o", folder, "--", *command,
                   *(["--switch"] if is_switched else [])]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    found = re.search(r"([0-9.]+) ms/step(?:, recording adds (-?[0-9.]+))?", done.stdout)
    if done.returncode or not found:
        raise RuntimeError("%s %s gives %d: %s" % (
            kind, mode, done.returncode, (done.stdout + done.stderr).strip()[-2000:]))
    return float(found.group(1)), float(found.group(2) or 0)


class Log:
    def __init__(self, places, path):
        self.tables = collections.defaultdict(list)
        done = subprocess.run([places.dump, "--format", "json", path], capture_output=True,
                              text=True)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            if row.get("record") == "row":
                self.tables[row["kind"]].append(row)
        texts = {row["id"]: row["text"] for row in self.tables["STRING"]}
        texts[0] = ""
        self.texts = texts
        self.frames = {row["id"]: (texts[row["name"]], texts[row["file"]], row["line"])
                       for row in self.tables["PYTHON_FRAME"]}
        self.stacks = {row["id"]: row for row in self.tables["STACK"]}
        self.account = {row["name"]: row["value"] for row in self.tables["ACCOUNT"]}
        self.meta = {row["key"]: row["value"] for row in self.tables["META"]}


def count_launches(log):
    """Launches, those with Python frames, and the sum of their frames."""
    launching = {row["id"] for row in log.tables["API"] if row["class"] in LAUNCHES}
    all_of, with_python, frames = 0, 0, 0
    for row in log.tables["CALL"]:
        if row["api"] in launching:
            python = log.stacks.get(row["stack"], {}).get("python", ())
            all_of += 1
            with_python += bool(python)
            frames += len(python)
    return all_of, with_python, frames


def check_marks(log, ledger):
    """Marks in the log whose Python frames are not those that the program noted, and all of them."""
    noted = {}
    with open(ledger) as file:
        for line in file:
            entry = json.loads(line)
            noted[entry["text"]] = [tuple(frame) for frame in entry["frames"]]
    wrong, checked = [], 0
    for row in log.tables["RANGE"]:
        text = log.texts.get(row["text"], "")
        if text not in noted:
            continue
        python = [log.frames[number] for number in log.stacks[row["stack"]]["python"]]
        checked += 1
        # Further in are the frames that make the mark.
        if python[-len(noted[text]):] != noted[text]:
            wrong.append("%s\n  noted %s\n  found %s" % (text, noted[text], python))
    return wrong, checked


def folded(places, folder, mode, count):
    done = subprocess.run([places.merge, "-q", "--folded", "-", "--unit", "us", "--python", mode,
                           folder], capture_output=True, text=True)
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    lines.sort(key=lambda line: -int(line[1]))
    return ["%s %s" % tuple(line) for line in lines[:count]]


def shorten(line, length=600):
    return line if len(line) <= length else line[:length // 3] + " … " + line[-2 * length // 3:]


def examine(places, options, kind, folder, say):
    """One more run, whose log is read. Is all right, and the launches, those with Python frames and the
    sum of their frames."""
    ledger = os.path.join(folder, "ledger")
    data = os.path.join(folder, kind)
    os.environ["LEDGER"] = ledger
    try:
        run_once(places, options, kind, "mixed", data)
    finally:
        del os.environ["LEDGER"]
    fine, sums = True, (0, 0, 0)
    for name in sorted(name for name in os.listdir(data) if name.endswith(".xtr")):
        log = Log(places, os.path.join(data, name))
        launches, with_python, frames = count_launches(log)
        if not launches:
            continue
        sums = tuple(map(sum, zip(sums, (launches, with_python, frames))))
        say("  %s: Python %s, %d launches, %.2f %% with Python frames, %.1f frames each" % (
            name, log.meta.get("python.version", "-"), launches, 100 * with_python / launches,
            frames / max(1, with_python)))
        say("  " + ", ".join("%s %d" % (name, log.account.get(name, 0)) for name in (
            "stacks.hits", "stacks.walked", "stacks.audited", "stacks.mismatched",
            "stacks.transient", "stacks.truncated", "python.stacks", "python.unreadable",
            "python.unplaced", "python.unknown", "python.finalizing")))
        wrong, checked = check_marks(log, ledger)
        if checked:
            say("  %d of %d marks have the frames that Python says" % (
                checked - len(wrong), checked))
        fine = fine and not wrong and not log.account.get("stacks.mismatched")
        for text in wrong[:3]:
            say("  wrong: " + text)
    for mode in ("mixed", "only"):
        say("  the first lines, %s:" % mode)
        for line in folded(places, data, mode, options.lines):
            say("    " + shorten(line))
    return fine, sums


def compare(places, options, kind, folder, say):
    """Milliseconds of a step without recording, and what it adds by mode: the median of the runs of
    each."""
    run_once(places, options, kind, "bare", None)  # fills the caches of files and compiled kernels
    added = {mode: [] for mode in MODES}
    off = []
    for _ in range(options.pairs):
        for mode in MODES:
            off_ms, added_ms = run_once(places, options, kind, mode,
                                        os.path.join(folder, "timed"), is_switched=True)
            off.append(off_ms)
            added[mode].append(added_ms)
    say("%s: ms/step without recording %s; added %s" % (
        kind, " ".join("%.4f" % value for value in off),
        ", ".join("%s %s" % (mode, " ".join("%.4f" % value for value in added[mode]))
                  for mode in MODES)))
    return statistics.median(off), {mode: statistics.median(added[mode]) for mode in MODES}


def say_table(rows, steps, say):
    """All kinds in one table, for a document."""
    say("| kind | launches | with Python frames | frames each | not recorded, ms/step | native stacks add | "
        "with Python |\n| --- | --- | --- | --- | --- | --- | --- |")
    for kind, (launches, with_python, frames), times in rows:
        costs = "– | – | –"
        if times:
            off, added = times
            per_step = max(1, launches) / steps
            costs = "%.3f | %s" % (off, " | ".join(
                "%+.1f %%, %.0f ns a launch" % (100 * added[mode] / off, 1e6 * added[mode] / per_step)
                for mode in MODES))
        say("| %s | %s | %.1f %% | %.1f | %s |" % (
            kind, format(launches, ","), 100 * with_python / max(1, launches),
            frames / max(1, with_python), costs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND",
                        help="of " + ", ".join(KINDS))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each for what recording adds; 0: none (5)")
    parser.add_argument("--steps", type=int, default=600, help="steps of a run (600)")
    parser.add_argument("--lines", type=int, default=5, help="folded lines shown (5)")
    parser.add_argument("--build", help="a build directory")
    parser.add_argument("--simulate", action="store_true",
                        help="on the simulated GPU, to try this out: only driver runs there")
    parser.add_argument("-o", "--output", help="also write to this file")
    parser.add_argument("-k", "--keep", help="keep the traces in this directory")
    options = parser.parse_args()
    places = Places(options.build)
    output = open(options.output, "w") if options.output else None

    def say(text):
        print(text, flush=True)
        if output:
            output.write(text + "\n")
            output.flush()

    folder = options.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    fine, rows = True, []
    for kind in options.kinds:
        needed, there = subprocess.run(
            [options.python, places.work, kind, "--needs"], capture_output=True,
            text=True).stdout.split()
        if there != "yes":
            say("%s: skipped, no %s" % (kind, needed))
            continue
        try:
            times = compare(places, options, kind, folder, say) if options.pairs else None
            is_right, sums = examine(places, options, kind, folder, say)
            fine = is_right and fine
            rows.append((kind, sums, times))
        except RuntimeError as error:
            say("%s: failed: %s" % (kind, error))
            fine = False
        say("")
    say_table(rows, options.steps + 20, say)
    if not options.keep:
        shutil.rmtree(folder)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
