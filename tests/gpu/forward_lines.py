#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks where the GPU time of training is shown, on a real GPU, and what recording costs.

Runs each kind of training.py:
- alternately bare, recorded without and recorded with the state of autograd, for the cost
- once more with the truth: the forward line of each autograd node, from PyTorch's anomaly mode.
  Each backward kernel is compared with the node that launched it.
- once under torch.profiler, not recorded. The forward function of each backward kernel in a step is
  compared with the one at the other end of the profiler's link. This checks less: both read the
  same numbers of PyTorch, and the profiler states no line.

Prints a Markdown table. Exit status: 0 success, 1 a program failed or a line that is called exact
is wrong, 2 usage.
"""

import argparse
import bisect
import collections
import glob
import json
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
from places import Places, add_xtrace_option

WORK = os.path.join(HERE, "training.py")
KINDS = ("transformer", "resnet", "gpt2", "lightning", "threads", "functions", "checkpoint",
         "double", "same_thread", "ddp", "graph", "compiled_autograd", "compile", "compile_reduce",
         "compile_max", "jax")
PROFILED = ("transformer", "resnet", "gpt2", "functions", "checkpoint", "double", "same_thread")
MODES = ("bare", "off", "on")  # not recorded; recorded with XTRACE_AUTOGRAD=off and =on
TIMEOUT_S = 120
FRAME = re.compile(r"^(.*) \((.+):(\d+)\)$")
PROFILER_FRAME = re.compile(r"^(.+)\(\d+\): (.+)$")
EXACT, INFERRED, UNKNOWN = "[backward] ", "[backward~] ", "[backward?] "
RECOMPUTE = "[recompute]"
WRONG_SHOWN = 3

# Part of a path up to a label: its Python frames as (file, line), and the label that follows.
Part = collections.namedtuple("Part", "frames label")

# A kernel, copy or memset that an autograd node launched.
Work = collections.namedtuple("Work", "pid tid sequence path")


def run(command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S,
                          env=dict(os.environ, **variables))
    if done.returncode:
        raise RuntimeError("%s gives %d: %s" % (
            " ".join(command), done.returncode, (done.stdout + done.stderr).strip()[-2000:]))
    return done.stdout


def run_kind(places, options, kind, mode, folder, *more):
    """Returns the milliseconds of a step. folder: of the recording, which is replaced."""
    command = [options.python, WORK, kind, "--steps", str(options.steps), *more]
    if mode != "bare":
        shutil.rmtree(folder, ignore_errors=True)
        command = [places.xtrace, "record", "-o", folder, "--", *command]
    # Compiled code from a run without recording would lack what recording asks PyTorch to add.
    cache = os.path.join(options.scratch, "cache-" + ("bare" if mode == "bare" else "recorded"))
    found = re.search(r"([0-9.]+) ms/step", run(command, XTRACE_AUTOGRAD=mode,
                                               TORCHINDUCTOR_CACHE_DIR=cache))
    if not found:
        raise RuntimeError("%s prints no time" % " ".join(command))
    return float(found.group(1))


def frame_names(database):
    """Returns a function from the id of a path to its frames, outermost first."""
    rows = {row[0]: row[1:] for row in database.execute(
        "SELECT p.id, p.parent_id, n.text FROM path p LEFT JOIN name n ON n.id = p.name_id")}

    def frames_of(path):
        frames = []
        while path in rows:
            parent, name = rows[path]
            frames.append(name or "")
            path = parent if parent != path else None
        return frames[::-1]
    return frames_of


def rows_of(places, log, *kinds):
    """The rows of a log, by kind."""
    rows = collections.defaultdict(list)
    options = [text for kind in kinds for text in ("--kind", kind)]
    for line in run([places.dump, "--format", "json", *options, log]).splitlines():
        row = json.loads(line)
        if row.get("record") == "row":
            rows[row["kind"]].append(row)
    return rows


def nodes_of_calls(places, log):
    """By correlation: the thread and the sequence number of the node that launched."""
    rows = rows_of(places, log, "CALL", "AUTOGRAD", "THREAD")
    states = {row["id"]: row for row in rows["AUTOGRAD"]}
    tids = {row["id"]: row["tid"] for row in rows["THREAD"]}
    calls = [row for row in rows["CALL"] if row["autograd"] in states]
    # PyTorch numbers threads. Each call tells the number of its own thread.
    numbered = {states[row["autograd"]]["thread"]: tids.get(row["thread"]) for row in calls}
    nodes = {}
    for row in calls:
        state = states[row["autograd"]]
        if state["node_type"] and state["node_thread"]:
            nodes[row["correlation"]] = (numbered.get(state["node_thread"]),
                                         row["node_sequence"] - 1)
    return nodes


def events_of(places, folder, scratch):
    path = os.path.join(scratch, "events.sqlite")
    if os.path.exists(path):
        os.remove(path)
    run([places.merge, "-q", "--full-names", "--sqlite", path, folder])
    return sqlite3.connect(path)


def work_of_nodes(places, folder, scratch):
    """Yields all Work of a recording."""
    database = events_of(places, folder, scratch)
    frames_of, known = frame_names(database), {}
    for process, pid, log in database.execute("SELECT id, pid, log FROM process").fetchall():
        nodes = nodes_of_calls(places, log)
        for correlation, node in database.execute(
                "SELECT correlation, path_id FROM gpu_work WHERE process_id = ? AND "
                "graph_node IS NULL", (process,)):
            if correlation in nodes:
                if node not in known:
                    known[node] = frames_of(node)
                yield Work(pid, *nodes[correlation], known[node])
    database.close()


def parts_of(path):
    """Divides a path at its labels. Frames behind the last label are the node's own."""
    parts, frames = [], []
    for name in path:
        found = FRAME.match(name)
        if name.startswith((EXACT, INFERRED, UNKNOWN)) or name == RECOMPUTE:
            parts.append(Part(frames, name))
            frames = []
        elif found:
            frames.append((found.group(2), int(found.group(3))))
    return parts


def load_truth(path):
    truth = {}
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                row = json.loads(line)
                row["frames"] = [[tuple(frame) for frame in level] for level in row["frames"]]
                truth[row["pid"], row["tid"], row["sequence"]] = row
    return truth


def ends_with(frames, end):
    return not end or frames[-len(end):] == end


def fault_of(parts, row):
    """Why the path is not the one of the node, or None. Inferred places may be callers."""
    name = parts[-1].label.split("] ", 1)[1]
    if not row["name"].endswith(name):
        return "the node is %s" % row["name"]
    levels = row["frames"]
    if parts[-1].label.startswith(INFERRED):  # a place outside the last levels, possibly
        levels = levels[:len(parts)]
    levels = levels[::-1]
    # The frames of the first part are whole. Those of others begin inside a node or a checkpoint.
    for i, part in enumerate(parts[::-1]):
        if part.label == RECOMPUTE or part.label.startswith(UNKNOWN):
            return None  # it begins inside the checkpoint, or claims no line
        is_whole = i == len(parts) - 1
        true = levels[i] if i < len(levels) else []
        if part.label.startswith(INFERRED):
            if is_whole and part.frames != true[:len(part.frames)]:
                return "inferred: the line is %s" % (true[-1:],)
        elif not (part.frames == true if is_whole else ends_with(true, part.frames)):
            return "the line is %s" % (true[-1:],)
    return None


Comparison = collections.namedtuple("Comparison", "right wrong near far none unknown faults")


def compare(works, truth):
    """Counts exact paths that are right and wrong, inferred ones that are near the line and not,
    those that name no line, and those without a truth.
    """
    counts, faults = collections.Counter(), []
    forward_threads = {key[:2] for key in truth}
    for work in works:
        parts = parts_of(work.path)
        # The truth does not tell which of the engine's threads created a node.
        tid = work.tid if (work.pid, work.tid) in forward_threads else None
        row = truth.get((work.pid, tid, work.sequence))
        if not parts or parts[-1].label == RECOMPUTE or not row:
            counts["unknown"] += 1
            continue
        if parts[-1].label.startswith(UNKNOWN):
            counts["none"] += 1
            continue
        fault = fault_of(parts, row)
        is_exact = parts[-1].label.startswith(EXACT)
        counts[{(True, True): "right", (True, False): "wrong", (False, True): "near",
                (False, False): "far"}[is_exact, fault is None]] += 1
        if fault and len(faults) < WRONG_SHOWN:
            faults.append("%s: %s" % (";".join(work.path[-12:]), fault))
    return Comparison(*(counts[name] for name in Comparison._fields[:-1]), faults)


class Spans:
    """Nested events of one thread in a trace of torch.profiler."""

    def __init__(self, events):
        self.events = sorted(events, key=lambda event: (event["ts"], -event["dur"]))
        self.starts = [event["ts"] for event in self.events]
        self.parents, around = [], []
        for i, event in enumerate(self.events):
            while around and self.end(around[-1]) <= event["ts"]:
                around.pop()
            self.parents.append(around[-1] if around else -1)
            around.append(i)

    def end(self, i):
        return self.events[i]["ts"] + self.events[i]["dur"]

    def around(self, time):
        """Yields the events that contain the time, innermost first."""
        i = bisect.bisect_right(self.starts, time) - 1
        while i >= 0:
            if self.end(i) >= time:
                yield self.events[i]
            i = self.parents[i]


def spans_by_thread(events, *categories):
    threads = collections.defaultdict(list)
    for event in events:
        if event.get("cat") in categories and event["ph"] == "X":
            threads[event["tid"]].append(event)
    return collections.defaultdict(lambda: Spans([]), {
        tid: Spans(some) for tid, some in threads.items()})


def is_model_code(file):
    """Whether the file is the program's or a model library's."""
    return not re.search(r"(^|/(site|dist)-packages/)torch/|<", file)


def profiler_functions(path):
    """Yields, for each kernel of a trace of torch.profiler, its name and the function (file, name)
    at the forward end of its link, or None.
    """
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    operators = spans_by_thread(events, "cpu_op")
    functions = spans_by_thread(events, "python_function")
    calls = {event["args"]["correlation"]: event for event in events
             if event.get("cat") in ("cuda_runtime", "cuda_driver")}
    links = [event for event in events if event.get("cat") == "fwdbwd"]
    begins = {event["id"]: event for event in links if event["ph"] == "s"}
    ends = {(event["tid"], event["ts"]): begins.get(event["id"])
            for event in links if event["ph"] == "f"}

    def function_of(kernel):
        call = calls.get(kernel["args"]["correlation"])
        for operator in operators[call["tid"]].around(call["ts"]) if call else ():
            forward = ends.get((call["tid"], operator["ts"]))
            for event in functions[forward["tid"]].around(forward["ts"]) if forward else ():
                found = PROFILER_FRAME.match(event["name"])
                if found and is_model_code(found.group(1)):
                    return os.path.basename(found.group(1)), found.group(2)
            if operator["name"].startswith("autograd::engine::evaluate_function"):
                break  # operators around this node are those of another
        return None
    kernels = [event for event in events if event.get("cat") == "kernel"]
    for kernel in sorted(kernels, key=lambda event: event["ts"]):
        yield kernel["name"], function_of(kernel)


def recorded_functions(places, folder, scratch):
    """Returns the same for the kernels of a recording. The function is None unless it is exact."""
    database = events_of(places, folder, scratch)
    frames_of, known = frame_names(database), {}

    def function_of(path):
        function = None
        for name in frames_of(path):
            found = FRAME.match(name)
            if name.startswith(EXACT):
                return function
            if found and is_model_code(found.group(2)):
                function = os.path.basename(found.group(2)), found.group(1).split(".")[-1]
        return None
    kernels = []
    for name, path in database.execute(
            "SELECT name, path_id FROM work WHERE kind = 'kernel' ORDER BY start_ns"):
        if path not in known:
            known[path] = function_of(path)
        kernels.append((name, known[path]))
    database.close()
    return kernels


def compare_profiler(profiled, recorded, say):
    """Returns how many kernels of the last step have the same forward function in both, and how
    many have one in both.
    """
    def short(name):
        return re.split("[<(]", name.replace("void ", ""))[0]
    recorded = recorded[-len(profiled):]
    same = [short(a[0]) == short(b[0]) for a, b in zip(profiled, recorded)]
    if not all(same) or len(recorded) != len(profiled):
        say("  torch.profiler: other kernels in %d places" % same.count(False))
    both = [(name, a, b) for (name, a), (_, b), is_same in zip(profiled, recorded, same)
            if a and b and is_same]
    unlike = [one for one in both if one[1] != one[2]]
    for name, a, b in unlike[:WRONG_SHOWN]:
        say("  torch.profiler: %s has %s, not %s" % (name[:60], a, b))
    return len(both) - len(unlike), len(both)


def summary_of(places, folder):
    return json.loads(run([places.merge, "-q", "--summary", "-", folder]))


def log_bytes(folder):
    return sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*.xtr")))


def percent(part, whole):
    return "%.1f %%" % (100 * part / whole) if whole else "–"


def cost(times, mode, base):
    """"+1.7 % [+0.9 +2.1]": the median of paired runs, the least and the most."""
    ratios = [100 * (one[mode] / one[base] - 1) for one in times]
    return "%+.1f %% [%+.1f %+.1f]" % (statistics.median(ratios), min(ratios), max(ratios))


def row_of(kind, summary, times, comparison, agreed):
    totals, backward = summary["totals"], summary["backward"]
    cells = [kind, format(totals["launch_count"], ","),
             percent(backward["gpu_time_ns"], totals["gpu_time_ns"])]
    cells += [percent(backward[name + "_gpu_time_ns"], backward["gpu_time_ns"])
              for name in ("exact", "inferred", "none")]
    cells.append(percent(summary["own_code"]["gpu_time_ns"], totals["gpu_time_ns"]))
    cells += ["%.3f ms" % statistics.median(one["bare"] for one in times),
              cost(times, "on", "bare"), cost(times, "on", "off")] if times else ["–"] * 3
    cells.append("%s of %s; %s of %s; %s" % tuple(format(number, ",") for number in (
        comparison.right, comparison.right + comparison.wrong, comparison.near,
        comparison.near + comparison.far, comparison.unknown)) if comparison else "–")
    cells.append("%d of %d" % agreed if agreed else "–")
    return "| %s |" % " | ".join(cells).replace("-", "−")


HEAD = ("kind", "launches", "backward, of GPU time", "exact, of backward", "inferred", "none",
        "under own code, of GPU time", "step, not recorded", "recording adds",
        "of which autograd", "exact lines right; inferred near; without truth",
        "exact functions as in torch.profiler")


def examine(places, options, kind, say):
    """Returns the row of the table, and whether all is well."""
    needs = json.loads(run([options.python, WORK, kind, "--needs"]))
    if needs["missing"]:
        say("%s: skipped, no %s" % (kind, ", ".join(needs["missing"])))
        return None, True
    folder, truth = (os.path.join(options.scratch, kind + end) for end in ("", ".truth"))
    if options.rounds:
        run_kind(places, options, kind, "bare", None)  # fills the caches of files and kernels
    folders = {"bare": None, "off": folder + ".off", "on": folder}
    times = [{mode: run_kind(places, options, kind, mode, folders[mode]) for mode in MODES}
             for _ in range(options.rounds)]
    for one in times:
        say("%s: ms/step %s" % (kind, ", ".join("%s %.4f" % pair for pair in one.items())))
    if times:
        sizes = [log_bytes(folders[mode]) for mode in MODES[1:]]
        say("%s: bytes of logs %s" % (kind, " and ".join(format(size, ",") for size in sizes)))
    if not times:
        run_kind(places, options, kind, "on", folder)
    summary, comparison, agreed = summary_of(places, folder), None, None
    if needs["truth"]:
        if os.path.exists(truth):
            os.remove(truth)
        run_kind(places, options, kind, "on", folder + ".with-truth", "--truth", truth)
        nodes = load_truth(truth)
        comparison = compare(work_of_nodes(places, folder + ".with-truth", options.scratch),
                             nodes)
        say("%s: %d nodes with a truth" % (kind, len(nodes)))
        for fault in comparison.faults:
            say("  wrong: " + fault)
    if kind in PROFILED:
        profile = os.path.join(options.scratch, kind + ".profile.json")
        run_kind(places, options, kind, "bare", None, "--profile", profile)
        agreed = compare_profiler(list(profiler_functions(profile)),
                                  recorded_functions(places, folder, options.scratch), say)
    # A truth that no kernel was compared with proves nothing.
    is_right = comparison is None or (comparison.right and not comparison.wrong)
    return row_of(kind, summary, times, comparison, agreed), bool(is_right)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND",
                        help="of " + ", ".join(KINDS))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--rounds", type=int, default=3,
                        help="runs in each way, for the cost; 0: none (3)")
    parser.add_argument("--steps", type=int, default=50, help="timed steps per run (50)")
    add_xtrace_option(parser)
    parser.add_argument("-o", "--output", help="also write to this file")
    parser.add_argument("-k", "--keep", help="keep the traces in this directory")
    options = parser.parse_args()
    if set(options.kinds) - set(KINDS):
        parser.error("the kinds are " + ", ".join(KINDS))
    places = Places(options.xtrace)
    output = open(options.output, "w") if options.output else None

    def say(text):
        print(text, flush=True)
        if output:
            output.write(text + "\n")
            output.flush()

    options.scratch = os.path.abspath(options.keep or tempfile.mkdtemp())
    os.makedirs(options.scratch, exist_ok=True)
    fine, rows = True, []
    for kind in options.kinds:
        try:
            row, is_right = examine(places, options, kind, say)
            fine = fine and is_right
            rows += [row] if row else []
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            say("%s: failed: %s" % (kind, error))
            fine = False
    say("\n| %s |\n|%s" % (" | ".join(HEAD), " --- |" * len(HEAD)))
    for row in rows:
        say(row)
    if not options.keep:
        shutil.rmtree(options.scratch)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
