#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the table of lines with the folded stacks of traces, random logs and random recordings.

The charged line of each path and the columns are computed here as docs/REPORT.md defines them.
"""

import argparse
import collections
import csv
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "exports"))
import random_logs  # noqa: E402

COLUMNS = {"gpu-time": "gpu_time_ns", "gpu-idle": "gpu_idle_ns", "count": "count"}
PASSES = ("forward_ns", "backward_ns", "recompute_ns", "optimizer_ns")
OPTIMIZERS = re.compile(r"\((optimizer|adam|adamw|sgd)\.py:\d+\)$")
PLACE = re.compile(r"^(.*) \(([^()]*):(\d+)\)$")
GLUE = re.compile(r"\.<locals>\.(wrap|_wrap|decorate|_fn |inner)|Module\._(wrapped_)?call_impl \(")
NO_CODE = re.compile(r"\[|cu[A-Z]|cuda[A-Z]|start_thread$|clone3?$|\(|_start$|__libc_start")


def expect(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


class Frame:
    def __init__(self, text, files, leaf):
        place = PLACE.match(text)
        self.text = text
        self.function, self.row = text, (text, "")
        self.has_file = bool(place) and place[2] in files
        self.is_python = bool(place) and place[2].endswith((".py", ">"))
        if self.has_file:
            self.function, self.row = (place[1], place[2]), (place[2], place[3])
        self.is_leaf = leaf == "[GPU_Kernel]" + text
        self.is_own = False


def own_frames(frames, chosen):
    """Marks frames of own code, up to where a graph was launched or idle time has its cause."""
    found = False
    for frame in reversed(frames):
        if chosen(frame) and not frame.is_leaf:
            frame.is_own = found = True
        elif found and (frame.text == "[graph]" or frame.text.startswith("[idle: ")):
            break
    return found


class Path:
    def __init__(self, text, files, has_modules):
        texts = text.split(";")
        self.frames = [Frame(text, files, texts[-1]) for text in texts]
        if not own_frames(self.frames, lambda frame: frame.has_file) and has_modules:
            own_frames(self.frames, lambda frame: not (frame.is_python or
                                                         NO_CODE.match(frame.text)))
        self.own = [frame for frame in reversed(self.frames) if frame.is_own]

    def ways(self):
        """Each own frame, innermost first, with what leads from it to the work."""
        way, operator = [], ""
        for frame in reversed(self.frames):
            if frame.is_own:
                yield frame, (*way, operator)
                way.append(frame.function)
            elif frame.text.startswith(("at::_ops::", "[hlo ")):
                operator = frame.text
            elif frame.is_python and not GLUE.search(frame.text):
                way.append(frame.text)

    def of_pass(self):
        for frame in reversed(self.frames):
            if OPTIMIZERS.search(frame.text):
                return "optimizer_ns"
            if frame.text.startswith("[recompute]"):
                return "recompute_ns"
            if frame.text.startswith(("[backward", "torch::autograd::Engine::evaluate_function")):
                return "backward_ns"
        return "forward_ns"


class Functions:
    """How each function of own code is used, in GPU time."""

    def __init__(self, paths):
        self.ns = collections.Counter()
        self.lines = collections.defaultdict(collections.Counter)
        self.callers = collections.defaultdict(dict)
        self.ways = collections.defaultdict(collections.Counter)
        self.first = {}
        for path, ns in sorted(paths, key=lambda item: -item[1]):
            for (frame, way), caller in zip(path.ways(), (*path.own[1:], None)):
                if not ns:
                    continue
                self.ns[frame.function] += ns
                self.lines[frame.function][frame.row] += ns
                self.ways[frame.function][way] += ns
                self.first.setdefault(frame.function, way)
                if caller:
                    self.callers[frame.function][caller.function, caller.row] = caller.function

    def callers_of_wrapper(self, function, depth=0):
        ns, callers = self.ns[function], self.callers[function]
        if not ns or depth == 64 or ns - self.ways[function][self.first[function]] > ns // 20:
            return 0
        count = len(callers)
        if count == 1:
            count = self.callers_of_wrapper(next(iter(callers.values())), depth + 1)
        return count * (count > sum(line > ns // 20 for line in self.lines[function].values()))

    def charged(self, path):
        own = path.own
        while len(own) > 1 and self.callers_of_wrapper(own[0].function):
            own = own[1:]
        return own[0].row if own else ("(no own code)", "")


def folded(merge, logs, weight):
    text = subprocess.run([merge, "-q", "--no-recover", *logs, "--lines", "on", "--weight", weight,
                           "--folded", "-"], stdout=subprocess.PIPE, check=False).stdout.decode()
    return [(line.rpartition(" ")[0], int(line.rpartition(" ")[2])) for line in text.splitlines()]


def check(merge, logs, has_modules, scratch):
    """Returns the number of rows, and how many of them have wrappers."""
    table, database = f"{scratch}/csv", f"{scratch}/db"
    subprocess.run([merge, "-q", "--no-recover", *logs, "--lines", "on", "--csv", table,
                    "--sqlite", database], check=False)
    connection = sqlite3.connect(database)
    files = {file.rpartition("/")[2]
             for file, in connection.execute("SELECT DISTINCT file FROM path WHERE file > ''")}
    connection.close()
    wanted = collections.defaultdict(collections.Counter)
    functions = None
    for weight, column in COLUMNS.items():
        paths = [(Path(text, files, has_modules), ns) for text, ns in folded(merge, logs, weight)]
        functions = functions or Functions(paths)
        for path, value in paths:
            row = wanted[functions.charged(path)]
            row[column] += value
            if weight == "gpu-time":
                row[path.of_pass()] += value
    found, has_passes, via = collections.defaultdict(collections.Counter), False, 0
    with open(f"{table}/lines.csv", encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            name = line["file"].rpartition("/")[2] or line["function"]
            has_passes |= bool(line["backward_ns"])
            via += bool(line["via"])
            for column in (*COLUMNS.values(), *PASSES):
                found[name, line["line"]][column] += int(line[column] or 0)
    columns = [*COLUMNS.values(), *(PASSES if has_passes else ())]
    for row in sorted(found.keys() | wanted.keys()):
        pair = [{column: side[row][column] for column in columns} for side in (found, wanted)]
        expect(pair[0] == pair[1], logs, row, "found, wanted:", *pair)
    return len(found), via


def random_rows(seed):
    """Launches from random paths in a random graph of calls between lines."""
    chance = random.Random(seed)
    names = [f"f{n}" for n in range(chance.randint(3, 12))]
    files = {name: chance.choice(("/m/a.py", "/m/a.py", "/m/b.py", "/v/site-packages/lib.py",
                                  "/v/torch/optim/sgd.py")) for name in names}
    lines = {name: [10 * n + line for line in range(chance.choice((1, 1, 2, 4)))]
             for n, name in enumerate(names, 1)}
    for launch in range(1, chance.randint(5, 80)):
        path, at = [], 0
        while at < len(names) and (not path or chance.random() < 0.8):
            name = names[at]
            path.append(f"py:{files[name]}:{chance.choice(lines[name])}:{name}")
            at += chance.choice((0, 1, 1, 1, 2, 3))
        start = launch * 2000
        yield f"stack s{launch} {' '.join(path)} Launch"
        yield f"call {launch} 1 cuLaunchKernel s{launch} {start} 10"
        duration = chance.choice((0, 1, 40, 1000))
        yield f"kernel {launch} 1 {chance.choice('abc')} {start + 20} {duration}"


def check_orders(args, scratch):
    """Without debug information, more frames are own code than with that of one file."""
    logs = []
    for name in ("plain", "mixed"):
        program = getattr(args, name)
        subprocess.run([args.xtrace, "record", "--simulate", "-o", f"{scratch}/{name}", program],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        logs += map(str, pathlib.Path(scratch, name).glob("*.xtr"))
    for order in (logs, logs[::-1]):
        subprocess.run([args.merge, "-q", *order, "--csv", f"{scratch}/{order[0][-9:]}"],
                       check=True, timeout=60)
        with open(f"{scratch}/{order[0][-9:]}/lines.csv", encoding="utf-8", newline="") as lines:
            count = sum(int(row["count"]) for row in csv.DictReader(lines))
        expect(count == 204, order, "launches:", count)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("xtrace", "merge", "make-log", "make-ranks", "random-program", "inject",
                   "simgpu", "plain", "mixed"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("traces", nargs="*")
    args = parser.parse_args()
    total, with_wrappers = 0, 0

    def add(logs, has_modules):
        nonlocal total, with_wrappers
        with tempfile.TemporaryDirectory() as scratch:
            rows, via = check(args.merge, logs, has_modules, scratch)
        total, with_wrappers = total + rows, with_wrappers + via

    for trace in args.traces:
        add([trace], False)
    for seed in range(1, args.random + 1):
        with tempfile.TemporaryDirectory() as made:
            subprocess.run([args.make_log, "script", f"{made}/one.xtr"], check=True,
                           input="\n".join(random_rows(seed)).encode())
            add([f"{made}/one.xtr"], True)
        with tempfile.TemporaryDirectory() as made:
            add(random_logs.make(args, seed, made), True)
    if args.plain:
        with tempfile.TemporaryDirectory() as scratch:
            check_orders(args, scratch)
    print(f"{total} rows, {with_wrappers} of them with wrappers")


main()
