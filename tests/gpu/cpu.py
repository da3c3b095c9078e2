#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks CPU sampling on a real GPU: the causes that it names, its cost and its accuracy.

Prints Markdown tables for docs/internals/CPU_SAMPLING.md. Parts:
- causes: the programs of samples/idle, with and without their cause. xtrace must name the line.
- environment: the PyTorch programs, recorded by XTRACE_CPU without the launcher
- cost: a PyTorch training step, recorded with and without --cpu in processes that take turns
- accuracy: the share of a function in the samples, against its CPU clock, for 20 programs
- frames: Python frames of samples, against markers that the program writes
- growth: bytes of the CPU logs for each observation, and CPU time of the sampler
- perf: shares of functions, against Linux perf

Each part has a time limit and reports what it has by then. All but environment and cost run with
--simulate.

Exit status: 0 no gate failed, 1 one did or a program failed, 2 usage.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
from cpu_samples import (EXACT_NS, PROGRAM_LIMIT_S, Failed, Log, Markers, block_bootstrap, bound_95,
                         compare_frames, cpu_logs, log_figures, log_of, run, sampled_share)
from places import Places, add_xtrace_option

LIMITS_S = {"causes": 150, "environment": 60, "cost": 520, "accuracy": 70, "frames": 30,
            "growth": 30, "perf": 40}
MODES = {"perf": {}, "proc": {"XTRACE_CPU_PERF": "off"}}

COST_GATE = 0.01
COST_PAIRS_MIN = 20
SAMPLER_END_S = 0.5  # after the program
COVERED_GATES = {"perf": 0.95, "proc": 0.85, "environment": 0.85}
GOOD_SHARE_MAX = 0.05
BYTES_GATE = 30

WHOLE_RUN = ("startup", "compile")  # recorded without a capture range
SHORT_GAPS = ("python_overhead",)  # their idle time is not in gaps over 20 ms
CPU_CAUSED = ("[idle: launch late (CPU busy)]", "[idle: nothing submitted]",
              "[idle: allocating memory]", "[idle: loading code]")
STATES = ("[lock]", "[sleep]", "[I/O]", "[page fault]", "[GIL]", "[process]", "[blocked]",
          "[no CPU free]")
UNKNOWN = ("[not sampled]", "[running, stack unknown]")

ACCURACY_PROGRAMS = 20


class Part:
    """A part of the checks, with its places, options and time limit."""

    def __init__(self, name, places, options, say):
        self.name, self.places, self.options, self.say = name, places, options, say
        self.end = time.monotonic() + LIMITS_S[name] * options.time_factor
        self.failures = 0

    def left_s(self):
        return self.end - time.monotonic()

    def fail(self, text):
        self.failures += 1
        self.say("%s: %s" % (self.name, text))

    def table(self, head, rows):
        self.say("\n| %s |\n|%s" % (" | ".join(head), " --- |" * len(head)))
        for row in rows:
            self.say("| %s |" % " | ".join(map(str, row)))
        self.say("")

    def record(self, name, command, mode, *more, **variables):
        """Records with --cpu. Returns the folder of the recording and the program's output."""
        folder = os.path.join(self.options.scratch, name)
        shutil.rmtree(folder, ignore_errors=True)
        simulate = ["--simulate"] if self.options.simulate else []
        if mode == "environment":
            return folder, self.record_itself(folder, command, [*simulate, *more], variables)
        said = run([self.places.xtrace, "record", *simulate, "--cpu", *more, "-o", folder, "--",
                    *command], seconds=min(PROGRAM_LIMIT_S, self.left_s()),
                   cwd=self.options.scratch, **MODES[mode], **variables)
        return folder, said

    def record_itself(self, folder, command, options, variables):
        """The program records itself, as a service does."""
        said = run([self.places.xtrace, "env", "--cpu", *options, "--format", "json", "-o", folder])
        said = run(command, seconds=min(PROGRAM_LIMIT_S, self.left_s()), cwd=self.options.scratch,
                   **json.loads(said), **variables)
        time.sleep(SAMPLER_END_S)
        run([self.places.merge, "-q", "--embed-symbols", folder])
        return said

    def run_all(self, function, jobs, count):
        """Results of function(job), None for those that failed. Starts none after the limit."""
        def one(job):
            if self.left_s() < 5:
                return None
            try:
                return function(job)
            except Failed as failure:
                self.fail("%s: %s" % (job, failure))
                return None
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            results = list(pool.map(one, jobs))
        if None in results:
            self.fail("%d of %d runs have no result" % (results.count(None), len(results)))
        return results


def percent(part, whole, digits=1):
    return "%.*f %%" % (digits, 100 * part / whole) if whole else "–"


def modes_of(part):
    """The modes that differ on this machine, and what to say about it."""
    folder, _ = part.record("probe", [sys.executable, "-c", "sum(range(10**7))"], "perf")
    for path in cpu_logs(folder):
        meta = Log(part.places, path, "META").meta
        if meta.get("cpu.source") == "perf":
            return list(MODES), "perf_event_open is allowed: both modes are run"
        return ["proc"], "only without perf_event_open: %s" % meta.get("cpu.why", "no reason given")
    raise Failed("no CPU log in %s" % folder)


# Causes


class Cause:
    """The place that xtrace must name, from the comments in the source."""

    def __init__(self, path, case):
        with open(path) as file:
            source = file.read()
        if path.endswith(".c"):
            names = re.findall(r"\b(\w+)\([^()]*\) /\* cause \*/", source)
            self.frame = re.compile(r"\b(%s)\b" % "|".join(names))
        else:
            lines = [str(number) for number, line in enumerate(source.splitlines(), 1)
                     if line.endswith("# cause " + case)]
            self.frame = re.compile(r"\b%s:(%s)\b" % (
                re.escape(os.path.basename(path)), "|".join(lines)))

    def is_in(self, texts):
        return any(self.frame.search(text) for text in texts)


CauseRun = collections.namedtuple("CauseRun", "program is_bad mode")
CauseResult = collections.namedtuple(
    "CauseResult", "run named_ns is_named idle_ns span_ns cpu_ns python_ns native_ns state_ns")


def texts_of(value):
    """Yields all texts in a JSON value, and the places that are a file and a line."""
    if isinstance(value, dict):
        if "file" in value and "line" in value:
            yield "%s:%s" % (os.path.basename(value["file"]), value["line"])
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from texts_of(one)
    elif isinstance(value, str):
        yield value


def idle_paths(places, folder):
    """(class, frames below it, ns) of idle time, largest first."""
    paths = []
    for line in run([places.merge, "-q", "--folded", "-", "--weight", "gpu-idle", folder],
                    limit=1).splitlines():
        frames, ns = line.rsplit(" ", 1)
        frames = frames.split(";")
        at = next((i for i, frame in enumerate(frames) if frame.startswith("[idle:")), None)
        if at is not None:
            paths.append((frames[at], frames[at + 1:], int(ns)))
    return sorted(paths, key=lambda path: -path[2])


def examine_cause(part, one):
    language, case = one.program.split(" ")
    places, variables, more = part.places, {}, []
    name = "%s-%s-%s-%s" % (language, case, "bad" if one.is_bad else "good", one.mode)
    if language == "C":
        path = os.path.join(places.samples, "idle", case + ".c")
        command = [os.path.join(places.programs, "samples", "idle", case), "bad" if one.is_bad else "good"]
        if part.options.simulate:
            with open(os.path.join(places.samples, "idle", "idle.h")) as file:
                ns = re.search(r"#define KERNEL_NS\s+(\d+)", file.read()).group(1)
            variables["XTRACE_SIMGPU_KERNEL_NS"] = "%s:%s" % (ns, ns)
    else:
        path = os.path.join(places.samples, "idle", "pytorch_idle.py")
        command = [part.options.python, path, "--case", case, "--seconds",
                   str(part.options.seconds), *(["--good"] if not one.is_bad else [])]
        more = [] if case in WHOLE_RUN else ["--capture-range", "cudaProfilerApi"]
    folder, _ = part.record(name, command, one.mode, *more, **variables)
    paths, cause = idle_paths(places, folder), Cause(path, case)
    summary = json.loads(run([places.merge, "-q", "--summary", "-", folder], limit=1))
    sums = collections.Counter()
    for kind, frames, ns in paths:
        sums["named"] += ns if cause.is_in(frames) else 0
        if kind not in CPU_CAUSED:
            continue
        sums["cpu"] += ns
        known = [frame for frame in frames if frame not in UNKNOWN]
        if any(re.search(r"\.py:\d+\)$", frame) for frame in known):
            sums["python"] += ns
        elif set(known) - set(STATES):
            sums["native"] += ns
        elif known:
            sums["state"] += ns
    if case == "startup":
        is_named = cause.is_in(texts_of(summary["headline"]["start_up"]))
    else:
        is_named = bool(paths) and cause.is_in(paths[0][1])
    totals = summary["totals"]
    span_ns = totals["gpu_idle_ns"] + totals["gpu_exclusive_ns"]
    return CauseResult(one, sums["named"], is_named, totals["gpu_idle_ns"], span_ns, sums["cpu"],
                       sums["python"], sums["native"], sums["state"])


def has_torch(options):
    test = "import torch; torch.cuda.init()"
    return not options.simulate and not subprocess.run(
        [options.python, "-c", test], capture_output=True).returncode


def programs_of(part):
    programs = ["C " + os.path.basename(path)[:-2] for path in sorted(
        glob.glob(os.path.join(part.places.samples, "idle", "*.c"))) if not path.endswith("/idle.c")]
    if has_torch(part.options):
        with open(os.path.join(part.places.samples, "idle", "pytorch_idle.py")) as file:
            table = file.read().split("\nCASES = ")[1]
        programs += ["PyTorch " + case for case in re.findall(r'"(\w+)": \w+[,}]', table)]
    else:
        part.say("causes: no PyTorch that finds a GPU, so only the C programs run")
    return programs


def causes(part, modes):
    """Part (a): is the cause named, and how much idle time has a CPU path?"""
    runs = [CauseRun(program, is_bad, mode) for program in programs_of(part)
            for is_bad in (True, False) for mode in modes]
    results = part.run_all(lambda one: examine_cause(part, one), runs,
                           max(2, min(4, os.cpu_count() // 4)))
    results, rows = [result for result in results if result], []
    for result in results:
        one = result.run
        is_fine = result.is_named if one.is_bad else (
            result.named_ns <= GOOD_SHARE_MAX * result.span_ns)
        if not is_fine:
            part.fail("%s %s %s: the cause is %s" % (*one[:1], "bad" if one.is_bad else "good",
                                                     one.mode, "named" if not one.is_bad else
                                                     "not named"))
        rows.append((one.program, "bad" if one.is_bad else "good", one.mode,
                     ("yes" if result.is_named else "no") if one.is_bad else "–",
                     percent(result.idle_ns, result.span_ns),
                     percent(result.named_ns, result.span_ns),
                     percent(result.python_ns, result.cpu_ns),
                     percent(result.native_ns, result.cpu_ns),
                     percent(result.state_ns, result.cpu_ns)))
    part.table(("program", "variant", "mode", "named", "idle", "at the cause",
                "CPU-caused: with a Python line", "native frames", "state only"), rows)
    put_coverage(part, results, modes)


def put_coverage(part, results, modes):
    for mode in modes:
        some = [result for result in results if result.run.mode == mode and result.run.is_bad
                and result.run.program.split(" ")[1] not in SHORT_GAPS]
        whole = sum(result.cpu_ns for result in some)
        covered = sum(result.python_ns + result.native_ns for result in some)
        part.say("%s: %s of %.2f s of CPU-caused idle time in gaps over 20 ms has a CPU path "
                 "(at least %.0f %%); %s has a Python line" % (
                     mode, percent(covered, whole), whole / 1e9, 100 * COVERED_GATES[mode],
                     percent(sum(result.python_ns for result in some), whole)))
        if covered < COVERED_GATES[mode] * whole or not whole:
            part.fail("%s: too little idle time has a CPU path" % mode)


def environment(part, _):
    """Part (g): programs without the launcher. Sampling begins when they start CUDA."""
    runs = [CauseRun(program, True, "environment") for program in programs_of(part)
            if program.startswith("PyTorch") and not program.endswith("startup")]
    results = [result for result in part.run_all(lambda one: examine_cause(part, one), runs, 4)
               if result]
    for result in results:
        if not result.is_named:
            part.fail("%s: the cause is not named" % result.run.program)
    if results:
        put_coverage(part, results, ["environment"])
    part.say("environment: %d of %d causes are named" % (
        sum(result.is_named for result in results), len(runs)))


# Cost


SETTLE_NS = 20000000  # after the sampler was stopped or continued
ARMS = {"off": None, "again": None, **MODES}  # again: not sampled either, to see the noise
STEPS = {"large": 4, "small": 15}  # in a turn
ROUNDS = 8  # of turns of all arms, each in another order
TOGETHER = 4  # groups whose processes start at the same time
TURN_LIMIT_S = 60


class Arm:
    """A process that takes turns with those of the other arms."""

    def __init__(self, part, name, number):
        self.name = name
        self.folder = os.path.join(part.options.scratch, "cost-%s-%d" % (name, number))
        sampled = ["--cpu"] if ARMS[name] is not None else []
        self.process = subprocess.Popen(
            [part.places.xtrace, "record", *sampled, "-o", self.folder, "--", part.options.python,
             part.places.script("torch_step.py"), "--samples", part.places.samples,
             "--turns"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, bufsize=1, env=dict(os.environ, **(ARMS[name] or {})))

    def line(self):
        if not select.select([self.process.stdout], [], [], TURN_LIMIT_S)[0]:
            raise Failed("a process of cost does not answer")
        return self.process.stdout.readline().strip()

    def wait(self):
        if self.line() != "ready":
            raise Failed("a process of cost did not start")
        self.process.send_signal(signal.SIGSTOP)

    def turn(self, size):
        """ms/step. The sampler, in the stopped process, runs in its own turns only."""
        self.process.send_signal(signal.SIGCONT)
        time.sleep(SETTLE_NS / 1e9)
        self.process.stdin.write("%s %d\n" % (size, STEPS[size]))
        text = self.line()
        self.process.send_signal(signal.SIGSTOP)
        if not text:
            raise Failed("a process of cost ended")
        return float(text)

    def end(self, part):
        """Checks that the process was sampled if it should have been."""
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        if self.process.wait(TURN_LIMIT_S):
            raise Failed("a process of cost failed")
        sources = {Log(part.places, path, "META").meta["cpu.source"]
                   for path in cpu_logs(self.folder)}
        if sources != ({self.name} if ARMS[self.name] is not None else set()):
            raise Failed("a process of %s was sampled by %s" % (self.name, sources))
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.close()
            self.process.kill()
            self.process.wait()


def group_ratios(arms, number):
    """{(size, arm): (ms/step without, ratio)} of one process of each arm."""
    ratios, names = {}, list(arms)
    for size in STEPS:
        rounds = []
        for turn in range(ROUNDS):
            first = (turn + number) % len(names)
            order = names[first:] + names[:first]
            rounds.append({name: arms[name].turn(size) for name in order[::1 - 2 * (turn % 2)]})
        for name in names[1:]:
            ratios[size, name] = (statistics.median(times["off"] for times in rounds),
                                  statistics.median(times[name] / times["off"]
                                                    for times in rounds))
    return ratios


def measure_groups(part, names, numbers):
    arms, together = [], []
    try:
        for number in numbers:
            order = random.sample(names, len(names))
            started = {name: Arm(part, name, number) for name in order}
            arms += started.values()
            together.append({name: started[name] for name in names})
        for arm in arms:
            arm.wait()
        groups = [group_ratios(group, number) for number, group in zip(numbers, together)]
        for arm in arms:
            arm.end(part)
        return groups
    finally:
        for arm in arms:
            arm.kill()


def cost_verdict(bounds, again, count):
    """Unresolved if processes that are not sampled differ, too, or there are too few."""
    if count < COST_PAIRS_MIN or not again[1] <= 0 <= again[2]:
        return "unresolved"
    return "holds" if bounds[2] <= COST_GATE else "fails" if bounds[1] > COST_GATE else "unresolved"


def cost(part, modes):
    """Part (b): the cost of --cpu, as ratios of processes that take turns."""
    if not has_torch(part.options):
        part.say("cost: skipped, no PyTorch that finds a GPU")
        return
    names, groups, rows, took_s = ["off", "again", *modes], [], [], 0
    while len(groups) < part.options.pairs and part.left_s() > 1.2 * took_s:
        begin = time.monotonic()
        groups += measure_groups(part, names, range(len(groups), len(groups) + TOGETHER))
        took_s = time.monotonic() - begin
    for size in STEPS:
        bounds = {name: bound_95([group[size, name][1] for group in groups]) for name in names[1:]}
        for name in names[1:]:
            verdict = "–" if name == "again" else cost_verdict(bounds[name], bounds["again"],
                                                               len(groups))
            without = statistics.median(group[size, name][0] for group in groups)
            texts = ["%+.2f %%" % (100 * value) for value in bounds[name]]
            rows.append((size, name, len(groups), "%.3f" % without, *texts, verdict))
            if verdict == "fails":
                part.fail("%s: --cpu costs more than the gate" % name)
    part.table(("step", "arm", "groups of processes", "without --cpu, ms/step", "the arm adds",
                "95 % lower bound", "95 % upper bound", "gate %.0f %%" % (100 * COST_GATE)), rows)


# Accuracy


def share_command(part, language, share, chunk_us, seconds):
    arguments = ["%.3f" % share, "%d" % chunk_us, "%g" % seconds]
    if language == "C":
        return [part.places.program("bench_sampled_share"), *arguments]
    return [part.options.python, part.places.script("sampled_share.py"), *arguments]


def accuracy(part, modes):
    """Part (c): the sampled share of a function, against its share by the thread's CPU clock."""
    draw = random.Random(1)
    jobs = [(mode, number, "C" if number % 2 else "Python", draw.uniform(0.1, 0.9),
             draw.choice((2000, 5000, 20000, 50000)))
            for mode in modes for number in range(ACCURACY_PROGRAMS)]

    def examine(job):
        mode, number, language, share, chunk_us = job
        folder, said = part.record("share-%s-%d" % (mode, number), share_command(
            part, language, share, chunk_us, part.options.share_seconds), mode)
        report = json.loads(said.strip().splitlines()[-1])
        sampled, pairs, unknown = sampled_share(log_of(part.places, folder, "sampled_share"),
                                                report)
        low, high = block_bootstrap(pairs, number)
        return (job, report["share"], sampled, low, high, len(pairs), unknown)
    results = [result for result in part.run_all(
        examine, jobs, max(1, min(8, os.cpu_count() // 2))) if result]
    rows = []
    for job, true, sampled, low, high, count, unknown in results:
        is_inside = low <= true <= high
        rows.append((*job[:3], percent(true, 1), percent(sampled, 1), "%s to %s" % (
            percent(low, 1), percent(high, 1)), count, percent(unknown, 1),
            "yes" if is_inside else "no"))
        if not is_inside:
            part.fail("%s: the true share is outside the interval" % (job,))
    part.table(("mode", "program", "language", "true share", "sampled", "99.9 % interval",
                "observations", "in neither function", "inside"), rows)
    for mode in modes:
        inside = [row[-1] for row in rows if row[0] == mode]
        part.say("%s: the true share is inside in %d of %d programs" % (
            mode, inside.count("yes"), len(inside)))


# Frames


def frames(part, modes):
    """Part (e): Python frames of samples, against markers."""
    def examine(mode):
        marked = tempfile.mkdtemp(dir=part.options.scratch)
        folder, _ = part.record("frames-" + mode, [
            part.options.python, part.places.script("sampled_frames.py"), marked,
            str(part.options.share_seconds)], mode)
        markers = {int(path.rsplit(".", 1)[1]): Markers(path)
                   for path in glob.glob(os.path.join(marked, "markers.*"))}
        log = log_of(part.places, folder, "sampled_frames")
        counts = compare_frames(log, markers)
        if counts["wrong"] or not counts["right"]:
            part.fail("%s: %d observations have wrong frames, %d right ones" % (
                mode, counts["wrong"], counts["right"]))
        read, changed = (log.account.get("cpu.python." + name, 0) for name in ("read", "changed"))
        return (mode, *(counts[name] for name in (
            "right", "outer", "within exactness", "wrong", "changed", "none", "uncertain")),
            percent(read - changed, read))
    part.table(("mode", "right", "right outer frames, inner ones changed",
                "right within %g µs" % (EXACT_NS / 1e3), "wrong",
                "discarded because they changed", "no Python frames", "between markers",
                "accepted reads of running threads"), filter(None, part.run_all(examine, modes, 1)))


# Growth, and the sampler's own time


def growth(part, modes):
    """Parts (d) and (f): bytes for each observation, and the CPU time of the sampler."""
    def examine(job):
        mode, name = job
        folder, wall_s = os.path.join(part.options.scratch, name), 0
        if mode in modes:
            begin = time.monotonic()
            folder, _ = part.record("growth", share_command(part, name, 0.5, 20000, 3), mode)
            wall_s = time.monotonic() - begin
        sums = log_figures(part.places, folder)
        count = sums["observations"]
        if not count:
            raise Failed("no observations")
        bytes_each = (sums["bytes"] - sums["stack_bytes"]) / count
        if bytes_each > BYTES_GATE:
            part.fail("%s %s: %.1f bytes for each observation" % (mode, name, bytes_each))
        return (mode, name, sums["processes"], count, "%.1f" % (sums["sample_bytes"] / count),
                "%.1f" % bytes_each, "%.1f" % (sums["bytes"] / count), sums["lost"],
                "%.1f µs" % (sums["sampler_ns"] / count / 1e3),
                percent(sums["sampler_ns"] / 1e9, wall_s, 2))
    jobs = [(mode, language) for mode in modes for language in ("C", "Python")]
    jobs += [("–", name) for name in ("step-cpu", "PyTorch-slow_collate-bad-perf",
                                      "PyTorch-slow_collate-bad-proc")
             if os.path.isdir(os.path.join(part.options.scratch, name))]
    part.table(("mode", "program", "processes", "observations", "bytes of samples, each",
                "without stacks and names, each", "whole CPU logs, each", "lost",
                "sampler's CPU time, each", "of one CPU"),
               filter(None, part.run_all(examine, jobs, 1)))


# Linux perf


def perf(part, modes):
    """Part (g): the share of a C function, against Linux perf on the same program."""
    if not shutil.which("perf"):
        part.say("perf: skipped, there is no perf")
        return

    def examine(job):
        mode, share = job
        command = share_command(part, "C", share, 5000, 3)
        folder, said = part.record("perf-" + mode, command, mode)
        report = json.loads(said.strip().splitlines()[-1])
        sampled, pairs, _ = sampled_share(log_of(part.places, folder, "sampled_share"), report)
        data = os.path.join(part.options.scratch, "perf.data")
        said = run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "499", "-o", data, "--",
                    *command])
        words = run(["perf", "script", "-i", data, "-F", "ip,sym"]).split()
        names = [word for word in words if word in ("first_work", "second_work")]
        if not names:
            raise Failed("perf has no sample in one of the functions")
        return (mode, percent(report["share"], 1), percent(sampled, 1), len(pairs),
                percent(json.loads(said)["share"], 1),
                percent(names.count("first_work"), len(names)), len(names))
    part.table(("mode", "true share under xtrace", "sampled by xtrace", "observations",
                "true share under perf", "sampled by perf", "samples"),
               filter(None, part.run_all(examine, [(mode, share) for mode in modes
                                                   if mode == "perf" for share in (0.3, 0.7)], 1)))


PARTS = {"causes": causes, "environment": environment, "cost": cost,
         "accuracy": accuracy, "frames": frames, "growth": growth, "perf": perf}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART",
                        help="run only this part; may be repeated: " + ", ".join(PARTS))
    parser.add_argument("--python", default="python3", help="the Python that has PyTorch (python3)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of processes of cost (20)")
    parser.add_argument("--seconds", type=float, default=2.5,
                        help="length of a PyTorch program of causes (2.5)")
    parser.add_argument("--share-seconds", type=float, default=5,
                        help="length of a program of accuracy and frames (5)")
    parser.add_argument("--time-factor", type=float, default=1,
                        help="multiply the time limits of the parts (1)")
    parser.add_argument("--simulate", action="store_true", help="use the simulated GPU")
    add_xtrace_option(parser)
    parser.add_argument("-o", "--output", help="also write to this file")
    parser.add_argument("-k", "--keep", help="keep the traces in this directory")
    return parser.parse_args()


def main():
    options = parse()
    places = Places(options.xtrace)
    output = open(options.output, "w") if options.output else None

    def say(text):
        print(text, flush=True)
        if output:
            output.write(text + "\n")
            output.flush()

    options.scratch = os.path.abspath(options.keep or tempfile.mkdtemp())
    os.makedirs(options.scratch, exist_ok=True)
    is_fine, modes = True, None
    for name in options.only or PARTS:
        part, begin = Part(name, places, options, say), time.monotonic()
        try:
            if not modes:
                modes, text = modes_of(part)
                say(text)
            say("\n## %s\n" % name)
            PARTS[name](part, modes)
        except Failed as failure:
            part.fail(str(failure))
        is_fine = is_fine and not part.failures
        say("%s: %s in %.0f s" % (name, "failed" if part.failures else "done",
                                  time.monotonic() - begin))
    if not options.keep:
        shutil.rmtree(options.scratch)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
