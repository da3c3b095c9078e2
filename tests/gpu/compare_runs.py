#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a program does bare and under xtrace.

A program runs several times bare and once per way of tracing. Its exit status and the lines on
stdout and stderr must be the same. Bare runs differ among themselves, too, in times and addresses.
So the bare runs decide which of these rules applies to a stream, in this order. The first one under
which all bare runs are equal is used for the traced run as well:

exact    every line is equal
values   addresses, temporary files and numbers with a unit of time or rate are masked, in all
         lines. In a line that differs between bare runs, the differing words and all fractions
         are masked. The number of lines and their order must be equal
order    all numbers are masked, and lines are sorted: threads or processes print in any order
common   all numbers are masked. Lines of every bare run must be in the traced run, and each line of
         the traced run must be in a bare run

If a traced run differs, nine more bare runs decide again, because rare values may show up in them.
Lines of stderr that begin with "xtrace: " or "To see it: " are the tracer's own. Nothing else is
removed. The exit status must be equal; `xtrace record` exits with 128+n if signal n ended the
program.

The comparison needs no GPU: tests/gpu/test_compare_runs.py tests it.
"""

import collections
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BARE_RUNS, MORE_BARE_RUNS = 3, 9
TRACED_FACTOR = 3  # a traced run may take this much longer than the limit of a bare run
OUTPUT_BYTES_MAX = 4 << 20
SHOWN = 4

OWN_LINES = re.compile(r"xtrace: |To see it: ")
RECORDED = re.compile(r"^xtrace: recorded (.*)$", re.MULTILINE)
NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
NUMBERS = re.compile(NUMBER)
ADDRESSES = re.compile(r"\b0x[0-9a-fA-F]+\b")
TEMPORARY = re.compile(r"/(?:tmp|dev/shm|var/tmp)/[^\s'\":,]+")
UNIT = re.compile(NUMBER + r"(?=\s*\(?(?:ns|us|µs|ms|msec|msecs|s|sec|secs|seconds|min|minutes|it/s|"
                  r"steps/s|[KMGT]i?B/s|[KMGT]?B/sec|[KMGT]?Flops?(?:/s)?|[KMGT]?FLOPS?|"
                  r"[KMGT]?flops?(?:/s)?|TOPS|fps|Hz|[KMGT]Hz|Mpix\w*/s|\w+/s|\w+/sec|%)\b)")
TIMED = re.compile(r"(?i)\b(time|elapsed|took|throughput|bandwidth|performance|latency|duration|"
                   r"speed|speedup|clock|free memory|used memory|pid)\b")
FRACTIONS = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?")

Outcome = collections.namedtuple("Outcome", "status stdout stderr seconds")
Program = collections.namedtuple("Program", "name command folder environment limit_s lock",
                                 defaults=(None, None, 30, None))


def mask_values(line):
    """Masks what is known to vary: addresses, temporary files, times and rates."""
    line = TEMPORARY.sub("<file>", ADDRESSES.sub("<address>", line))
    if TIMED.search(line):
        return NUMBERS.sub("<number>", line)
    return UNIT.sub("<number>", line)


def mask_numbers(line):
    return " ".join(NUMBERS.sub("<number>", mask_values(line)).split())


def words_that_vary(lines):
    """The places of the words that differ between versions of a line. None if there is no way."""
    versions = [line.split() for line in lines]
    if len({len(version) for version in versions}) > 1:
        return None
    places = {i for i, words in enumerate(zip(*versions)) if len(set(words)) > 1}
    return places if len(places) * 2 <= max(len(versions[0]), 2) else None


def mask_words(line, places):
    """Masks words by their place, and all fractions, which rarely are equal by more than chance."""
    return " ".join("<varies>" if i in places else FRACTIONS.sub("<number>", word)
                    for i, word in enumerate(line.split()))


class Values:
    """The rule "values", as the bare runs decide."""

    def __init__(self, bare):
        masked = [[mask_values(line) for line in run] for run in bare]
        self.masks, self.is_possible = [], len({len(run) for run in bare}) == 1
        for lines in zip(*masked):
            if len(set(lines)) == 1:
                self.masks.append(str)
                continue
            places = words_that_vary(lines)
            if places is not None:
                self.masks.append(lambda line, places=places: mask_words(line, places))
                continue
            self.masks.append(mask_numbers)
            if len({mask_numbers(line) for line in lines}) > 1:
                self.is_possible = False

    def lines(self, run):
        masks = self.masks + [str] * (len(run) - len(self.masks))
        return [mask(mask_values(line)) for mask, line in zip(masks, run)]


def sorted_lines(run):
    return sorted(mask_numbers(line) for line in run)


def common_difference(bare, run):
    """What the traced run lacks, and what no bare run has."""
    sets = [{mask_numbers(line) for line in lines} for lines in bare]
    traced = {mask_numbers(line) for line in run}
    return (["- " + line for line in sorted(set.intersection(*sets) - traced)] +
            ["+ " + line for line in sorted(traced - set.union(*sets))])


def line_difference(expected, found):
    """The first lines that differ, as in a diff."""
    shown = []
    for i in range(max(len(expected), len(found))):
        before = expected[i] if i < len(expected) else None
        after = found[i] if i < len(found) else None
        if before != after:
            shown += ["- " + before] if before is not None else []
            shown += ["+ " + after] if after is not None else []
    return shown


def compare_stream(bare, traced):
    """Compares lists of lines. Returns the rule that the bare runs need, and the difference."""
    values = Values(bare)
    rules = [("exact", list), ("order", sorted_lines)]
    if values.is_possible:
        rules.insert(1, ("values", values.lines))
    for name, rule in rules:
        expected = rule(bare[0])
        if all(rule(run) == expected for run in bare):
            return name, line_difference(expected, rule(traced))
    return "common", common_difference(bare, traced)


def own_lines_removed(text):
    return [line for line in text.splitlines() if not OWN_LINES.match(line)]


def traced_status(status):
    """The exit status of `xtrace record` for a program that ends like this."""
    return 128 - status if isinstance(status, int) and status < 0 else status


def compare(bare, traced):
    """Returns the rules by stream and the differences of one traced run, as lines of text."""
    rules, differences = {}, []
    statuses = {traced_status(outcome.status) for outcome in bare}
    if traced.status not in statuses:
        differences.append("status %s, bare %s" % (
            traced.status, " or ".join(sorted({str(run.status) for run in bare}))))
    for stream in ("stdout", "stderr"):
        rule, lines = compare_stream(
            [getattr(outcome, stream).splitlines() for outcome in bare],
            own_lines_removed(getattr(traced, stream)))
        rules[stream] = rule
        if lines:
            differences += ["%s (%s), %d lines differ:" % (stream, rule, len(lines))]
            differences += ["  " + line[:200] for line in lines[:SHOWN]]
    return rules, differences


def run_once(program, command, limit_s):
    """Runs a command in its own session, and ends what is left of it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=program.folder,
                env=program.environment, start_new_session=True)
        except OSError as error:
            return Outcome("cannot start: %s" % error, "", "", 0)
        try:
            status = process.wait(timeout=max(limit_s, 0.1))
        except subprocess.TimeoutExpired:
            status = "timeout"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        seconds, texts = time.monotonic() - begin, []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(OUTPUT_BYTES_MAX).decode("utf-8", "replace"))
    return Outcome(status, texts[0], texts[1], round(seconds, 2))


class Comparison:
    """Runs programs bare and traced, several at once, until a deadline."""

    def __init__(self, xtrace, modes, total_s, jobs, say=print, keep=None):
        self.xtrace, self.modes, self.jobs = xtrace, modes, jobs
        self.deadline, self.lock = time.monotonic() + total_s, threading.Lock()
        self.say, self.keep, self.scratch = say, keep, tempfile.mkdtemp(prefix="compare")
        self.locks = collections.defaultdict(threading.Lock)

    def left(self):
        return self.deadline - time.monotonic()

    def bare(self, program, count):
        """Runs a program bare, until a run reaches its limit. None if the time is over."""
        outcomes = []
        while len(outcomes) < count and "timeout" not in [run.status for run in outcomes]:
            outcomes.append(run_once(program, program.command,
                                     min(program.limit_s, self.left())))
            if self.left() <= 0:
                return None
        return outcomes

    def traced(self, program, mode):
        folder = tempfile.mkdtemp(dir=self.scratch)
        trace = os.path.join(folder, "trace")
        command = [self.xtrace, "record", *self.modes[mode], "-o", trace, "--", *program.command]
        outcome = run_once(program, command,
                           min(program.limit_s * TRACED_FACTOR, self.left()))
        if self.keep and os.path.isdir(trace):
            name = re.sub(r"\W+", "-", "%s %s" % (program.name, mode))
            shutil.move(trace, os.path.join(self.keep, name))
        shutil.rmtree(folder, ignore_errors=True)
        return outcome if self.left() > 0 else None

    def examine(self, program):
        """Returns the row of a program."""
        row = {"name": program.name, "verdict": "not reached", "modes": {}}
        bare = self.bare(program, BARE_RUNS) if self.left() > 0 else None
        if bare is None:
            return row
        row.update(statuses=[run.status for run in bare], seconds=[run.seconds for run in bare],
                   lines=[len(bare[0].stdout.splitlines()), len(bare[0].stderr.splitlines())],
                   tail=(bare[0].stdout + bare[0].stderr).strip().splitlines()[-2:])
        if "timeout" in row["statuses"]:
            return dict(row, verdict="too slow bare")
        if any(str(status).startswith("cannot start") for status in row["statuses"]):
            return dict(row, verdict="does not start bare")
        for mode in self.modes:
            traced = self.traced(program, mode)
            if traced is None:
                return row
            rules, differences = compare(bare, traced)
            if differences and len(bare) == BARE_RUNS:
                more = self.bare(program, MORE_BARE_RUNS)
                if more is None:
                    return row
                bare += [run for run in more if run.status != "timeout"]
                rules, differences = compare(bare, traced)
            recorded = RECORDED.findall(traced.stderr)
            row["modes"][mode] = {
                "status": traced.status, "seconds": traced.seconds, "rules": rules,
                "recorded": recorded[0] if recorded else "nothing", "bare_runs": len(bare),
                "differences": differences}
            if differences:
                row["modes"][mode]["stderr_end"] = traced.stderr[-2000:]
        is_different = any(mode["differences"] for mode in row["modes"].values())
        fails = all(status != 0 for status in row["statuses"])
        return dict(row, verdict="DIFFERENT" if is_different else
                    "same, fails bare" if fails else "same")

    def examine_safely(self, program):
        """A fault of this script must not lose the results of other programs."""
        try:
            return self.examine(program)
        except Exception:  # noqa: see above
            return {"name": program.name, "verdict": "script failed", "modes": {},
                    "fault": traceback.format_exc()}

    def examine_group(self, programs):
        """Programs of one folder run one after the other, because they may write the same files."""
        rows = []
        for program in programs:
            with self.locks[program.lock] if program.lock else threading.Lock():
                row = self.examine_safely(program)
            with self.lock:
                rows.append(row)
                self.say("%-44s %-18s %s" % (row["name"][:44], row["verdict"], seconds_of(row)))
                for name, mode in row["modes"].items():
                    for line in mode["differences"]:
                        self.say("    %s: %s" % (name, line))
        return rows

    def run(self, groups):
        """Runs groups of programs, the first ones first. Returns their rows."""
        try:
            with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
                return [row for rows in pool.map(self.examine_group, groups) for row in rows]
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)


def seconds_of(row):
    if "seconds" not in row:
        return ""
    return "bare %s s%s" % ("/".join("%.1f" % value for value in row["seconds"]), "".join(
        ", %s %.1f s (%s)" % (name, mode["seconds"], mode["recorded"])
        for name, mode in row["modes"].items()))


def library_path(*more):
    """LD_LIBRARY_PATH with the folders of the CUDA toolkit and of its Python packages."""
    import sysconfig
    folders = list(more)
    for root in ("/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/local/cuda/nvvm/lib64"):
        folders.append(root)
    packages = os.path.join(sysconfig.get_paths()["purelib"], "nvidia")
    if os.path.isdir(packages):
        folders += sorted(os.path.join(packages, name, "lib") for name in os.listdir(packages))
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return ":".join(folder for folder in folders if folder and os.path.isdir(folder))


GPU_NAMES = """
import ctypes
cuda, count, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        cuda.cuDeviceGet(ctypes.byref(device), number)
        cuda.cuDeviceGetName(name, 256, device)
        print(name.value.decode())
"""


def gpu_names():
    """The names of the GPUs, by the driver. Another process asks, so that this one has no CUDA."""
    return subprocess.run([sys.executable, "-c", GPU_NAMES], capture_output=True, text=True,
                          check=False).stdout.splitlines()


def summarise(rows, modes, more, say, path):
    """Prints the counts and the differences, and writes everything. Returns the exit status."""
    counts = collections.Counter(row["verdict"] for row in rows)
    rules = collections.Counter(
        rule for row in rows for mode in row["modes"].values() for rule in mode["rules"].values())
    say("\n| verdict | programs |\n| --- | --- |")
    for verdict, count in counts.most_common():
        say("| %s | %d |" % (verdict, count))
    say("rules: " + ", ".join("%s %d" % pair for pair in rules.most_common()))
    for verdict in counts:
        if verdict not in ("same", "DIFFERENT"):
            for row in rows:
                if row["verdict"] == verdict:
                    say("%s: %s: %s" % (verdict, row["name"], " / ".join(
                        ["status %s" % row["statuses"][0]] + row["tail"])[:160]
                        if "statuses" in row else row.get("fault", "")))
    for row in rows:
        for name, mode in row["modes"].items():
            if mode["differences"]:
                say("DIFFERENT: %s, %s: %s" % (row["name"], name, mode["differences"][0]))
    for row in rows:
        for name, mode in row["modes"].items():
            if row["verdict"] == "same" and " 0 lost" not in mode["recorded"]:
                say("not a complete recording: %s, %s: %s" % (row["name"], name, mode["recorded"]))
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(more, modes=modes, counts=counts, rules=rules, rows=rows), file,
                      indent=1)
    return 1 if counts["DIFFERENT"] or counts["script failed"] else 0
