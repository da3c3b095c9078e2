#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what CPU sampling says about programs that do known things.

usage: cpu_test.py XTRACE DUMP LOAD perf|proc [UNITTEST ARGUMENT]...
- perf: with the kernel's events; skips all tests if they are not allowed
- proc: without
"""
import glob
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from cpu_log import DROPPED, NO_NATIVE, NO_PYTHON, ON_CPU, Log, Recording

XTRACE, DUMP, LOAD, SOURCE = sys.argv[1:5]
HERE = os.path.dirname(os.path.abspath(__file__))
HAS_PERF = SOURCE == "perf"
PYTHON = os.path.realpath(sys.executable)
# Wait for a CPU is not what the program does.
WORTH = lambda row: row.state not in ("ready", "unknown")
NEEDS_PERF = unittest.skipUnless(HAS_PERF, "needs the kernel's events")
ONCE = unittest.skipIf(HAS_PERF, "once is enough")


class Cpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="xtrace-cpu-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def record(self, *command, hertz="99", status=0, file_limit=None, **user):
        recording = Recording(XTRACE, DUMP, self.folder + "/data", command, hertz, HAS_PERF,
                              file_limit, **user)
        self.assertEqual(recording.done.returncode, status, recording.done.stderr)
        self.assertEqual(recording.problems, "")
        if HAS_PERF and recording.logs and recording.logs[0].meta["cpu.source"] != "perf":
            self.skipTest("perf: " + recording.logs[0].meta["cpu.why"])
        for log in recording.logs:
            self.assertEqual(log.accounts["cpu.lost.write_failed"], 0)
            self.assertEqual(log.meta["log.kind"], "cpu")
        return recording

    def load(self, case, ms, *arguments, **options):
        return self.record(LOAD, case, str(ms), *arguments, **options)

    def patiently(self, durations, is_enough, record):
        """Records for longer if the machine is too busy for a short recording."""
        for number, duration in enumerate(durations):
            shutil.rmtree(self.folder + "/data", ignore_errors=True)
            recording = record(duration)
            if is_enough(recording) or number == len(durations) - 1:
                return recording

    def work(self, case, ms, *arguments, **options):
        """load() for a case that computes: its start must be a small part of its CPU time."""
        enough = lambda recording: max(sum(r.weight_ns for r in log.rows if r.state in ON_CPU)
                                       for log in recording.logs) > 150e6
        return self.patiently((ms, 10 * ms), enough,
                              lambda ms: self.load(case, ms, *arguments, **options))

    def assert_state(self, log, state, least, among=WORTH):
        share = log.share(lambda row: row.state == state, among)
        self.assertGreater(share, least, {r.state: r.weight_ns for r in log.rows})

    def test_sleep(self):
        log = self.load("sleeps", 500).logs[0]
        self.assert_state(log, "sleep", 0.95)
        row = max(log.rows, key=lambda r: r.weight_ns)
        self.assertIn("sleeps", row.native)
        self.assertIn("main", row.native)

    def test_lock(self):
        log = self.load("locks", 500).logs[0]
        main = [r for r in log.rows if r.thread["tid"] == log.pid]
        waited = sum(r.weight_ns for r in main if r.state == "lock" and "locks" in r.native)
        self.assertGreater(waited, 400e6)
        held = sum(r.weight_ns for r in log.rows if r.state == "sleep" and "hold_lock" in r.native)
        self.assertGreater(held, 400e6)

    def test_pipe(self):
        recording = self.work("pipes", 600)
        child = recording.truth["child"]
        parent = next(log for log in recording.logs if log.pid != child)
        self.assert_state(parent, "process", 0.9)
        self.assertGreater(parent.share(lambda r: r.waits_for == (child, child), WORTH), 0.8)
        child = next(log for log in recording.logs if log.pid == child)
        self.assert_state(child, "running", 0.8)
        if HAS_PERF:
            self.assertGreater(child.share(lambda r: "work_long" in r.native, WORTH), 0.8)

    @ONCE
    def test_wait_for_child(self):
        recording = self.load("waits", 500)
        child = recording.truth["child"]
        parent = next(log for log in recording.logs if log.pid != child)
        self.assertGreater(parent.share(lambda r: r.waits_for == (child, child)), 0.8)

    def test_file(self):
        log = self.load("syncs", 600, self.folder + "/file").logs[0]
        blocked = lambda r: WORTH(r) and r.state not in ON_CPU
        self.assertGreater(sum(map(blocked, log.rows)), 3)
        self.assert_state(log, "io", 0.9, blocked)

    @NEEDS_PERF
    def test_shares(self):
        """The share is within four standard deviations."""
        recording = self.work("shares", 1000, hertz="500")
        truth = recording.truth["work_long"] / sum(recording.truth.values())
        log = recording.logs[0]
        known = lambda r: r.state == "running" and {"work_long", "work_short"} & set(r.native)
        self.assertGreater(log.share(known, lambda r: r.state in ON_CPU), 0.85)
        deviation = (truth * (1 - truth) / log.accounts["cpu.perf.samples"]) ** 0.5
        self.assertAlmostEqual(log.share(lambda r: "work_long" in r.native, known), truth,
                               delta=4 * deviation)

    @NEEDS_PERF
    def test_page_faults(self):
        recording = self.work("faults", 1000)
        self.assert_state(recording.logs[0], "fault", 0.6 * recording.truth["kernel_share"])

    @NEEDS_PERF
    def test_page_faults_without_privileges(self):
        """The kernel then hides its own time. Page faults are counted, and few are sampled."""
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            if os.getuid() or int(file.read()) != 2:
                self.skipTest("needs root and kernel.perf_event_paranoid=2")
        os.chmod(self.folder, 0o777)
        try:
            recording = self.load("faults", 500, user=65534, group=65534, extra_groups=[])
        except PermissionError as error:
            self.skipTest(str(error))
        if recording.truth["faults_per_ms"] < 200:
            self.skipTest("page faults take long here, so there are few: " + str(recording.truth))
        log = recording.logs[0]
        self.assertEqual(log.meta["cpu.kernel"], "estimated")
        self.assertEqual(log.accounts["cpu.lost.perf"], 0)
        self.assertLess(log.accounts["cpu.perf.samples"], 1000)
        self.assert_state(log, "fault", 0.5)

    @NEEDS_PERF
    def test_kernel(self):
        log = self.work("kernel", 500).logs[0]
        self.assert_state(log, "kernel", 0.8)

    @ONCE
    def test_many_threads(self):
        seen = lambda recording: recording.logs[0].accounts["threads.seen"]
        recording = self.patiently((300, 3000, 15000), lambda r: seen(r) == 501,
                                   lambda ms: self.load("many_threads", ms))
        log = recording.logs[0]
        self.assertEqual(seen(recording), 501)
        self.assert_state(log, "sleep", 0.9)
        for total in log.thread_ns().values():
            self.assertLess(total, recording.info["duration_ns"])

    def test_short_threads(self):
        recording = self.load("short_threads", 500)
        log = recording.logs[0]
        self.assertGreater(recording.truth["threads"], 20)
        self.assertLess(len(log.rows), 2000)

    def test_short_processes(self):
        recording = self.load("short_processes", 400)
        self.assertGreater(recording.truth["processes"], 2)
        self.assertGreater(len(recording.logs), 0)

    @ONCE
    def test_few_descriptors(self):
        """No process is charged twice if xtrace runs out of files."""
        started = time.monotonic()
        recording = self.record("sh", "-c", "for i in $(seq 60); do sleep 2 & done; wait",
                                file_limit=64)
        life_ns = (time.monotonic() - started) * 1e9
        self.assertRegex(recording.done.stderr, r"not sampled: limit of \d+ CPU logs reached")
        self.assertEqual(len({log.pid for log in recording.logs}), len(recording.logs))
        self.assertGreater(len(recording.logs), 5)
        self.assertLess(len(recording.logs), 62)
        for log in recording.logs:
            self.assertLess(sum(log.thread_ns().values()), life_ns)

    @ONCE
    def test_named_like_a_thread_of_the_tracer(self):
        program = self.folder + "/xtrace-writer"
        shutil.copy(LOAD, program)
        self.assert_state(self.record(program, "sleeps", "300").logs[0], "sleep", 0.9)

    @ONCE
    def test_more_processes_than_open_logs(self):
        """The limit applies to processes that exist at the same time."""
        recording = self.record("sh", "-c", "for i in $(seq 50); do sleep 0.05; done",
                                file_limit=64)
        self.assertNotIn("not sampled", recording.done.stderr)
        self.assertGreater(len(recording.logs), 40)

    @ONCE
    def test_symbols_of_many_processes(self):
        """Embedding symbols into each small log would delay the exit."""
        script = "for i in $(seq 50); do sleep %s & done; wait"
        logs = self.patiently((0.5, 5, 25), lambda recording: len(recording.logs) > 40,
                              lambda s: self.record("sh", "-c", script % s)).logs
        self.assertGreater(len(logs), 40)
        self.assertLessEqual(sum(bool(log.records["SYMBOL"]) for log in logs), 32)

    def test_killed(self):
        started = time.monotonic()
        recording = self.load("killed", 300, status=128 + 9)
        self.assertLess(time.monotonic() - started, 10)
        log = recording.logs[0]
        self.assert_state(log, "running", 0.8)
        self.assertTrue(recording.info["cpu"][0]["closed"])

    def test_exec(self):
        log = self.load("execs", 300).logs[0]
        self.assertEqual(log.meta["process.cmdline"].split()[-2:], ["sleeps", "300"])
        asleep = [r for r in log.rows if r.state == "sleep"]
        self.assertGreater(sum(r.weight_ns for r in asleep), 200e6)
        for row in asleep:
            self.assertIn("sleeps", row.native)

    @ONCE
    def test_exec_in_a_thread(self):
        log = self.load("thread_execs", 100).logs[0]
        self.assertGreater(sum(r.weight_ns for r in log.rows if r.state == "sleep"), 300e6)

    @ONCE
    def test_weights_are_the_life_time(self):
        recording = self.load("locks", 500)
        log = recording.logs[0]
        main = next(t["id"] for t in log.threads.values() if t["tid"] == log.pid)
        life_ns = recording.info["duration_ns"]
        self.assertAlmostEqual(log.thread_ns()[main] / 1e6, life_ns / 1e6,
                               delta=60 + 0.2 * life_ns / 1e6)
        self.assertGreater(log.thread_ns()[main], 480e6)

    def test_bytes_of_a_sample(self):
        log = self.load("shares", 500, hertz="1000").logs[0]
        stored = sum(c["stored_bytes"] for c in log.chunks if c["kind"] == "CPU_SAMPLE")
        self.assertLess(stored / log.accounts["cpu.observations"], 30)

    @ONCE
    def test_short_program(self):
        seconds = []
        for option in ("--cpu", "-q"):
            started = time.monotonic()
            subprocess.run([XTRACE, "record", option, "-o", self.folder + "/short", "true"],
                           capture_output=True, check=True)
            seconds.append(time.monotonic() - started)
        self.assertLess(seconds[0], 2 + 5 * seconds[1])
        recording = self.record("true")
        self.assertLess(len(recording.logs), 2)
        self.assertRegex(recording.done.stderr, "ended before the first sample|sampled 1 process")
        self.assertNotIn(", 0 samples", recording.done.stderr)

    @ONCE
    def test_reports_missing_cpu_time(self):
        missing = r"\d+ % of the CPU time is missing"
        script = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"
        self.assertRegex(self.record("sh", "-c", script).done.stderr, missing)

    @ONCE
    def test_reports_no_missing_cpu_time(self):
        done = self.load("kernel", 800).done
        self.assertNotIn("of the CPU time is missing", done.stderr)

    @ONCE
    def test_killed_tracer(self):
        """The log tells what was sampled, even if xtrace cannot complete it."""
        folder = self.folder + "/data"
        with subprocess.Popen([XTRACE, "record", "--cpu", "-o", folder, LOAD, "sleeps", "2500"],
                              stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as tracer:
            time.sleep(0.7)
            tracer.kill()
        logs = glob.glob(folder + "/*.cpu.xtr")
        self.assertEqual(len(logs), 1)
        log = Log(DUMP, logs[0])
        self.assertIn("process.exe", log.meta)
        self.assertTrue(log.threads)

    def test_summary(self):
        recording = self.load("sleeps", 200)
        self.assertRegex(recording.done.stderr, r"sampled 1 process, 1 thread, \d+ samples")
        self.assertEqual(recording.info["processes"], [])
        self.assertGreater(recording.info["cpu"][0]["samples"], 5)
        missing = "CPU stacks of running native code are missing: XTRACE_CPU_PERF=off"
        self.assertEqual(missing in recording.done.stderr, not HAS_PERF)

    @ONCE
    def test_untraceable_program(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to give up")
        program = self.folder + "/unreadable"
        shutil.copy(LOAD, program)
        os.chmod(program, 0o711)
        os.chmod(self.folder, 0o777)
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               XTRACE, "record", "--cpu", "-o", self.folder + "/data",
                               program, "sleeps", "1000"],
                              capture_output=True, text=True, check=False)
        if "setpriv" in done.stderr or "Permission denied" in done.stderr:
            self.skipTest(done.stderr)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertIn("may not be traced (setuid, or not readable)", done.stderr)
        self.assertLess(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime, 0.4)

    # Python

    @ONCE
    def test_pid_namespace(self):
        unshare = ["unshare", "-pf", "--mount-proc"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
            self.skipTest("unshare is not allowed")
        recording = self.record(*unshare, PYTHON, HERE + "/paths.py", "1")
        log = next(log for log in recording.logs if "paths.py" in log.meta["process.cmdline"]
                   and "unshare" not in log.meta["process.cmdline"])
        self.assertEqual(log.pid, 1)
        ours = [r for r in log.rows if ("main", "paths.py") in r.python]
        self.assertGreater(sum(r.weight_ns for r in ours), 100e6)

    def test_gil(self):
        recording = self.record(PYTHON, HERE + "/gil.py", "0.8")
        log = recording.logs[0]
        spinners = {t["tid"] for t in log.threads.values() if t["tid"] != log.pid}
        waits = lambda r: r.state == "gil"
        spins = lambda r: r.thread["tid"] in spinners
        self.assertGreater(log.share(waits, lambda r: spins(r) and WORTH(r)), 0.15)
        for row in filter(waits, log.rows):
            self.assertNotEqual(row.waits_for[1], row.thread["tid"])
        named = log.share(lambda r: r.waits_for[0] == log.pid and r.waits_for[1] in spinners,
                          lambda r: waits(r) and spins(r))
        self.assertGreater(named, 0.5)

    def test_python_paths_exist(self):
        ours_of = lambda log: [r for r in log.rows if ("main", "paths.py") in r.python]
        count = lambda recording: sum(r.count for r in ours_of(recording.logs[0]))
        recording = self.patiently(
            ("1", "10", "20"), lambda recording: count(recording) > 50,
            lambda s: self.record(PYTHON, HERE + "/paths.py", s, hertz="400"))
        self.assertGreater(count(recording), 50)
        log = recording.logs[0]
        ours = ours_of(log)
        for row in ours:
            names = [name for name, _ in row.python]
            self.assertFalse({"leaf_a", "middle_a", "outer_a"} & set(names) and
                             {"leaf_b", "middle_b", "outer_b"} & set(names), names)
            self.assertEqual(names[-2:], ["main", "<module>"])
            if "leaf_a" in names:
                self.assertIn("middle_a", names)
            self.check_native(row, names)
        changed = log.accounts["cpu.python.changed"] / log.accounts["cpu.python.read"]
        print(f"{SOURCE}: {len(ours)} paths, {changed:.0%} of reads changed, "
              f"{log.share(lambda r: r.flags & DROPPED):.0%} without native frames that do not fit",
              file=sys.stderr)

    def check_native(self, row, names):
        """C functions that only one of the paths calls."""
        if not row.native or row.flags & NO_NATIVE:
            return
        if any("json" in name or "encoder" in name for name in row.native):
            self.assertTrue({"leaf_b", "middle_b", "outer_b"} & set(names), (names, row.native))
        if any(name == "list_sort_impl" for name in row.native):
            self.assertIn("outer_b", names)

    def test_data_loader(self):
        recording = self.record(PYTHON, HERE + "/loader.py", self.folder, "0.8")
        workers = recording.truth["workers"]
        log = next(log for log in recording.logs if log.pid not in workers)
        waits = lambda r: any(name == "_try_get_data" for name, _ in r.python)
        self.assertGreater(sum(r.weight_ns for r in log.rows if waits(r)), 400e6)
        self.assertGreater(log.share(lambda r: r.waits_for[0] in workers, waits), 0.6)
        self.assertGreater(log.share(lambda r: r.state == "process", waits), 0.6)

    def test_changed_frames_are_flagged(self):
        log = self.record(PYTHON, HERE + "/gil.py", "0.5").logs[0]
        for row in log.rows:
            if row.flags & NO_PYTHON and row.python:
                self.assertEqual(row.native, ())


class Options(unittest.TestCase):
    @ONCE
    def test_rejects_bad_rates(self):
        for value in ("0", "1001", "fast", "-5", "99.5"):
            done = subprocess.run([XTRACE, "record", f"--cpu={value}", "true"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("it must be a number of samples per second from 1 to 1000", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
