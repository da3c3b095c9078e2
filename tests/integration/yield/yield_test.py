#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a program that profiles itself: untraced, traced, armed, and traced with --no-yield.

Its profiler sees the same as without the tracer. The log has the work before the profiler, and the
work after it if the profiler released CUPTI. With --no-yield, CUPTI refuses the profiler, like any
second tool.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

GOOD = "profiler: 200 kernels, 0 other records, 0 wrong times, 0 foreign buffers, zeroed 0"
REFUSED = "profiler: error 39"

# mode: its output, the kernels in our log, and the switches of recording
Expected = collections.namedtuple("Expected", "lines kernels switches")
CASES = {
    "stays": Expected([GOOD], 100, [0, 1]),  # recording is always on at the end of the log
    "leaves": Expected([GOOD], 150, [0, 1]),
    "finalizes": Expected([GOOD], 150, [0, 1]),
    "activity": Expected([GOOD], 100, [0, 1]),
    "forks": Expected([GOOD, "child: 3"], 100, [0, 1]),
    "twice": Expected([GOOD, GOOD], 150, [0, 1, 0, 1]),
    "clock": Expected([GOOD], 150, [0, 1]),
    "keeps": Expected([GOOD], 150, [0, 1]),
    "late": Expected([GOOD], 150, [0, 1]),
    "reloads": Expected([GOOD], 150, [0, 1]),
    "loading": Expected([GOOD], 150, [0, 1]),
}


class Run:
    def __init__(self, args, folder, mode, traced, yields, fault="", start=""):
        self.data = os.path.join(folder, "%s.%d%d%s%s" % (mode, traced, yields, fault, start))
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("XTRACE_", "CUDA_", "NVTX_", "LD_"))}
        variables.update(LD_LIBRARY_PATH=args.simgpu, XTRACE_DATA=self.data,
                         XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"),
                         XTRACE_SIMGPU_KERNEL_NS="1000:20000", XTRACE_SIMGPU_REUSE_NAMES="1")
        if fault:
            variables["XTRACE_SIMGPU_FAULT"] = fault
        if traced:
            variables["CUDA_INJECTION64_PATH"] = args.inject
        if not yields:
            variables["XTRACE_YIELD"] = "off"
        if start:
            variables["XTRACE_START"] = start
        path = self.data + ".said"
        if yields and traced and not start:
            variables["CLIENT_WAITS"] = path
        with open(path, "w", encoding="utf-8") as said:
            done = subprocess.run([args.client, mode, args.loaded], env=variables, stdout=subprocess.PIPE,
                                  stderr=said, text=True, timeout=50)
        with open(path, encoding="utf-8") as said:
            self.said = said.read().splitlines()
        assert done.returncode == 0, "%s: status %d\n%s%s" % (mode, done.returncode, done.stdout,
                                                             self.said)
        self.lines = done.stdout.splitlines()

    def dump(self, args, *options):
        logs = [name for name in os.listdir(self.data) if name.endswith(".xtr")]
        assert len(logs) == 1, os.listdir(self.data)
        return subprocess.run([sys.executable, "-B", args.dump, *options,
                               os.path.join(self.data, logs[0])],
                              capture_output=True, text=True)


def check_log(args, run, mode, client):
    expected = CASES[mode]
    done = run.dump(args, "--check")
    found = re.search(r"good: \d+ chunks, (\d+) calls, (\d+) kernels, closed", done.stdout)
    assert done.returncode == 0 and found, done.stdout + done.stderr
    assert int(found[2]) == expected.kernels, "%s: %s" % (mode, done.stdout)
    rows = re.findall(r"^SWITCH.*\bon=(\d)\b.*\bwhy=(\d)\b.*\bwho=(\S*)",
                      run.dump(args, "--kind", "SWITCH").stdout, re.M)
    assert [int(row[0]) for row in rows] == expected.switches, rows
    for is_on, why, who in rows:
        if is_on == "0":
            assert why == "1" and client in who, rows


def check_owners(args, run, mode):
    """Correlation ids may restart when we return: work before and after stays separate."""
    done = subprocess.run([args.merge, "--folded", "-", "--weight", "count", run.data],
                          capture_output=True, text=True)
    counts, kernels = collections.Counter(), set()
    for path, count in (line.rsplit(" ", 1) for line in done.stdout.splitlines()):
        counts["before" if ";work_before;" in path else "behind" if ";work_behind;" in path
               else path] += int(count)
        kernels.add(path.rpartition("[GPU_Kernel]")[2])
    behind = CASES[mode].kernels - 100
    assert counts == ({"before": 100, "behind": behind} if behind else {"before": 100}), counts
    # The new module's kernel name may be at the address of the old one's.
    assert kernels == ({"kernel", "behind"} if mode == "reloads" else {"kernel"}), kernels


def main():
    parser = argparse.ArgumentParser()
    for name in ("inject", "simgpu", "dump", "merge", "loaded", "client"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("modes", nargs="+", choices=[*CASES, "all"])
    args = parser.parse_args()
    client = os.path.basename(args.client)
    with tempfile.TemporaryDirectory(prefix="xtrace-yield.") as folder:
        for mode in CASES if args.modes == ["all"] else args.modes:
            expected = CASES[mode]
            bare = Run(args, folder, mode, False, False)
            assert bare.lines == expected.lines, bare.lines
            run = Run(args, folder, mode, True, True)
            assert run.lines == bare.lines, "%s: %s, bare %s\n%s" % (mode, run.lines, bare.lines,
                                                                     run.said)
            assert client in run.said[0] and "recording pauses" in run.said[0], run.said
            check_log(args, run, mode, client)
            check_owners(args, run, mode)
            # An armed process does not use CUPTI, so the profiler has it to itself.
            for start in ("armed", "armed-graphs"):
                run = Run(args, folder, mode, True, True, start=start)
                assert run.lines == bare.lines and not run.said, (mode, run.lines, run.said)
                assert " 0 kernels, closed" in run.dump(args, "--check").stdout
        # Disabling late must not disable what the profiler has enabled meanwhile.
        run = Run(args, folder, "keeps", True, True, "slow_disable:1500")
        assert run.lines == [GOOD], (run.lines, run.said)
        assert "recording pauses" in run.said[-2], run.said
        check_log(args, run, "keeps", client)
        # These versions of CUPTI are not safe after their memory for records was freed.
        for mode, fault, says in (("finalizes", "version:27", "cannot resume recording: CUPTI 12.9"),
                                  ("finalizes", "version:130000", "cannot resume recording: CUPTI"),
                                  ("leaves", "version:27", "recording resumed")):
            run = Run(args, folder, mode, True, True, fault)
            assert run.lines == [GOOD] and says in run.said[1], (run.lines, run.said)
        refused = Run(args, folder, "stays", True, False)
        assert refused.lines == [REFUSED], refused.lines
        assert not refused.said, refused.said
        # CUPTI asks nothing of a tool that does not subscribe, and serves it.
        run = Run(args, folder, "activity", True, False)
        assert run.lines == [GOOD] and client in run.said[0], (run.lines, run.said)
        assert "recording ends: " in run.said[0], run.said
        check_log(args, run, "activity", client)
        # A tool that only tests which kinds exist takes nothing from us.
        for yields in (False, True):
            run = Run(args, folder, "tries", True, yields)
            assert run.lines == ["tried"] and not run.said, (run.lines, run.said)
            assert "150 kernels, closed" in run.dump(args, "--check").stdout


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(str(error))
