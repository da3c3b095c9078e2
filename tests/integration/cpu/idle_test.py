#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that CPU samples name the cause of GPU idleness, on the simulated GPU.

Records the programs of samples/idle (--set c) or idle_programs.py (--set python), each with and
without its cause. --perf off records as on systems that forbid perf_event_open. Exit status 77 if
xtrace cannot sample CPUs.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.normpath(os.path.join(HERE, "..", "..", "..", "samples", "idle"))
PYTHON_PROGRAM = os.path.join(HERE, "idle_programs.py")
SKIPPED = 77
TIMEOUT_S = 60
ATTEMPTS = 3  # simulated kernels take real time, so a busy machine can distort a run
JOBS = 5  # programs at a time: most of them wait
GOOD_SHARE_MAX = 0.05
NAMED_SHARE_MIN = 0.5  # of the idle time of a bad variant
IDLE = "[idle:"

# Waits that the path must show below the class. Where the wait can be followed, the cause is in the
# frames after it.
WAITS = {("c", "lock"): "[lock]", ("c", "sleep"): "[sleep]",
         ("python", "sleep"): "[sleep]", ("python", "gil"): "[GIL]", ("python", "lock"): "[lock]",
         ("python", "slow_collate"): "[process]"}
FOLLOWED = {("c", "lock"), ("python", "gil"), ("python", "slow_collate")}
# Frames that precede the wait.
WAITING = {("c", "lock"): "read_statistics", ("python", "slow_collate"): "next_batch"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Cause:
    """The place that xtrace must name."""

    def __init__(self, kind, case):
        if kind == "c":
            source = read(os.path.join(SAMPLES, case + ".c"))
            self.functions = re.findall(r"\b(\w+)\([^()]*\) /\* cause \*/", source)
            self.frame = re.compile(r"\b(%s)\b" % "|".join(self.functions))
            return
        lines = [number for number, line in enumerate(read(PYTHON_PROGRAM).splitlines(), 1)
                 if line.endswith("# cause " + case)]
        self.frame = re.compile(r"\b%s:(%s)\b" % (
            re.escape(os.path.basename(PYTHON_PROGRAM)), "|".join(map(str, lines))))

    def is_in(self, frames):
        return any(self.frame.search(frame) for frame in frames)


class Recording:
    """A run of one program and what xtrace says about it."""

    def __init__(self, args, case, is_bad, folder):
        self.args, self.data = args, os.path.join(folder, "data")
        subprocess.run(["rm", "-rf", self.data], check=True)
        run([args.xtrace, "record", "--simulate", "--cpu", "-o", self.data, "--",
             *command_of(args, case, is_bad)], env=environment(args), cwd=folder)
        self.summary = self.merge("--summary", "-", limit=1)

    def merge(self, *options, limit=0):
        done = run([self.args.merge, "-q", *options, self.data], limit=limit)
        return json.loads(done.stdout) if "--summary" in options else done.stdout

    def paths(self, weight):
        """The frames of each path and its weight, largest first."""
        lines = self.merge("--folded", "-", "--weight", weight, limit=1).splitlines()
        paths = [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in lines]
        return sorted(paths, key=lambda path: -path[1])

    @functools.cached_property
    def idle(self):
        """For each path of idle time, the frames below the class."""
        found = []
        for frames, ns in self.paths("gpu-idle"):
            at = next((i for i, frame in enumerate(frames) if frame.startswith(IDLE)), len(frames))
            found.append((frames[at + 1:], ns))
        return found

    def idle_ns(self):
        return self.summary["totals"]["gpu_idle_ns"]

    def span_ns(self):
        return self.idle_ns() + self.summary["totals"]["gpu_exclusive_ns"]

    def logs(self):
        return [os.path.join(self.data, name) for name in sorted(os.listdir(self.data))
                if name.endswith(".xtr")]


def run(command, limit=0, **options):
    """limit: the largest exit status that is a success. 1 means an incomplete trace in a merge."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                          **options)
    if done.returncode > limit or done.returncode < 0:
        raise AssertionError("%s gives %d: %s" % (
            " ".join(command), done.returncode, (done.stdout + done.stderr)[-2000:]))
    return done


def command_of(args, case, is_bad):
    if args.set == "c":
        return [os.path.join(args.programs, case), "bad" if is_bad else "good"]
    return [sys.executable, PYTHON_PROGRAM, case] + ["--good"] * (not is_bad)


def environment(args):
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", XTRACE_SIMGPU_LAUNCH_NS="2600")
    ns = re.search(r"#define KERNEL_NS\s+(\d+)", read(os.path.join(SAMPLES, "idle.h")))[1]
    env["XTRACE_SIMGPU_KERNEL_NS"] = "%s:%s" % (ns, ns)
    env.pop("XTRACE_CPU_PERF", None)
    if args.perf == "off":
        env["XTRACE_CPU_PERF"] = "off"
    return env


def cases_of(args):
    if args.set == "c":
        return sorted(name[:-2] for name in os.listdir(SAMPLES)
                      if name.endswith(".c") and name != "idle.c")
    return re.findall(r'"(\w+)": \w+[,}]', read(PYTHON_PROGRAM).split("\nCASES = ")[1])


def show(paths):
    return "\n".join("%d %s" % (ns, ";".join(frames)) for frames, ns in paths[:8])


class IdleTest(unittest.TestCase):
    args = None
    recordings = {}

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(dir=cls.args.scratch)
        # The good programs prove nothing more without perf.
        kinds = (True, False) if cls.args.perf == "on" else (True,)
        every = [(case, is_bad) for case in cls.cases for is_bad in kinds]
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            done = pool.map(lambda key: cls.try_to_record(*key), every)
        cls.recordings = dict(zip(every, done))

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def try_to_record(cls, case, is_bad):
        """A failure is that of the test that uses the recording."""
        try:
            return cls.record(case, is_bad)
        except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired):
            return None

    @classmethod
    def record(cls, case, is_bad):
        folder = os.path.join(cls.scratch.name, "%s.%s" % (case, "bad" if is_bad else "good"))
        os.makedirs(folder, exist_ok=True)
        return Recording(cls.args, case, is_bad, folder)

    def check(self, case, is_bad, condition):
        """Checks a recording. Records again if the condition does not hold."""
        for attempt in range(ATTEMPTS):
            recording = self.recordings[case, is_bad]
            try:
                if not recording:
                    recording = self.recordings[case, is_bad] = self.record(case, is_bad)
                return condition(recording)
            except AssertionError:
                if attempt == ATTEMPTS - 1:
                    raise
                self.recordings[case, is_bad] = None

    def check_bad_names_its_cause(self, case):
        cause = Cause(self.args.set, case)

        def condition(recording):
            # On a busy machine, the sampler may have to wait for a processor.
            sampled = [frames for frames, _ in recording.idle if frames != ["[not sampled]"]]
            self.assertTrue(sampled, "no idle time")
            self.assertTrue(cause.is_in(sampled[0]),
                            "the largest path has no %s:\n%s" % (cause.frame.pattern,
                                                                 show(recording.idle)))
            named_ns = sum(ns for frames, ns in recording.idle if cause.is_in(frames))
            self.assertGreater(named_ns, NAMED_SHARE_MIN * recording.idle_ns(),
                               show(recording.idle))
        self.check(case, True, condition)

    def check_bad_shows_its_wait(self, case):
        cause, key = Cause(self.args.set, case), (self.args.set, case)
        wait, waiting = WAITS[key], WAITING.get(key)
        # Without perf, native code of the thread that is waited for has no path.
        is_followed = key in FOLLOWED and not is_blind(self.args)

        def condition(recording):
            ns = 0
            for frames, weight in recording.idle:
                if wait not in frames:
                    continue
                before, after = frames[:frames.index(wait)], frames[frames.index(wait) + 1:]
                is_named = cause.is_in(after) if is_followed else \
                    key in FOLLOWED or cause.is_in(before)
                is_placed = not waiting or any(waiting in frame for frame in before)
                ns += weight if is_named and is_placed else 0
            self.assertGreater(ns, NAMED_SHARE_MIN * recording.idle_ns(), show(recording.idle))
        self.check(case, True, condition)

    def check_running_native_code_has_no_path(self, case):
        def condition(recording):
            frames, ns = recording.idle[0]
            self.assertIn(frames, ([], ["[not sampled]"], ["[running, stack unknown]"]), show(recording.idle))
            self.assertGreater(ns, NAMED_SHARE_MIN * recording.idle_ns(), show(recording.idle))
        self.check(case, True, condition)

    def check_bad_has_a_finding_at_its_cause(self, case):
        cause = Cause(self.args.set, case)

        def condition(recording):
            rows = recording.summary["findings"]["rows"]
            self.assertTrue(cause.is_in(texts_of(rows)), json.dumps(rows, indent=1))
        self.check(case, True, condition)

    def check_good_has_no_idle_time_at_the_cause(self, case):
        cause = Cause(self.args.set, case)

        def condition(recording):
            named_ns = sum(ns for frames, ns in recording.idle if cause.is_in(frames))
            for ns in (named_ns, recording.idle_ns()):
                self.assertLessEqual(ns, GOOD_SHARE_MAX * recording.span_ns(), show(recording.idle))
        self.check(case, False, condition)

    def check_good_has_no_finding(self, case):
        def condition(recording):
            self.assertEqual(recording.summary["findings"]["rows"], [])
        self.check(case, False, condition)

    def check_start_up_names_its_cause(self):
        cause = Cause(self.args.set, "startup")

        def condition(recording):
            start_up = recording.summary["headline"]["start_up"]
            self.assertGreater(start_up["idle_ns"], 300e6)
            self.assertTrue(cause.is_in(texts_of(start_up)), json.dumps(start_up))
            named_ns = sum(ns for frames, ns in recording.idle if cause.is_in(frames))
            self.assertEqual(named_ns, 0, "start-up counts as idle time:\n" + show(recording.idle))
        self.check("startup", True, condition)

    def test_cpu_time_has_the_functions_that_run(self):
        case = "slow_collate"
        cause = Cause(self.args.set, case)
        self.check(case, True, lambda recording: self.assertTrue(
            cause.is_in(recording.paths("cpu-time")[0][0]), show(recording.paths("cpu-time"))))

    def test_off_cpu_has_the_functions_that_wait(self):
        cause = Cause(self.args.set, "sleep")

        def condition(recording):
            paths = recording.paths("off-cpu")
            self.assertTrue(any("[sleep]" in frames and cause.is_in(frames)
                                for frames, ns in paths[:5]), show(paths))
        self.check("sleep", True, condition)

    def test_logs_keep_the_promises_of_the_format(self):
        for case in ("slow_collate", "lock"):
            self.check(case, True, lambda recording: run(
                [sys.executable, self.args.dump, "--check", *recording.logs()]))

    def test_source_of_samples_is_recorded(self):
        def condition(recording):
            meta = {}
            for log in recording.logs():
                if not log.endswith(".cpu.xtr"):
                    continue
                said = run([sys.executable, self.args.dump, "--format", "json", "--kind", "META", log])
                for line in said.stdout.splitlines():
                    row = json.loads(line)
                    if row.get("record") == "row":
                        meta[row["key"]] = row["value"]
            self.assertEqual(meta.get("log.kind"), "cpu", meta)
            if self.args.perf == "off":
                self.assertEqual(meta.get("cpu.source"), "proc", meta)
            if meta.get("cpu.source") == "proc":
                self.assertTrue(meta.get("cpu.why"), meta)
        self.check("sleep", True, condition)


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


def is_blind(args):
    """Running native code has no path."""
    return args.set == "c" and args.perf == "off"


def add_tests(args, cases):
    kind = args.set

    def add(name, check, *arguments):
        setattr(IdleTest, "test_" + name, lambda self: check(self, *arguments))
    if is_blind(args):
        add("sleep_bad_names_its_cause", IdleTest.check_bad_names_its_cause, "sleep")
        add("lock_bad_shows_its_wait", IdleTest.check_bad_shows_its_wait, "lock")
        add("slow_collate_bad_has_no_path", IdleTest.check_running_native_code_has_no_path,
            "slow_collate")
        del IdleTest.test_cpu_time_has_the_functions_that_run
        return
    for case in cases:
        if args.perf == "on":
            add(case + "_good_has_no_idle_time_at_the_cause",
                IdleTest.check_good_has_no_idle_time_at_the_cause, case)
            add(case + "_good_has_no_finding", IdleTest.check_good_has_no_finding, case)
        if case == "startup":
            add("startup_bad_names_its_cause", IdleTest.check_start_up_names_its_cause)
            continue
        add(case + "_bad_names_its_cause", IdleTest.check_bad_names_its_cause, case)
        add(case + "_bad_has_a_finding_at_its_cause",
            IdleTest.check_bad_has_a_finding_at_its_cause, case)
        if (kind, case) in WAITS:
            add(case + "_bad_shows_its_wait", IdleTest.check_bad_shows_its_wait, case)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--xtrace", required=True)
    parser.add_argument("--merge", required=True)
    parser.add_argument("--dump", required=True)
    parser.add_argument("--programs", required=True, help="folder of the compiled samples/idle")
    parser.add_argument("--set", choices=("c", "python"), required=True)
    parser.add_argument("--perf", choices=("on", "off"), default="on")
    parser.add_argument("--scratch", default=".", help="folder on a disk, for files and traces")
    parser.add_argument("--case", action="append", help="record only this program")
    args, rest = parser.parse_known_args()
    done = subprocess.run([args.xtrace, "record", "--help"], capture_output=True, text=True,
                          check=False)
    if not re.search(r"--cpu\b", done.stdout + done.stderr):
        print("idle_test: skipped: xtrace record has no --cpu")
        sys.exit(SKIPPED)
    args.scratch = os.path.abspath(args.scratch)
    IdleTest.args, IdleTest.cases = args, args.case or cases_of(args)
    if is_blind(args):
        IdleTest.cases = ["lock", "sleep", "slow_collate"]
    add_tests(args, IdleTest.cases)
    unittest.main(argv=sys.argv[:1] + rest)


if __name__ == "__main__":
    main()
