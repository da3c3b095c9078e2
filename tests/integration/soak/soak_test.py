#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long run: memory stays constant, nothing is lost, and each launch belongs to its function.

Runs the program soak for --seconds under the tracer, samples its memory, and compares the merged
log with the program's own counts. Launches of a plugin that was loaded only briefly may have no
name, but never another plugin's.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

WARM_UP = 0.2  # part of the run in which tables and pools grow to their working size
FLAT_KIB_A_MINUTE = 200


def rss_kib(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8") as file:
            found = re.search(r"^VmRSS:\s+(\d+) kB", file.read(), re.M)
        return int(found[1]) if found else None
    except FileNotFoundError:
        return None


def slope(series):
    """KiB per minute: the slope of the line through all points after the warm-up."""
    points = series[int(len(series) * WARM_UP):]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def record(args, folder):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("XTRACE_", "CUDA_", "NVTX_", "LD_"))}
    environment.update(CUDA_INJECTION64_PATH=args.inject, LD_LIBRARY_PATH=args.simgpu,
                       XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"),
                       XTRACE_DATA=os.path.join(folder, "data"), XTRACE_SIMGPU_KERNEL_NS="500:1500")
    command = [args.program, str(args.seconds), str(args.rate), *args.plugins]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        begun, series, told = time.monotonic(), [], 0
        while process.poll() is None:
            at, rss = time.monotonic() - begun, rss_kib(process.pid)
            if rss:
                series.append((at, rss))
            if args.verbose and at - told >= 60:
                told = at
                print("%5.0f s: %d KiB" % (at, rss or 0), flush=True)
            time.sleep(min(1.0, args.seconds / 100))
        stdout, stderr = process.communicate()
    assert process.returncode == 0, (process.returncode, stderr)
    assert not stderr, stderr
    return stdout, series


def check_log(args, folder, stdout):
    logs = [os.path.join(folder, "data", name) for name in os.listdir(os.path.join(folder, "data"))]
    assert len(logs) == 1, logs
    truth = collections.Counter({name: int(count) for name, count in
                                 re.findall(r"^(\w+) (\d+)$", stdout, re.M)})
    plugins = {name: int(count) for name, count in re.findall(r"^plugin lib(\w+)\.so (\d+)$", stdout, re.M)}
    folded, summary = os.path.join(folder, "folded"), os.path.join(folder, "summary")
    done = subprocess.run([args.merge, logs[0], "--weight", "count", "--folded", folded, "--summary", summary],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = collections.Counter()
    with open(folded, encoding="utf-8") as file:
        for line in file:
            path, count = line.rsplit(" ", 1)
            frames = path.split(";")
            name = next((f for f in frames if f in truth or f in plugins), "[unknown]")
            counts[name] += int(count)
    for name, count in truth.items():
        assert counts[name] == count, "%s launched %d, in the log %d" % (name, count, counts[name])
    named = 0
    for name, count in plugins.items():
        assert counts[name] <= count, "%s launched %d, in the log %d" % (name, count, counts[name])
        named += counts[name]
    assert named + counts["[unknown]"] == sum(plugins.values()), (counts, plugins)
    with open(summary, encoding="utf-8") as file:
        json.load(file)
    total = sum(truth.values()) + sum(plugins.values())
    print("%d launches, none lost; %d of plugins, %.1f %% of them named, none wrongly" % (
        total, sum(plugins.values()), 100 * named / max(1, sum(plugins.values()))))
    return os.path.getsize(logs[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("merge", "inject", "simgpu", "program"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--rate", type=int, default=5000, help="launches a second, roughly")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("plugins", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-soak.") as folder:
        try:
            stdout, series = record(args, folder)
            log_bytes = check_log(args, folder, stdout)
        except AssertionError as error:
            sys.exit("soak: %s" % error)
    growth = slope(series)
    print("%d s: memory from %d KiB at a fifth of the run to %d KiB at its end, %+.1f KiB a minute; "
          "the log has %d bytes" % (args.seconds, series[int(len(series) * WARM_UP)][1],
                                    series[-1][1], growth, log_bytes))
    # Too noisy in a short run.
    if args.seconds >= 300 and growth > FLAT_KIB_A_MINUTE:
        sys.exit("soak: memory grows")


if __name__ == "__main__":
    main()
