#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace-mpi: outputs and messages must be the same as those of one process, whatever the
number of processes. If a process fails, all must end.

usage: mpi_test.py XTRACE XTRACE_MPI MPIEXEC LLM_INFERENCE SAMPLES
"""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

XTRACE, MPI, MPIEXEC, LLM_INFERENCE, SAMPLES = (os.path.abspath(path) for path in sys.argv[1:6])
MERGE = os.path.join(os.path.dirname(XTRACE), "xtrace-merge")
# Lets root run Open MPI, with more processes than processors, on this machine only. Open MPI waits
# before it kills. Its libraries leak.
ENVIRONMENT = dict(
    os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader", OMPI_MCA_plm="isolated",
    OMPI_MCA_plm_rsh_agent="/bin/false", OMPI_MCA_odls_base_sigkill_timeout="0",
    ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
SECONDS_MAX = 120

# Sums, read by all processes; tables of calls, read by all; single events, read by one.
OUTPUTS = [
    ["--folded", "--brief", "--pprof"],
    ["--text", "--summary"],
    ["--chrome", "--csv"],
]
OPTIONS = [[], ["--by", "rank", "--weight", "gpu-idle"], []]


def read_outputs(folder):
    """All files in a folder, by name."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def lines_of(stderr, program):
    """The lines of the program itself: mpirun has some of its own if the status is not 0."""
    return [line[len(program):] for line in stderr.splitlines() if line.startswith(program + ":")]


class Mpi(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="xtrace-mpi-")

    def tearDown(self):
        self.folder.cleanup()

    def run_merge(self, command, program, arguments, outputs, where=None):
        """Returns the status, the messages and the outputs."""
        target = os.path.join(self.folder.name, "out")
        os.mkdir(target)
        for output in outputs:
            arguments = arguments + [output, os.path.join(target, output[2:])]
        result = subprocess.run(command + arguments, env=ENVIRONMENT, capture_output=True,
                                text=True, timeout=SECONDS_MAX, check=False, cwd=where)
        found = read_outputs(target)
        shutil.rmtree(target)
        return result.returncode, lines_of(result.stderr, program), found

    def check(self, logs, process_counts, status):
        for outputs, options in zip(OUTPUTS, OPTIONS):
            if outputs is OUTPUTS[-1]:
                process_counts = [2]
            expected = self.run_merge([MERGE, "--jobs=1"], "xtrace-merge", options + logs, outputs)
            self.assertEqual(expected[0], status)
            for count in process_counts:
                command = [MPIEXEC, "-n", str(count), MPI, "merge"]
                with self.subTest(outputs=outputs, processes=count):
                    found = self.run_merge(command, "xtrace-mpi merge", options + logs, outputs)
                    self.assertEqual(found[:2], expected[:2])
                    self.assertEqual(sorted(found[2]), sorted(expected[2]))
                    for name, content in expected[2].items():
                        self.assertTrue(found[2][name] == content, name + " differs")

    def test_bytes_do_not_depend_on_the_number_of_processes(self):
        self.check([os.path.join(SAMPLES, "sim-ranks")], [1, 2, 3], 0)

    def test_all_samples_together(self):
        """They have graphs, NVTX ranges, Python, JAX, backward passes and ranks of NCCL."""
        logs = sorted(glob.glob(os.path.join(SAMPLES, "*.xtr")))
        logs.append(os.path.join(SAMPLES, "h200-ddp-loader"))
        self.check(logs, [3], 0)

    def test_cpu_samples(self):
        data = os.path.join(self.folder.name, "data")
        program = "'%s' & '%s' & '%s'; wait" % (LLM_INFERENCE, LLM_INFERENCE, LLM_INFERENCE)
        subprocess.run([XTRACE, "record", "--simulate", "--cpu", "-o", data, "--", "sh", "-c", program],
                       capture_output=True, timeout=SECONDS_MAX, check=True)
        self.assertTrue(glob.glob(os.path.join(data, "*.cpu.xtr")))
        self.check([data], [2], 0)

    def test_names_damaged_and_missing_logs_and_merges_the_rest(self):
        logs = []
        for rank in range(4):
            for copy in "ab":
                name = "%d%s.xtr" % (rank, copy)
                source = "sim-ranks" if copy == "a" else "h200-ddp"
                logs.append(os.path.join(self.folder.name, name))
                shutil.copy(os.path.join(SAMPLES, source, "rank-%d.xtr" % rank), logs[-1])
        os.truncate(logs[2], os.path.getsize(logs[2]) * 2 // 3)
        with open(logs[4], "r+b") as file:
            file.seek(os.path.getsize(logs[4]) // 2)
            file.write(b"damage" * 10)
        with open(logs[5], "wb") as file:
            file.write(b"no log" * 100)
        os.remove(logs[6])
        self.check(logs, [2, 3], 1)

    def test_writes_to_stdout(self):
        logs = os.path.join(SAMPLES, "h200-ddp")
        expected = subprocess.run([MERGE, logs], capture_output=True, check=True).stdout
        for command in [MPIEXEC, "-n", "2", MPI, "merge", logs], [MPI, "merge", logs]:
            found = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True,
                                   timeout=SECONDS_MAX).stdout
            self.assertEqual(found, expected)

    def test_reads_what_other_hosts_cannot_open(self):
        """The worker is in another folder, where a path has another log, or none."""
        here, there = (os.path.join(self.folder.name, name) for name in ("here", "there"))
        for rank in range(4):
            for folder in (here, there):
                os.makedirs(folder, exist_ok=True)
                source = "sim-ranks" if folder == here else "h200-ddp"
                if folder == here or rank < 2:
                    shutil.copy(os.path.join(SAMPLES, source, "rank-%d.xtr" % rank), folder)
        logs = ["rank-%d.xtr" % rank for rank in range(4)]
        expected = self.run_merge([MERGE, "--jobs=1"], "xtrace-merge", logs, ["--text"], here)
        # The arguments of process 0 count, so those of the other may be wrong.
        wrong = [":", "-n", "1", "-wdir", there, MPI, "merge", "none"]
        command = [MPIEXEC, "-n", "1", "-wdir", here, MPI, "merge"]
        target = os.path.join(self.folder.name, "text")
        subprocess.run(command + logs + ["--text", target] + wrong, env=ENVIRONMENT, check=True,
                       timeout=SECONDS_MAX)
        with open(target, "rb") as file:
            self.assertEqual(file.read(), expected[2]["text"])

    def test_wrong_usage_is_reported_once(self):
        for arguments in ["merge", "--no-such-option"], ["merge", "/no/such/file"]:
            result = subprocess.run([MPIEXEC, "-n", "2", MPI] + arguments, env=ENVIRONMENT,
                                    capture_output=True, text=True, check=False,
                                    timeout=SECONDS_MAX)
            self.assertEqual(result.returncode, 2)
            self.assertEqual(len(lines_of(result.stderr, "xtrace-mpi merge")), 1, result.stderr)

    def process_of(self, launcher, rank):
        """The process number of a rank below mpirun."""
        while launcher.poll() is None:
            with open("/proc/%d/task/%d/children" % (launcher.pid, launcher.pid),
                      encoding="ascii") as file:
                children = file.read().split()
            for child in children:
                try:
                    with open("/proc/%s/environ" % child, "rb") as file:
                        if b"OMPI_COMM_WORLD_RANK=%d\0" % rank in file.read():
                            return int(child)
                except OSError:
                    pass
            time.sleep(0.001)
        self.fail("mpirun ended too early")

    def test_all_end_if_one_is_killed(self):
        logs = os.path.join(SAMPLES, "sim-ranks")
        for rank in (0, 1):
            launcher = subprocess.Popen([MPIEXEC, "-n", "2", MPI, "merge", logs], env=ENVIRONMENT,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
            victim = self.process_of(launcher, rank)
            # It cannot end before it is killed.
            os.kill(victim, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(victim, signal.SIGKILL)
            _, stderr = launcher.communicate(timeout=SECONDS_MAX)
            self.assertNotEqual(launcher.returncode, 0)
            self.assertIn("rank %d" % rank, stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
