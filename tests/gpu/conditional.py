#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records CUDA graphs that decide on the GPU what runs, in each way of recording, on a real GPU.

Builds tests/gpu/conditional.cu with nvcc (or takes --program) and runs each of its kinds bare, with
the options of RECORDED, armed with starts and stops, attached to, and with each --cupti. Checks:
- The exit status is 0 and the kernels of the program counted correctly, as in the bare run.
- Recorded from start to end, each launch of a graph with a conditional node is one row of the whole
  graph. Their sum is not more than the time between the program's events. If their launches take
  long, it is most of that time.
- All other graphs are recorded kernel by kernel.
  This holds for each --cupti of CUDA 12 and 13, too.
- Each other run has rows, too. A CUPTI that is refused says so.

In three runs, a kernel launches a graph that is older than CUPTI's first use. These fail with CUPTI
alone, too, and are shown as known.

Prints a table. Exit status: 0 success, 1 a check failed, 2 usage, 77 no nvcc.
"""

import argparse
import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from gpu_results import SKIPPED, finish

HERE = os.path.dirname(os.path.abspath(__file__))
DUMP = os.path.join(HERE, "..", "tools", "xtrace-dump")
WHOLE = 0xFFFFFFFF
LIMIT_S = 60
CONDITIONAL = ("while", "nested", "child", "if", "switch")
ITERATIONS, LAUNCHES, KERNELS, SECONDS = 500, 50, 20, 5
LONG_MS = 100
WITH_TIMES = re.compile(r"libcupti\.so\.1[23]")  # older ones do not know conditional nodes
RECORDED = {
    "default": [], "launch": ["--api", "launch"], "all": ["--api", "all"], "cpu": ["--cpu"],
    "flight recorder": ["--flight-recorder", "5s"],
}
OTHERS = ("stopped", "switched", "armed", "armed graphs", "attach", "attach armed", "threads")
# With more threads, and CUPTI alone.
STRESS = ("bare", "kernels alone", "default", "flight recorder", "paused", "stopped", "switched",
          "armed", "attach", "attach armed")
STRESS_SECONDS, STRESS_THREADS = 5, 3
SWITCHES = 12  # starts and stops within SECONDS
KNOWN = {("forget", mode) for mode in ("armed", "attach", "attach armed")}
# Rows of ordinary kernels in a launch, beside KERNELS kernels of a plain graph.
ORDINARY_KERNELS = 6


def end(process):
    """Kills a command with the program that it runs: a program that hangs keeps the pipes open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run(command, environment=None):
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", env=environment, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            end(process)
            return "timeout", *process.communicate()


def rows_of(folder, dump, at_most=None):
    """Counts and nanoseconds in the logs of a folder: whole graphs, other kernels."""
    sums = {"whole": 0, "whole_ns": 0, "kernels": 0}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not re.search(r"\d\.xtr$", name):
            continue
        with subprocess.Popen([sys.executable, dump, "--kind", "KERNEL",
                               os.path.join(folder, name)], stdout=subprocess.PIPE,
                              text=True) as shown:
            for line in shown.stdout:
                fields = dict(field.split("=", 1) for field in line.split("\t") if "=" in field)
                if "graph_node" in fields and int(fields["graph_node"]) & WHOLE == WHOLE:
                    sums["whole"] += 1
                    sums["whole_ns"] += int(fields["duration_ns"])
                elif "graph_node" in fields:
                    sums["kernels"] += 1
                if at_most and sums["whole"] + sums["kernels"] >= at_most:
                    shown.kill()
                    return sums
    return sums


class Runs:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.results, self.problems = [], []

    def command(self, kind, seconds=0, threads=0):
        iterations = ITERATIONS * KERNELS if kind == "dynamic" else ITERATIONS
        return [self.options.program, kind, str(iterations), str(LAUNCHES), str(KERNELS),
                str(seconds), str(threads)]

    def trace(self, kind, mode):
        return os.path.join(self.scratch, re.sub(r"\W+", "-", "%s %s" % (kind, mode)))

    def xtrace(self, *arguments):
        return [self.options.xtrace, *arguments]

    def while_running(self, command, actions, environment=None):
        """Starts a program and runs the actions with its process id, once it launches graphs."""
        said = ""
        with tempfile.TemporaryFile("w+") as out, subprocess.Popen(
                command, stdout=out, stderr=subprocess.PIPE, text=True, errors="replace",
                env=environment, start_new_session=True) as process:
            watchdog = threading.Timer(LIMIT_S, end, [process])
            watchdog.start()
            for line in process.stderr:
                said += line
                if line.startswith("launching"):
                    for action in actions:
                        if isinstance(action, float):
                            time.sleep(action)
                            continue
                        status, _, err = run([word.replace("PID", line.split()[1])
                                              for word in action], environment)
                        said += err if status else ""
                    break
            said += process.stderr.read()
            status = process.wait()
            watchdog.cancel()
            out.seek(0)
            return status, out.read(), said

    def run_mode(self, kind, mode, trace, threads=0, environment=None):
        record = self.xtrace("record", "-o", trace)
        once = self.command(kind, STRESS_SECONDS if threads else 0, threads)
        long = self.command(kind, SECONDS, threads)
        start, stop = self.xtrace("start", "PID"), self.xtrace("stop", "PID")
        attach = self.xtrace("attach", "-o", trace)
        switched = [0.2, start, 1.0, stop, 0.5, start]
        if mode == "bare":
            return run(once)
        if mode == "kernels alone":
            return run(once, dict(environment or os.environ, XTRACE_BENCH_FLOOR="kernel",
                                  CUDA_INJECTION64_PATH=self.options.floor))
        if mode in RECORDED:
            return run([*record, *RECORDED[mode], "--", *once], environment)
        if mode == "threads":
            return run([*record, "--", *self.command(kind, 1, 3)])
        if mode == "switched":
            return self.while_running([*record, "--", *long],
                                      [stop, 0.1, start, 0.1] * SWITCHES, environment)
        if mode == "attach":
            return self.while_running(long, [[*attach, "--duration", "1s", "PID"]], environment)
        if mode == "attach armed":
            return self.while_running(long, [[*attach, "--armed", "PID"], *switched[:4]],
                                      environment)
        option = {"armed": ["--armed"], "armed graphs": ["--armed=graphs"], "paused": ["--paused"],
                  "stopped": []}.get(mode)
        if option is not None:
            return self.while_running(
                [*record, *option, "--", *long],
                switched[2:] if mode == "stopped" else switched, environment)
        return run([*record, "--", *once], dict(os.environ, XTRACE_CUPTI=mode))

    def examine(self, job):
        kind, mode = job
        began = time.monotonic()
        trace = self.trace(kind, mode)
        status, out, err = self.run_mode(kind, mode, trace)
        seconds = time.monotonic() - began
        found = re.match(r"ok launches (\d+) gpu_ms (\S+)", out)
        rows = rows_of(trace, self.options.dump)
        launches, event_ms = (int(found[1]), float(found[2])) if found else (0, 0)
        said = [line for line in err.splitlines() if line.startswith("xtrace: ")
                and not re.match("xtrace: (recorded|CUPTI|GPU)", line)]
        row = {"kind": kind, "mode": mode, "status": status, "launches": launches,
               "event_ms": event_ms, "said": said, "seconds": round(seconds, 1), **rows}
        self.results.append(row)
        print("%-8s %-16s %3s %7s launches %7d whole %8.1f of %8.1f ms %8d kernels %5.1f s %s" % (
            kind, os.path.basename(mode)[:16], status, launches, rows["whole"],
            rows["whole_ns"] / 1e6, event_ms, rows["kernels"], seconds,
            " | ".join(said)[:160]), flush=True)
        if (kind, mode) in KNOWN:
            print("    known: status %s, %s" % (status, err.strip().splitlines()[-1:]))
        elif status != 0 or not found:
            self.problems.append("%s, %s: status %s, %s" % (
                kind, mode, status, (out + err).strip()[-600:]))
        elif (mode in RECORDED and mode != "flight recorder") or WITH_TIMES.search(mode):
            self.check_rows(row)
        elif mode != "bare" and not rows["kernels"] + rows["whole"] and \
                "no usable libcupti" not in err:
            self.problems.append("%s, %s: nothing was recorded: %s" % (kind, mode, err[-300:]))

    def stress(self, job):
        """Launches graphs from four threads. Returns what ran, how it failed, has records, said."""
        kind, how, cupti, number = job
        environment = dict(os.environ, **({"XTRACE_CUPTI": cupti} if cupti else {}))
        trace = self.trace(kind, "stress %s %s %d" % (how, cupti, number))
        status, out, err = self.run_mode(kind, how, trace, STRESS_THREADS, environment)
        has_rows = any(rows_of(trace, self.options.dump, at_most=1).values())
        failed = [line for line in (out + err).splitlines()
                  if "cudaError" in line or "WRONG" in line]
        said = [line for line in err.splitlines() if line.startswith("xtrace") and
                re.search("could make|stopped|pauses|cannot|fail", line)]
        failure = "" if status == 0 else "%s %s" % (status, failed[:1])
        if failure:
            print("stress: %s, %s, %s: %s" % (*job[:3], failure), flush=True)
        return (kind, how, cupti), failure, has_rows, said

    def stress_all(self, pool):
        """Bare runs and those with CUPTI alone tell whose failure it is."""
        cuptis = ["", *self.options.cupti]
        jobs = [(kind, how, cupti, number) for number in range(self.options.stress)
                for kind in ("while", "plain") for how in STRESS
                for cupti in (cuptis if how != "bare" else [""])
                if (how != "kernels alone" or self.options.floor) and
                re.search(self.options.only_stress, "%s, %s, %s" % (kind, how, cupti))]
        results = {}
        for what, *result in pool.map(self.stress, jobs):
            results.setdefault(what, []).append(result)
        for what, all_runs in results.items():
            failed = [failure for failure, _, _ in all_runs if failure]
            said = sorted({line for _, _, lines in all_runs for line in lines})
            print("stress: %-6s %-15s %-17s %d of %d failed, %d recorded work %s %s" % (
                what[0], what[1], os.path.basename(what[2]), len(failed), len(all_runs),
                sum(has_rows for _, has_rows, _ in all_runs), failed[:1],
                said[0][:150] if said else ""), flush=True)
            self.results.append({"stress": what, "failed": failed, "runs": len(all_runs),
                                 "said": said})
            if what[1] in ("default", "flight recorder", "paused", "stopped") and not all(
                    has_rows for _, has_rows, _ in all_runs):
                self.problems.append("%s, %s, %s: recorded nothing" % what)
            if failed and what[1] not in ("bare", "kernels alone"):
                self.problems.append("%s, %s, %s: %d of %d runs failed: %s" % (
                    *what, len(failed), len(all_runs), failed[0]))

    def check_rows(self, row):
        where = "%(kind)s, %(mode)s: " % row
        if row["kind"] in CONDITIONAL:
            share = row["whole_ns"] / 1e6 / row["event_ms"]
            if row["whole"] != row["launches"]:
                self.problems.append(where + "%(whole)d whole graphs of %(launches)d" % row)
            if not (0 if row["event_ms"] < LONG_MS else 0.9) < share <= 1.001:
                self.problems.append(where + "%.3f of the time of the events" % share)
        elif row["whole"]:
            self.problems.append(where + "%(whole)d graphs are recorded as a whole" % row)
        own = KERNELS if row["kind"] == "plain" else 0
        expected = row["launches"] * (ORDINARY_KERNELS + own)
        if row["kind"] in CONDITIONAL + ("plain",) and row["kernels"] != expected:
            self.problems.append(where + "%d kernels one by one, expected %d" % (
                row["kernels"], expected))


def build(options, folder):
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        print("no nvcc")
        sys.exit(SKIPPED)
    program = os.path.join(folder, "conditional")
    subprocess.run([nvcc, "-O2", "-std=c++17", "-rdc=true", "-arch=native", "-o", program,
                    os.path.join(HERE, "conditional.cu"), "-lcudadevrt"], check=True)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xtrace", required=True, help="the command")
    parser.add_argument("--dump", default=DUMP, help="xtrace-dump (that of the checkout)")
    parser.add_argument("--program", help="the built program")
    parser.add_argument("--cupti", action="append", default=[], help="also with this libcupti")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    parser.add_argument("--jobs", type=int, default=6, help="runs at once (6)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only 'KIND, MODE' like this")
    parser.add_argument("--stress", type=int, default=0, metavar="COUNT",
                        help="also COUNT times from four threads for 5 s: bare, with the kernels "
                        "of CUPTI alone (--floor), recorded, started and stopped late, and "
                        "attached to")
    parser.add_argument("--only-stress", default="", metavar="REGEX",
                        help="of these, only 'KIND, MODE, CUPTI' like this")
    parser.add_argument("--floor", help="bench/cupti_floor.c, built")
    options = parser.parse_args()
    kinds = CONDITIONAL + ("plain", "tail", "forget", "dynamic")
    jobs = [(kind, mode) for mode in ("bare", *RECORDED, *OTHERS) for kind in kinds]
    jobs += [(kind, path) for path in options.cupti for kind in ("while", "plain")]
    with tempfile.TemporaryDirectory(prefix="conditional") as scratch:
        options.program = options.program or build(options, scratch)
        runs = Runs(options, scratch)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(runs.examine, [job for job in jobs
                                         if re.search(options.only, "%s, %s" % job)]))
            runs.stress_all(pool)
    finish(options.output, runs.results, runs.problems)


if __name__ == "__main__":
    main()
