# SPDX-License-Identifier: Apache-2.0
"""Reads CPU logs through xtrace-dump and computes the figures of tests/gpu/cpu.py."""

import array
import bisect
import collections
import glob
import json
import math
import os
import random
import re
import statistics
import subprocess

PROGRAM_LIMIT_S = 100
CONFIDENCE = 0.999
DRAWS = 20000
BLOCK = 10  # observations: 0.1 s, longer than a turn of the programs
RUNNING = (1, 2, 6)  # states whose weight is CPU time
NO_PYTHON = 2  # flag: the frames changed while they were read
EXACT_NS = 10000  # the time of a sample: PYTHON_MOMENT_NS in src/sampler/python_frames.h, halved
MARKERS = ENTER, CALL, RETURNED, LEAVE = range(4)

# One-sided 95 % quantiles of Student's t, for 1 to 30 degrees of freedom.
T95 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
       1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
       1.703, 1.701, 1.699, 1.697)


class Failed(Exception):
    """A program failed. The text gives the reason."""


def run(command, limit=0, seconds=PROGRAM_LIMIT_S, cwd=None, **variables):
    """Returns the output. limit: the largest exit status that is a success."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd,
                              timeout=max(1, seconds), env=dict(os.environ, **variables))
    except (subprocess.TimeoutExpired, OSError) as error:
        raise Failed(str(error)) from error
    if not 0 <= done.returncode <= limit:
        raise Failed("%s gives %d: %s" % (" ".join(command), done.returncode,
                                          (done.stdout + done.stderr).strip()[-1000:]))
    return done.stdout


class Log:
    """The rows of a log by kind, from the independent reader."""

    def __init__(self, places, path, *kinds):
        self.path, self.tables = path, collections.defaultdict(list)
        options = [text for kind in kinds for text in ("--kind", kind)]
        for line in run([places.dump, "--format", "json", *options, path]).splitlines():
            row = json.loads(line)
            if row.get("record") == "row":
                self.tables[row["kind"]].append(row)
        self.meta = {row["key"]: row["value"] for row in self.tables["META"]}
        self.account = {row["name"]: row["value"] for row in self.tables["ACCOUNT"]}

    def observations(self):
        """(time, row, weight) for each observation, in order of time."""
        found = []
        for row in self.tables["CPU_SAMPLE"]:
            for i in range(row["count"]):
                time_ns = row["time_ns"] + row["span_ns"] * i // max(1, row["count"] - 1)
                found.append((time_ns, row, row["weight_ns"] / row["count"]))
        return sorted(found, key=lambda one: one[0])


def cpu_logs(folder):
    return sorted(glob.glob(os.path.join(folder, "*.cpu.xtr")))


def log_of(places, folder, text):
    """The CPU log of the process whose command line contains the text."""
    for path in cpu_logs(folder):
        meta = Log(places, path, "META").meta
        if text in meta.get("process.cmdline", "") and "xtrace" not in meta.get(
                "process.cmdline", "").split(" ")[0].rsplit("/", 1)[-1]:
            return Log(places, path)
    raise Failed("no CPU log of %s in %s" % (text, folder))


def bound_95(ratios):
    """The geometric mean of ratios, and its one-sided 95 % bounds, minus 1."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.mean(logs)
    half = T95[min(len(logs) - 1, len(T95)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return tuple(math.exp(value) - 1 for value in (mean, mean - half, mean + half))


def block_bootstrap(pairs, seed):
    """An interval for sum(first) / sum(both) of (first, both), drawing blocks of neighbours."""
    draw, count = random.Random(seed), len(pairs)
    firsts, wholes = [0.0], [0.0]
    for first, whole in pairs + pairs[:BLOCK]:  # blocks wrap around at the end
        firsts.append(firsts[-1] + first)
        wholes.append(wholes[-1] + whole)
    blocks = [(firsts[i + BLOCK] - firsts[i], wholes[i + BLOCK] - wholes[i]) for i in range(count)]
    shares = []
    for _ in range(DRAWS):
        drawn = draw.choices(blocks, k=max(1, count // BLOCK))
        shares.append(sum(block[0] for block in drawn) / sum(block[1] for block in drawn))
    shares.sort()
    outside = (1 - CONFIDENCE) / 2
    return shares[int(outside * DRAWS)], shares[min(DRAWS - 1, int((1 - outside) * DRAWS))]


class Sides:
    """Tells the function of a sample in sampled_share.c or .py."""

    def __init__(self, log, report):
        texts = {row["id"]: row["text"] for row in log.tables["STRING"]}
        self.frames = {row["id"]: texts.get(row["name"], "") for row in log.tables["PYTHON_FRAME"]}
        self.stacks = {row["id"]: row for row in log.tables["STACK"]}
        self.report = report

    def of(self, row):
        stack = self.stacks.get(row["stack"], {"frames": [], "python": []})
        for number in stack["python"]:
            for side in ("first", "second"):
                if self.frames[number] == side + "_work":
                    return side
        for _, address in stack["frames"]:
            for side in ("first", "second") if "first" in self.report else ():
                start, stop = self.report[side]
                if start <= address <= stop:
                    return side
        return None


def sampled_share(log, report):
    """The sampled share, (first, both) of each observation, and the share of unknown weight."""
    sides, pairs, unknown = Sides(log, report), [], 0.0
    for _, row, weight in log.observations():
        side = sides.of(row) if row["state"] in RUNNING else None
        if side:
            pairs.append((weight if side == "first" else 0.0, weight))
        elif row["state"] in RUNNING:
            unknown += weight
    whole = sum(pair[1] for pair in pairs)
    if not whole:
        raise Failed("no sample is in one of the functions")
    return sum(pair[0] for pair in pairs) / whole, pairs, unknown / (whole + unknown)


class Markers:
    """The functions of a thread over time, from its markers; see bench/sampled_frames.py."""

    def __init__(self, path):
        values = array.array("Q")
        with open(path, "rb") as file:
            data = file.read()
        values.frombytes(data[:len(data) // 16 * 16])
        self.times, self.codes, self.stacks, stack = values[0::2], values[1::2], [], ()
        for code in self.codes:
            if code % 4 == ENTER:
                stack += (code // 4,)
            self.stacks.append(stack)
            if code % 4 == LEAVE:
                stack = stack[:-1]

    def at(self, time_ns):
        """The functions, outermost first, or None if they are uncertain."""
        i = bisect.bisect_right(self.times, time_ns) - 1
        if i < 0 or i + 1 >= len(self.times) or self.codes[i] % 4 not in (ENTER, RETURNED):
            return None
        return self.stacks[i]

    def around(self, time_ns):
        """All that it can be, because the time of a sample is exact to EXACT_NS."""
        first = bisect.bisect_right(self.times, time_ns - EXACT_NS) - 1
        last = bisect.bisect_right(self.times, time_ns + EXACT_NS)
        return self.stacks[max(first, 0):last]


def compare_frames(log, markers):
    """Counts observations with right, wrong and unknown Python frames.

    If the frames changed while they were read, only the outer ones are known. For a row of a
    running thread, the log has the times of the first and the last observation.
    """
    texts = {row["id"]: row["text"] for row in log.tables["STRING"]}
    frames = {row["id"]: texts.get(row["name"], "") for row in log.tables["PYTHON_FRAME"]}
    stacks = {row["id"]: row["python"] for row in log.tables["STACK"]}
    tids = {row["id"]: row["tid"] for row in log.tables["THREAD"]}
    counts = collections.Counter()
    for time_ns, row, _ in log.observations():
        mine = markers.get(tids.get(row["thread"]))
        is_exact = row["state"] not in RUNNING or time_ns in (
            row["time_ns"], row["time_ns"] + row["span_ns"])
        if not mine or not is_exact:
            continue
        found = mine.at(time_ns)
        if not found:
            counts["uncertain"] += 1
            continue
        names = [frames[number] for number in stacks.get(row["stack"], ())]
        functions = tuple(int(name.rsplit("_", 1)[1]) for name in reversed(names)
                          if re.search(r"function_\d+$", name))
        if not names:
            counts["changed" if row["flags"] & NO_PYTHON else "none"] += 1
        elif row["flags"] & NO_PYTHON and functions == found[:len(functions)]:
            counts["outer"] += 1
        elif functions == found:
            counts["right"] += 1
        elif functions in mine.around(time_ns):
            counts["within exactness"] += 1
        else:
            counts["wrong"] += 1
    return counts


def log_figures(places, folder):
    """Sums over the CPU logs of a recording."""
    sums = collections.Counter()
    for path in cpu_logs(folder):
        log = Log(places, path, "ACCOUNT", "META")
        sums["observations"] += log.account.get("cpu.observations", 0)
        sums["sampler_ns"] += log.account.get("cpu.sampler.cpu_ns", 0)
        sums["lost"] += sum(value for name, value in log.account.items() if ".lost" in name)
        sums["bytes"] += os.path.getsize(path)
        for line in run([places.dump, "--summary", path]).splitlines():
            words = line.split()
            if words and words[0] == "CPU_SAMPLE":
                sums["rows"] += int(words[2])
                sums["sample_bytes"] += int(words[3])
            elif words and words[0] in ("STACK", "PYTHON_FRAME", "STRING", "MODULE", "SYMBOL",
                                        "SOURCE", "COMPILED"):
                sums["stack_bytes"] += int(words[3])
        sums["processes"] += 1
    return sums
