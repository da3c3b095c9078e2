#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests torch.profiler on a real GPU in processes without xtrace, with it, and with --no-yield.

    tests/gpu/yield.py BIN [-o RESULTS]        # BIN: the folder of xtrace

Each run is one process that works before, during and after the use of torch.profiler. Checks
without --no-yield:
- The profiler sees the same kernels, by name and count, as in the untraced run. Their times are
  within the profiled region.
- The log has the kernels from before the profiler and none of its region. One switch names the
  library that took CUPTI.
- With TEARDOWN_CUPTI=1 the profiler releases CUPTI. The log then has the later kernels too.

Prints a table. Exit status: 0 success, 1 a check failed, 77 no PyTorch or GPU.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from gpu_results import SKIPPED, finish

STEPS = {"before": 40, "profiled": 30, "after": 50}


# ---- the program

def work():
    import time
    import torch
    from torch.profiler import ProfilerActivity, profile

    if not torch.cuda.is_available():
        sys.exit(SKIPPED)
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
    data = torch.randn(64, 256, device="cuda")

    def run(steps):
        for _ in range(steps):
            model(data).sum().backward()
        torch.cuda.synchronize()

    run(3)  # loads libraries and selects algorithms
    run(STEPS["before"])
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    began = time.time_ns()
    with profile(activities=activities) as profiler:
        run(STEPS["profiled"])
    ended = time.time_ns()
    # TEARDOWN_CUPTI takes effect in the next calls. The tracer then resumes.
    for _ in range(20):
        run(1)
        time.sleep(0.1)
    run(STEPS["after"])
    trace = os.path.join(os.environ["YIELD_TRACE"])
    profiler.export_chrome_trace(trace)
    with open(trace, encoding="utf-8") as file:
        document = json.load(file)
    base = document.get("baseTimeNanoseconds", 0)
    kernels, outside, odd = {}, 0, 0
    for event in document["traceEvents"]:
        if event.get("cat") != "kernel":
            continue
        kernels[event["name"]] = kernels.get(event["name"], 0) + 1
        start = base + event["ts"] * 1000
        end = start + event["dur"] * 1000
        odd += event["dur"] <= 0
        outside += not began - 1e7 <= start <= end <= ended + 1e7
    print("RESULT " + json.dumps({"kernels": kernels, "outside": outside, "odd": odd,
                                  "began": began, "ended": ended,
                                  "torch": torch.__version__, "gpu": torch.cuda.get_device_name(0)}))


# ---- the runs

class Failure(Exception):
    pass


def find(folder, *names):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    raise SystemExit("%s is not in %s" % (names[0], folder))


def run(args, title, options, environment):
    folder = os.path.join(args.work, title.replace(" ", "_"))
    os.makedirs(folder)
    command = [sys.executable, os.path.abspath(__file__), "--work-itself"]
    if options is not None:
        command = [args.xtrace, "record", "-o", os.path.join(folder, "data"), *options, "--", *command]
    variables = dict(os.environ, YIELD_TRACE=os.path.join(folder, "trace.json"), **environment)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    if done.returncode == SKIPPED:
        print("PyTorch finds no GPU")
        sys.exit(SKIPPED)
    found = re.search(r"^RESULT (.*)$", done.stdout, re.M)
    if done.returncode or not found:
        raise Failure("%s: status %d\n%s%s" % (title, done.returncode, done.stdout, done.stderr))
    result = json.loads(found[1])
    result["said"] = [line for line in done.stderr.splitlines() if line.startswith("xtrace")]
    result["log"] = read_log(args, os.path.join(folder, "data")) if options is not None else None
    return result


def read_log(args, data):
    """Returns kernels and switches of the log with the most kernels."""
    best = {"kernels": 0, "switches": [], "whole": False, "times": []}
    for name in sorted(os.listdir(data)):
        if not name.endswith(".xtr"):
            continue
        path = os.path.join(data, name)
        dump = [sys.executable, "-B", args.dump]
        check = subprocess.run([*dump, "--check", path], capture_output=True, text=True)
        rows = subprocess.run([*dump, "--kind", "SWITCH", path], capture_output=True, text=True)
        kernels = subprocess.run([*dump, "--kind", "KERNEL", path], capture_output=True, text=True)
        times = [int(t) for t in re.findall(r"^KERNEL.*\bstart_ns=(\d+)", kernels.stdout, re.M)]
        if len(times) >= best["kernels"]:
            best = {"kernels": len(times), "whole": check.returncode == 0, "times": times,
                    "check": check.stdout.strip().splitlines()[-1:],
                    "switches": re.findall(
                        r"^SWITCH.*\btime_ns=(\d+).*\bon=(\d)\b.*\bwhy=(\d)\b.*\bwho=(.*)",
                        rows.stdout, re.M)}
    return best


def expect(problems, condition, text):
    if not condition:
        problems.append(text)


def check_yield(title, result, bare, leaves, problems):
    log = result["log"]
    per_step = sum(bare["kernels"].values()) / STEPS["profiled"]
    least = per_step * STEPS["before"]
    expect(problems, result["kernels"] == bare["kernels"],
           "%s: the profiler saw other kernels than in the untraced run" % title)
    # A change of CUPTI's clock damages one record. This CUPTI bug also affects untraced runs.
    expect(problems, result["outside"] <= bare["outside"] + 1 and result["odd"] <= bare["odd"] + 1,
           "%s: %d kernels with times outside the profiled region, %d without a duration; bare %d, %d"
           % (title, result["outside"], result["odd"], bare["outside"], bare["odd"]))
    expect(problems, log["whole"], "%s: the log is damaged: %s" % (title, log.get("check")))
    offs = [row for row in log["switches"] if row[1:3] == ("0", "1")]
    backs = [row for row in log["switches"] if row[1:3] == ("1", "1")]
    expect(problems, len(offs) == 1 and offs[0][3].strip(),
           "%s: switches %s" % (title, log["switches"]))
    expect(problems, log["kernels"] >= least,
           "%s: the log has %d kernels, but at least %d ran before the profiler"
           % (title, log["kernels"], least))
    if leaves:
        expect(problems, len(backs) == 1, "%s: recording did not resume" % title)
        expect(problems, log["kernels"] >= least + per_step * STEPS["after"],
               "%s: the log has %d kernels: those after the profiler are missing"
               % (title, log["kernels"]))
    if offs and backs:
        inside = [t for t in log["times"] if int(offs[0][0]) + 3e8 < t < int(backs[0][0])]
        expect(problems, not inside, "%s: %d recorded kernels while the profiler used CUPTI" % (title, len(inside)))


def report(rows):
    print("%-22s %10s %8s %6s   %10s  %s" % ("run", "profiler's", "outside", "odd", "ours", "switches"))
    for title, result in rows:
        log = result["log"]
        print("%-22s %10d %8d %6d   %10s  %s" % (
            title, sum(result["kernels"].values()), result["outside"], result["odd"],
            log["kernels"] if log else "-",
            "; ".join("%s %s" % ("on" if row[1] == "1" else "off", row[3].strip())
                      for row in log["switches"]) if log else "-"))
        for line in result["said"]:
            print("    " + line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", help="the folder of xtrace")
    parser.add_argument("-o", "--output", help="also write the results to this file (JSON)")
    args = parser.parse_args()
    args.xtrace = find(args.bin, "xtrace", "bin/xtrace")
    args.dump = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/xtrace-dump")
    try:
        import torch  # noqa: F401 (checks that it is installed)
    except ImportError:
        print("PyTorch is not installed")
        sys.exit(SKIPPED)
    problems, rows = [], []
    with tempfile.TemporaryDirectory(prefix="xtrace-yield.") as args.work:
        try:
            for title, options, environment in (
                    ("bare", None, {}),
                    ("--no-yield", ["--no-yield"], {}),
                    ("traced", [], {}),
                    ("bare teardown", None, {"TEARDOWN_CUPTI": "1"}),
                    ("traced teardown", [], {"TEARDOWN_CUPTI": "1"})):
                rows.append((title, run(args, title, options, environment)))
        except Failure as failure:
            problems.append(str(failure))
    results = dict(rows)
    report(rows)
    if len(rows) == 5:
        expect(problems, results["bare"]["kernels"], "bare: the profiler saw no kernels")
        check_yield("traced", results["traced"], results["bare"], False, problems)
        check_yield("traced teardown", results["traced teardown"], results["bare teardown"], True,
                    problems)
        # With --no-yield the tracer keeps CUPTI, and the profiler gets nothing.
        expect(problems,
               not [row for row in results["--no-yield"]["log"]["switches"] if row[2] == "1"],
               "--no-yield: the tracer yielded")
    for _, result in rows:
        if result["log"]:
            del result["log"]["times"]
    finish(args.output, results, problems)


if __name__ == "__main__":
    if "--work-itself" in sys.argv:
        work()
    else:
        main()
