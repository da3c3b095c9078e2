#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks Python frames on a real GPU: how many launches have them, their correctness and their cost.

Runs each kind of python_work.py. Prints for each kind:
- what recording adds to a step, without and with Python frames
- the percentage of launches with Python frames, and the Python counters of the log
- the first lines of the folded stacks

At the end it prints the tables and paths of docs/internals/PYTHON.md. Recording is switched off
and on within one process, because separate processes vary more. At NVTX marks, the Python frames
must be those of sys._getframe().

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
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
from places import Places, add_xtrace_option

WORK = os.path.join(HERE, "..", "..", "samples", "python_work.py")
KINDS = {
    "driver": "launches through the driver by ctypes, under recursion",
    "eager": "eight blocks of layer norm and linear layers, trained",
    "compile": "the same, `torch.compile`, with Triton's kernels",
    "graph": "the same in a CUDA graph, replayed",
    "loader": "the same with a DataLoader of two worker processes",
    "autograd": "a `Function` of its own, forward and backward",
    "cupy": "elementwise kernels and a sum",
    "jax": "a jitted product and an eager sum",
}
LAUNCHES = (1, 2)
MODES = ("off", "mixed")
WARM_UP = 20  # steps

# Result of a kind. times: lists by run of (ms/step without recording, added by mode), or None.
Result = collections.namedtuple("Result", "kind launches with_python frames marks right lines times")


def run_once(places, options, kind, mode, folder, is_switched=False):
    """Milliseconds per step, and those that recording adds if it is switched."""
    command = [options.python, WORK, kind, "--steps", str(options.steps),
               "--warm-up", str(WARM_UP)]
    environment = dict(os.environ)
    if mode == "bare" and options.simulate:
        environment["LD_LIBRARY_PATH"] = places.simulator
    if mode != "bare":
        shutil.rmtree(folder, ignore_errors=True)
        switching = ["--capture-range", "cudaProfilerApi"] if is_switched else []
        command = [places.xtrace, "record", *(["--simulate"] if options.simulate else []),
                   "--python", "off" if mode == "off" else "on", *switching, "-o", folder, "--", *command,
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
    """Launches, launches with Python frames, and the sum of these frames."""
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
    """Marks with other Python frames than the program noted, and all marks."""
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
        # The inner frames make the mark.
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


def abridge(line):
    """Shortens a path for a document: omits the middle of long names and paths."""
    path, weight = line.rsplit(" ", 1)
    frames = [frame if len(frame) <= 46 else frame[:22] + "…" + frame[-23:] for frame in path.split(";")]
    if len(frames) > 8:
        frames[3:-4] = ["…"]
    return "%s %s" % (";".join(frames), weight)


def examine(places, options, kind, folder, say):
    """Runs the kind once more and checks its log. Returns the result and whether it is right."""
    ledger = os.path.join(folder, "ledger")
    data = os.path.join(folder, kind)
    os.environ["LEDGER"] = ledger
    try:
        run_once(places, options, kind, "mixed", data)
    finally:
        del os.environ["LEDGER"]
    fine, sums = True, (0, 0, 0, 0, 0)
    for name in sorted(name for name in os.listdir(data) if name.endswith(".xtr")):
        log = Log(places, os.path.join(data, name))
        launches, with_python, frames = count_launches(log)
        if not launches:
            continue
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
        sums = tuple(map(sum, zip(sums, (launches, with_python, frames, checked,
                                         checked - len(wrong)))))
        fine = fine and not wrong and not log.account.get("stacks.mismatched")
        for text in wrong[:3]:
            say("  wrong: " + text)
    lines = {mode: folded(places, data, mode, options.lines) for mode in ("mixed", "only")}
    for mode in lines:
        say("  the first lines, %s:" % mode)
        for line in lines[mode]:
            say("    " + shorten(line))
    return fine, Result(kind, *sums, lines["only"], None)


def compare(places, options, kind, folder, say):
    """Milliseconds per step without recording, and what each mode adds, for each run."""
    run_once(places, options, kind, "bare", None)  # warms the caches of files and compiled kernels
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
    return off, added


def cost(added_ms, off_ms, launches_per_step):
    """"+1.7 %, 140 ns [40 150]": of a step, and of a launch with the least and the most."""
    middle, least, most = (1e6 * value / launches_per_step for value in (
        statistics.median(added_ms), min(added_ms), max(added_ms)))
    text = "%+.1f %%, %s ns [%s %s]" % (100 * statistics.median(added_ms) / off_ms, *(
        format(round(value), ",") for value in (middle, least, most)))
    return text.replace("-", "−")


def say_document(results, steps, say):
    """The tables of docs/internals/PYTHON.md and the paths below them."""
    say("| kind | what | launches | with Python frames | frames each | marks as Python says |\n"
        "| --- | --- | --- | --- | --- | --- |")
    for one in results:
        say("| %s | %s | %s | %.1f %% | %.1f | %s |" % (
            one.kind, KINDS[one.kind], format(one.launches, ","),
            100 * one.with_python / max(1, one.launches), one.frames / max(1, one.with_python),
            "%s of %s" % (format(one.right, ","), format(one.marks, ",")) if one.marks else "–"))
    if any(one.times for one in results):
        say("\n| kind | not recorded, ms/step | native stacks add | with Python |\n"
            "| --- | --- | --- | --- |")
    for one in results:
        if one.times:
            off, added = statistics.median(one.times[0]), one.times[1]
            say("| %s | %.3f | %s |" % (one.kind, off, " | ".join(
                cost(added[mode], off, max(1, one.launches) / steps) for mode in MODES)))
    for one in results:
        say("\n%s:\n" % one.kind)
        for line in one.lines:
            say("    " + abridge(line))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND",
                        help="of " + ", ".join(KINDS))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each kind that measure the cost; 0: none (5)")
    parser.add_argument("--steps", type=int, default=600, help="steps per run (600)")
    parser.add_argument("--lines", type=int, default=5, help="folded lines shown (5)")
    add_xtrace_option(parser)
    parser.add_argument("--simulate", action="store_true",
                        help="use the simulated GPU, which runs only the kind driver")
    parser.add_argument("-o", "--output", help="also write to this file")
    parser.add_argument("-k", "--keep", help="keep the traces in this directory")
    options = parser.parse_args()
    places = Places(options.xtrace)
    output = open(options.output, "w") if options.output else None

    def say(text):
        print(text, flush=True)
        if output:
            output.write(text + "\n")
            output.flush()

    folder = options.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    fine, results = True, []
    for kind in options.kinds:
        needed, there = subprocess.run(
            [options.python, WORK, kind, "--needs"], capture_output=True,
            text=True).stdout.split()
        if there != "yes":
            say("%s: skipped, no %s" % (kind, needed))
            continue
        try:
            times = compare(places, options, kind, folder, say) if options.pairs else None
            is_right, result = examine(places, options, kind, folder, say)
            fine = is_right and fine
            results.append(result._replace(times=times))
        except RuntimeError as error:
            say("%s: failed: %s" % (kind, error))
            fine = False
        say("")
    say_document(results, options.steps + WARM_UP, say)
    if not options.keep:
        shutil.rmtree(folder)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
