#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace bench: its runs and their files, the state of the devices, and rejected options."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

UUID = "73696d75-6c61-7465-6400-0000000000%02x"


class Bench:
    """Runs xtrace bench in an empty folder."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        # Long enough for some samples: more than 300 kernels of half a millisecond.
        self.slow = [args.sample, "--tokens", "4"]
        self.quick = [args.sample, "--tokens", "1", "--layers", "1", "--dim", "64"]

    def run(self, *words, status=0, nvml="", **environment):
        done = subprocess.run([self.args.xtrace, "bench", *words], cwd=self.folder, text=True,
                              capture_output=True, env={**os.environ, "XTRACE_SIMGPU_NVML": nvml,
                                                        **environment})
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done

    def diff(self, *words, status=0):
        done = subprocess.run([self.args.xtrace, "diff", *words], cwd=self.folder, text=True,
                              capture_output=True)
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done

    def read(self, *path):
        with open(os.path.join(self.folder, *path), encoding="utf-8") as file:
            return json.load(file)

    def names(self, *path):
        return sorted(os.listdir(os.path.join(self.folder, *path)))


def text_of(done):
    return done.stdout + done.stderr


def check_runs(bench):
    """The runs, their files, and numbers equal to those of xtrace merge."""
    done = bench.run("--simulate", "-n", "3", "--warmup", "2", "--", *bench.quick)
    assert bench.names("xtrace.bench") == ["bench.json", "run-001", "run-002", "run-003",
                                           "warmup-001", "warmup-002"]
    doc = bench.read("xtrace.bench", "bench.json")
    assert doc["format"] == "xtrace.bench" and doc["format_version"] == 1 and doc["finished"]
    assert doc["command"] == bench.quick
    assert [run["order"] for run in doc["runs"]] == [1, 2, 3, 4, 5]
    assert [run["warmup"] for run in doc["runs"]] == [True, True, False, False, False]
    for run in doc["runs"]:
        path = os.path.join(bench.folder, "xtrace.bench", run["path"])
        summary = json.loads(subprocess.run([bench.args.merge, "--quiet", "--summary", "-", path],
                                            check=True, capture_output=True).stdout)
        assert run["gpu_time_ns"] == summary["totals"]["gpu_time_ns"] > 0
        assert run["wall_ns"] == bench.read("xtrace.bench", run["path"],
                                            "info.json")["duration_ns"] > 0
        assert run["complete"]
        with open(os.path.join(path, "output.txt"), encoding="utf-8") as file:
            assert "conversation 0" in file.read()
    assert len(re.findall(r"^(?:warmup|run)-\d+ ", done.stdout, re.M)) == 5, done.stdout
    assert "conversation" not in done.stdout, done.stdout
    # Options of xtrace record apply to the runs. The program's output can be shown.
    done = bench.run("--simulate", "-n", "1", "--warmup", "0", "--api", "launch",
                     "--show-output", "--", *bench.quick)
    assert "conversation 0" in done.stdout
    assert "output.txt" not in bench.names("xtrace.bench", "run-001")
    assert bench.names("xtrace.bench.old")[1] == "run-001"


def check_devices(bench):
    """The state of the devices, and the warnings."""
    done = bench.run("--simulate", "-n", "2", "--", *bench.slow,
                     nvml="sm_mhz:1700,celsius:61,milliwatts:512000",
                     XTRACE_SIMGPU_KERNEL_NS="2000000:2000000", XTRACE_SIMGPU_DEVICES="2")
    gpu = bench.read("xtrace.bench", "run-002", "gpu.json")
    assert gpu["format"] == "xtrace.gpu" and gpu["format_version"] == 1
    # The second device is not used, so it is not listed.
    (device,) = gpu["devices"]
    assert device["uuid"] == UUID % 0
    assert device["load_sample_count"] >= 3 and device["idle_sample_count"] == 0, device
    assert device["sm_mhz"] == {"min": 1700, "mean": 1700, "max": 1700}
    assert device["temperature_celsius"]["mean"] == 61
    assert device["power_milliwatts"]["max"] == 512000
    assert device["before"]["memory_mhz"] == 2619 and not device["other_process_pids"]
    assert re.search(r"1700 MHz +61 C +512 W +-$", done.stdout, re.M), done.stdout
    assert done.stderr == "", done.stderr

    done = bench.run("--simulate", "-n", "3", "--", *bench.slow, nvml="sm_mhz_drift:300,"
                     "celsius_drift:40,reasons:0x24,other_pid:4321",
                     XTRACE_SIMGPU_KERNEL_NS="500000:500000")
    for words in ("clocks differed between runs", "temperatures differed",
                  "throttled in 3 of 3 runs: power limit, temperature",
                  "another process used the GPU: pid 4321"):
        assert words in done.stderr, (words, done.stderr)
    (device,) = bench.read("xtrace.bench", "run-001", "gpu.json")["devices"]
    assert device["other_process_pids"] == [4321]
    assert device["clock_reason_sample_counts"].keys() == {"power_cap", "sw_thermal"}

    # The state of an idle device does not count.
    bench.run("--simulate", "-n", "1", "--", *bench.slow, nvml="reasons:1",
              XTRACE_SIMGPU_KERNEL_NS="500000:500000")
    (device,) = bench.read("xtrace.bench", "run-001", "gpu.json")["devices"]
    assert device["load_sample_count"] == 0 < device["idle_sample_count"]
    assert "sm_mhz" not in device

    done = bench.run("--simulate", "-n", "1", "--", *bench.quick, nvml="absent:1")
    assert "are not watched: libnvidia-ml.so.1 finds no driver" in done.stdout
    assert "gpu.json" not in bench.names("xtrace.bench", "run-001")


def check_two(bench):
    """Two commands take turns."""
    line = " ".join(bench.quick)
    bench.run("--simulate", "-n", "4", "--warmup", "1", "-o", "two/", "--no-diff", "--vs",
              "XTRACE_SIMGPU_SEED=7 " + line, "--", *bench.quick)
    assert bench.read("two", "bench.json")["sides"] == ["base", "new"]
    base, new = (bench.read("two", side, "bench.json") for side in ("base", "new"))
    assert base["command"] == ["/bin/sh", "-c", "XTRACE_SIMGPU_SEED=7 " + line]
    assert new["command"] == bench.quick
    assert [run["order"] for run in base["runs"]] == [1, 3, 6, 7, 10]
    assert [run["order"] for run in new["runs"]] == [2, 4, 5, 8, 9]
    # Another seed gives other kernel times.
    assert base["runs"][1]["gpu_time_ns"] != new["runs"][1]["gpu_time_ns"]
    # At the end they are compared. A bench directory is a side.
    done = bench.run("--simulate", "-n", "5", "--warmup", "0", "-o", "compared", "--vs", line,
                     "--", *bench.quick, "--tokens", "3", status=1)
    assert "REGRESSION" in done.stdout and "5 runs  compared/new" in done.stdout, done.stdout
    done = bench.diff("compared/base", "compared/new", status=1)
    assert "REGRESSION" in done.stdout
    done = bench.diff("compared", "compared/new", status=2)
    assert "compared contains two sides: name compared/base" in text_of(done)

    # Compare by other rules. Invalid rules are reported before the first run.
    with open(os.path.join(bench.folder, "rules"), "w", encoding="utf-8") as file:
        file.write("path(no_such_function) > 1%\n")
    rules = ["--fail-on", "gpu-time < 1ns", "--fail-on", "launches > 100000%"]
    done = bench.run("--simulate", "-n", "3", "--warmup", "0", "-o", "ruled", *rules, "--vs", line,
                     "--", *bench.quick, status=1)
    assert "FAIL  gpu-time < 1ns" in done.stdout and "pass  launches > 100000%" in done.stdout
    done = bench.run("--simulate", "-n", "2", "--warmup", "0", "-o", "ruled", "--rules", "rules",
                     "--vs", line, "--", *bench.quick, status=2)
    assert "no_such_function" in done.stdout, done.stdout
    done = bench.run("--simulate", "-n", "2", "-o", "never", "--fail-on", "launches >> 1", "--vs",
                     line, "--", *bench.quick, status=2)
    assert "launches >> 1" in done.stderr and "never" not in bench.names(), done.stderr
    done = bench.run("--simulate", "--fail-on", "launches > 1", "--", *bench.quick, status=2)
    assert "cannot use --fail-on: there is no comparison without --vs" in done.stderr, done.stderr

    bench.run("--simulate", "-n", "1", "-o", "two", "--", *bench.quick)
    assert bench.names("two.old") == ["base", "bench.json", "new"]
    # The index of xtrace history is removed with the runs that it describes.
    open(os.path.join(bench.folder, "two.old", ".xtrace-history"), "w").close()
    bench.run("--simulate", "-n", "1", "-o", "two", "--", *bench.quick)
    assert "base" not in bench.names("two.old")


def check_refusals(bench):
    """Errors that end a bench, and files that it leaves alone."""
    failing = "echo hello; test -e second || { touch second; exec %s; }; exit 7" % " ".join(
        bench.quick)
    done = bench.run("--simulate", "-n", "2", "-o", "failed", "--", "sh", "-c", failing, status=2)
    assert "run-001 failed: 'sh' ended with exit status 7" in done.stderr
    assert done.stderr.startswith("hello\n"), done.stderr
    assert not bench.read("failed", "bench.json")["finished"]
    assert "the benchmark was not completed" in text_of(bench.diff("failed", "failed", status=2))
    done = bench.run("-n", "1", "-o", "failed", "--", "sh", "-c", "kill -9 $$", status=2)
    assert "ended by signal 9 (Killed)" in done.stderr
    done = bench.run("-n", "1", "-o", "failed", "--", "true", status=2)
    assert "has no GPU work" in done.stderr
    done = bench.run("--", "no-such-program", status=2)
    assert "cannot run 'no-such-program': command not found" in done.stderr
    for words, said in ((["-n", "0", "true"], "cannot use '0' for --runs: it must be a number from 1 to 999"),
                        (["--warmup", "-1", "true"], "cannot use '-1' for --warmup: it must be a number from 0"),
                        (["--paused", "true"], "unknown option '--paused'"),
                        (["-n", "1"], "no program given")):
        assert said in bench.run(*words, status=2).stderr, words

    # Foreign files are neither overwritten nor removed.
    os.mkdir(os.path.join(bench.folder, "foreign"))
    open(os.path.join(bench.folder, "foreign", "file"), "w").close()
    done = bench.run("-n", "1", "-o", "foreign", "--", "true", status=2)
    assert "cannot use 'foreign': it exists and is not an xtrace bench" in done.stderr
    bench.run("--simulate", "-n", "1", "-o", "kept", "--", *bench.quick)
    bench.run("--simulate", "-n", "1", "-o", "kept", "--", *bench.quick)
    open(os.path.join(bench.folder, "kept.old", "notes"), "w").close()
    done = bench.run("--simulate", "-n", "1", "-o", "kept", "--", *bench.quick, status=2)
    assert "cannot remove 'kept.old/notes': it is not part of a bench" in done.stderr
    assert "notes" in bench.names("kept.old") and "run-001" in bench.names("kept")


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "sample"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    for check in (check_runs, check_devices, check_two, check_refusals):
        with tempfile.TemporaryDirectory() as folder:
            check(Bench(args, folder))
    print("all bench tests passed")


if __name__ == "__main__":
    sys.exit(main())
