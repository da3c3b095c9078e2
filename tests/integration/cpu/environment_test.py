#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests CPU sampling without the launcher: XTRACE_CPU and xtrace sample, on the simulated GPU.

usage: environment_test.py XTRACE DUMP [UNITTEST ARGUMENT]...
"""
import collections
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cpu_log import Log

XTRACE, DUMP = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "environment_program.py")
PYTHON = os.path.realpath(sys.executable)


def samplers(pid):
    """Ids of the samplers of this process."""
    found = subprocess.run(["pgrep", "-f", "xtrace sample.* %d$" % pid], capture_output=True,
                           text=True, check=False).stdout
    return [int(word) for word in found.split()]


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


class Environment(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="xtrace-environment-")
        self.addCleanup(folder.cleanup)
        self.data = folder.name + "/data"
        self.children = []
        self.addCleanup(self.end_children)

    def end_children(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()

    def variables(self, *options, **more):
        said = subprocess.run([XTRACE, "env", "--simulate", "--format", "json", "-o", self.data,
                               *options], capture_output=True, text=True, check=True).stdout
        return dict(os.environ, **json.loads(said), **more)

    def start(self, *arguments, environment=None, **more):
        child = subprocess.Popen([PYTHON, PROGRAM, *arguments], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 env=environment or self.variables("--cpu", **more))
        self.children.append(child)
        return child

    def finish(self, child):
        """Returns the output of the program and the library. Waits for the sampler to end, too."""
        out, error = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0, error)
        self.assertTrue(wait_until(lambda: not samplers(child.pid)))
        return json.loads(out) if out else {}, error

    def logs(self, are_closed=True):
        paths = sorted(glob.glob(self.data + "/*.cpu*.xtr"))
        if paths and are_closed:
            check = subprocess.run([sys.executable, DUMP, "--check", *paths], capture_output=True,
                                   text=True, check=False)
            self.assertEqual(check.returncode, 0, check.stdout)
        return [Log(DUMP, path) for path in paths]

    def share_in(self, log, function):
        return log.share(lambda row: any(function in frame for frame in row.python), lambda row: row.state == "running")

    def test_program_sees_nothing(self):
        """The program has no child more, no signal and no zombie. Its only open file more is the
        connection to the sampler."""
        truth, error = self.finish(self.start("sees"))
        self.assertEqual(error, "")
        self.assertEqual(truth, {"children": [], "signals": 0, "files": 1})
        self.assertEqual(len(self.logs()), 1)

    def test_process_and_children(self):
        truth, error = self.finish(self.start("forks"))
        self.assertEqual(error, "")
        logs = {log.pid: log for log in self.logs()}
        self.assertEqual(set(logs), {truth["pid"], truth["child"]})
        self.assertGreater(self.share_in(logs[truth["pid"]], "parent_work"), 0.8)
        self.assertGreater(self.share_in(logs[truth["child"]], "child_work"), 0.8)
        meta = logs[truth["pid"]].meta
        self.assertEqual(meta["cpu.source"], "proc")
        self.assertIn("xtrace record --cpu", meta["cpu.why"])

    def test_past_is_not_charged(self):
        """The program computes for a second before it starts CUDA."""
        truth, _ = self.finish(self.start("late"))
        log = self.logs()[0]
        main = [r for r in log.rows if r.thread["tid"] == log.pid]
        sampled_s = sum(r.weight_ns for r in main) / 1e9
        self.assertLess(sampled_s, truth["after_s"] + 0.2)
        self.assertGreater(sampled_s, truth["after_s"] - 0.2)
        self.assertEqual(self.share_in(log, "before_cuda"), 0)

    def test_program_of_child_has_no_second_sampler(self):
        truth, _ = self.finish(self.start("executes"))
        pids = collections.Counter(log.pid for log in self.logs())
        self.assertEqual(pids, {truth["pid"]: 1, truth["child"]: 1})

    def test_child_that_starts_first_has_no_second_sampler(self):
        truth, _ = self.finish(self.start("child_first"))
        pids = collections.Counter(log.pid for log in self.logs())
        self.assertEqual(pids, {truth["pid"]: 1, truth["child"]: 1})

    def test_daemon_has_no_second_sampler(self):
        truth, _ = self.finish(self.start("daemon"))
        self.assertTrue(wait_until(lambda: not samplers(truth["child"])))
        pids = collections.Counter(log.pid for log in self.logs())
        self.assertEqual((pids[truth["pid"]], pids[truth["child"]]), (1, 1), pids)

    def test_program_that_adopts_orphans_has_no_sampler(self):
        """The sampler would be its child, and it would wait for it."""
        _, error = self.finish(self.start("subreaper"))
        self.assertIn("process 1 or a subreaper", error)
        self.assertEqual(self.logs(), [])

    def test_sampler_is_not_pinned(self):
        child = self.start("pinned")
        allowed = os.sched_getaffinity(0)
        self.assertTrue(wait_until(lambda: any(os.sched_getaffinity(pid) >= allowed
                                               for pid in samplers(child.pid))))
        self.finish(child)

    def test_container_that_ends_with_the_program(self):
        """The kernel kills all processes of a PID namespace when its first one ends."""
        space = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*space, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no PID namespaces")
        script = '"$@" & wait $!'
        subprocess.run([*space, "sh", "-c", script, "sh", PYTHON, PROGRAM, "forks"],
                       env=self.variables("--cpu"), capture_output=True, check=True, timeout=60)
        logs = self.logs()
        self.assertEqual(len(logs), 2)
        self.assertGreater(max(self.share_in(log, "parent_work") for log in logs), 0.8)

    def test_two_programs_have_one_each(self):
        both = [self.start("forks"), self.start("forks")]
        pids = collections.Counter()
        for child in both:
            truth, _ = self.finish(child)
            pids[truth["pid"]] = pids[truth["child"]] = 1
        logs = self.logs()
        self.assertEqual(collections.Counter(log.pid for log in logs), pids,
                         [(log.pid, log.meta) for log in logs])

    def test_launcher_samples_alone(self):
        """With the variable and the launcher, each process has one log."""
        environment = dict(os.environ, XTRACE_CPU="99")
        done = subprocess.run([XTRACE, "record", "--simulate", "-o", self.data, "--", PYTHON,
                               PROGRAM, "forks"], env=environment, capture_output=True, text=True,
                              check=True, timeout=60)
        truth = json.loads(done.stdout)
        pids = collections.Counter(log.pid for log in self.logs())
        self.assertEqual(pids, {truth["pid"]: 1, truth["child"]: 1})
        self.assertIn("sampled 2 processes", done.stderr)

    def test_killed_sampler(self):
        child = self.start("long")
        self.assertTrue(wait_until(lambda: samplers(child.pid)))
        time.sleep(1.5)
        for pid in samplers(child.pid):
            os.kill(pid, signal.SIGKILL)
        _, error = self.finish(child)
        self.assertEqual(error, "")
        log = self.logs(are_closed=False)[0]
        self.assertGreater(self.share_in(log, "parent_work"), 0.8)

    def test_killed_sampler_of_a_sleeping_program(self):
        """A wait that has not ended is written, too."""
        child = self.start("sleeps")
        self.assertTrue(wait_until(lambda: samplers(child.pid)))
        time.sleep(1.5)
        for pid in samplers(child.pid):
            os.kill(pid, signal.SIGKILL)
        self.finish(child)
        log = self.logs(are_closed=False)[0]
        slept = sum(row.weight_ns for row in log.rows if row.state == "sleep" and
                    row.thread["tid"] == log.pid)
        self.assertGreater(slept, 0.8e9)

    def test_killed_program(self):
        child = self.start("long")
        self.assertTrue(wait_until(lambda: samplers(child.pid)))
        time.sleep(1)
        child.kill()
        child.wait()
        self.assertTrue(wait_until(lambda: not samplers(child.pid)))
        self.assertGreater(self.logs()[0].accounts["cpu.observations"], 50)

    def test_wrong_values(self):
        for value in ("0", "-1", "1001", "99x", "yes"):
            child = self.start("sees", environment=self.variables(XTRACE_CPU=value))
            _, error = self.finish(child)
            self.assertIn("cannot use XTRACE_CPU=%s" % value, error)
        for value in ("", "off"):
            child = self.start("sees", environment=self.variables(XTRACE_CPU=value))
            self.assertEqual(self.finish(child)[1], "")
        self.assertEqual(self.logs(), [])

    def test_memory_is_forbidden(self):
        """A seccomp filter, as of a container, refuses perf_event_open and process_vm_readv."""
        done = subprocess.run([PYTHON, PROGRAM, "forbids", XTRACE, "record", "--simulate", "--cpu",
                               "-o", self.data, "--", PYTHON, PROGRAM, "forks"],
                              capture_output=True, text=True, check=True, timeout=60)
        self.assertRegex(done.stderr, "Python lines and waits are missing: .*process_vm_readv")
        self.assertRegex(done.stderr, "native code are missing: .*seccomp profile")
        for log in self.logs():
            self.assertGreater(log.share(lambda row: row.state == "running",
                                         lambda row: row.thread["tid"] == log.pid and
                                         row.state not in ("ready", "unknown")), 0.8)
            self.assertEqual(log.share(lambda row: row.python), 0)
        report = subprocess.run([XTRACE, "report", "--text", "--all", self.data], capture_output=True,
                                text=True, check=True).stdout
        self.assertIn("Python code and waits have no path, because memory cannot be read", report)

    def sample(self, pid, *options):
        child = subprocess.Popen([XTRACE, "sample", *options, "-o", self.data, str(pid)],
                                 stderr=subprocess.PIPE, text=True)
        self.children.append(child)
        return child

    def test_command(self):
        program = self.start("long", environment=self.variables())
        self.assertTrue(wait_until(lambda: glob.glob(self.data + "/*.xtr")))
        first = self.sample(program.pid, "--hz", "200")
        self.assertIn("sampling process %d" % program.pid, first.stderr.readline())
        second = self.sample(program.pid)
        error = second.communicate(timeout=10)[1]
        self.assertEqual(second.returncode, 2)
        self.assertIn("is sampled into this directory already", error)
        time.sleep(1)
        first.send_signal(signal.SIGINT)
        error = first.communicate(timeout=10)[1]
        self.assertEqual(first.returncode, 0)
        self.assertRegex(error, "sampled 1 process, [0-9]+ threads?, [0-9,]+ samples")
        self.assertIsNone(program.poll())
        log = self.logs()[0]
        self.assertGreater(self.share_in(log, "parent_work"), 0.8)
        self.assertEqual(log.meta["cpu.hz"], "200")

    def test_command_ends_with_the_process(self):
        program = self.start("sees", environment=self.variables())
        sampler = self.sample(program.pid)
        program.wait()
        sampler.communicate(timeout=10)
        self.assertIn(sampler.returncode, (0, 2))

    def test_command_refuses(self):
        for words, message in ((["x"], "is not the id of a process"), ([], "no process given"),
                               (["1", "2"], "2"), (["0"], "is not the id of a process"),
                               (["4194999"], "there is no such process")):
            done = subprocess.run([XTRACE, "sample", "-o", self.data, *words], capture_output=True,
                                  text=True, check=False, timeout=10)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertTrue(re.search(message, done.stderr), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
