#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the bad and the good variant of each pattern and checks the findings of xtrace.

The bad variant must have exactly the finding of its name, at a line that the comment "finding"
marks in its source. The good variant must have none. Runs from a build tree or an unpacked tarball,
on a GPU or with --simulate. Prints a row for each run.

Exit status: 0 all as expected, 1 not, 2 usage.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77

# Number of simulated GPUs, if not one.
DEVICES = {"device_imbalance": 2}

# Duration of a launch on a real GPU.
LAUNCH_NS = 2600

# The simulated GPU runs in real time, so a busy machine can distort a run.
ATTEMPTS_SIMULATED = 12


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--xtrace", help="path of xtrace")
    parser.add_argument("--merge", help="path of xtrace-merge")
    parser.add_argument("--programs", default=HERE, help="folder of the compiled patterns")
    parser.add_argument("--pytorch", metavar="PYTHON",
                        help="run the patterns of pytorch_patterns.py with this interpreter")
    parser.add_argument("--simulate", action="store_true", help="use the simulated GPU")
    parser.add_argument("--keep", metavar="DIR", help="keep traces and summaries there")
    parser.add_argument("--output", "-o", help="also write the results to this file")
    parser.add_argument("patterns", nargs="*", help="patterns to run (default: all)")
    args = parser.parse_args()
    for name, program in (("xtrace", "xtrace"), ("merge", "xtrace-merge")):
        if not getattr(args, name):
            setattr(args, name, find_program(program))
    return args


def find_program(name):
    """Searches the unpacked tarball that contains this script, then the build tree."""
    for folder in ("../../../../bin", "../../build/bin"):
        path = os.path.normpath(os.path.join(HERE, folder, name))
        if os.access(path, os.X_OK):
            return path
    sys.exit(f"check.py: cannot find {name}; see --help")


class Pattern:
    """A C program and the place of its finding."""

    def __init__(self, args, name):
        self.name = name
        self.file = name + ".c"
        self.program = [os.path.join(args.programs, name)]
        self.record = []
        self.marks = ["/* finding */"]
        self.read_source()

    def read_source(self):
        with open(os.path.join(HERE, self.file), encoding="utf-8") as file:
            self.source = file.read().splitlines()

    def lines(self):
        """The lines of marked statements. Compilers may report any line of a statement."""
        lines = set()
        for first, line in enumerate(self.source, 1):
            if not any(mark in line for mark in self.marks):
                continue
            last = first
            while self.file.endswith(".c") and not self.ends(last):
                last += 1
            while self.file.endswith(".c") and not self.begins(first):
                first -= 1
            lines.update(range(first, last + 1))
        return lines

    def begins(self, line):
        return re.search("CHECK|LAUNCH|cuLaunch|pattern_", self.source[line - 1])

    def ends(self, line):
        return self.source[line - 1].split("/*")[0].rstrip().endswith(";")


class PytorchPattern(Pattern):
    """A pattern of pytorch_patterns.py. Only the steps after warm-up are recorded."""

    def __init__(self, args, name):
        super().__init__(args, name)
        self.file = "pytorch_patterns.py"
        self.program = [args.pytorch, os.path.join(HERE, self.file), name]
        self.record = ["--capture-range", "cudaProfilerApi"]
        self.marks = [f"# finding {name}"]
        self.read_source()


def environment(args, pattern):
    """Simulated kernels compute nothing, so set their durations to those of the pattern."""
    env = dict(os.environ)
    if not args.simulate:
        return env
    ns = next(re.search(r"KERNEL_NS\s+(\d+)", line)[1] for line in pattern.source
              if line.startswith("#define KERNEL_NS"))
    env["XTRACE_SIMGPU_KERNEL_NS"] = f"{ns}:{ns}"
    env["XTRACE_SIMGPU_LAUNCH_NS"] = str(LAUNCH_NS)
    env["XTRACE_SIMGPU_DEVICES"] = str(DEVICES.get(pattern.name, 1))
    return env


def run(args, pattern, variant, folder):
    """Returns the findings of a run, or None if the pattern cannot run on this machine."""
    data = os.path.join(folder, f"{pattern.name}.{variant}.data")
    summary = os.path.join(folder, f"{pattern.name}.{variant}.json")
    command = [args.xtrace, "record", "-o", data] + ["--simulate"] * args.simulate
    done = subprocess.run(command + pattern.record + ["--"] + pattern.program + [variant],
                          capture_output=True, text=True, check=False,
                          env=environment(args, pattern))
    if done.returncode == SKIPPED:
        return None
    if done.returncode:
        raise RuntimeError(f"recording fails with status {done.returncode}: {done.stderr.strip()}")
    done = subprocess.run([args.merge, "-q", "--summary", summary, data], capture_output=True,
                          text=True, check=False)
    if done.returncode > 1:  # 1: the trace is incomplete, but findings exist
        raise RuntimeError(f"xtrace-merge fails with status {done.returncode}: {done.stderr.strip()}")
    with open(summary, encoding="utf-8") as file:
        return json.load(file)["findings"]["rows"]


def judge(pattern, variant, findings):
    """Returns the difference from the expected findings, or ""."""
    rules = [finding["rule"] for finding in findings]
    wanted = [pattern.name.replace("_", "-")] if variant == "bad" else []
    if rules != wanted:
        return f"found {', '.join(rules) or 'nothing'}"
    for finding in findings:
        place = finding["places"][0]
        file, line = os.path.basename(place.get("file", "?")), place.get("line", 0)
        if file != pattern.file or line not in pattern.lines():
            return f"found at {file}:{line}, marked {sorted(pattern.lines())}"
    return ""


def try_once(args, pattern, variant, folder):
    """Returns whether the findings are as expected, and lines that describe them."""
    try:
        findings = run(args, pattern, variant, folder)
    except (RuntimeError, OSError) as error:
        return False, [f"FAILS: {error}"]
    if findings is None:
        return True, ["skipped: not possible on this machine"]
    wrong = judge(pattern, variant, findings)
    shares = ", ".join(f"{f['rule']} {100 * f['cost_ns'] / f['whole_ns']:.1f} % at {f['where']}"
                       for f in findings)
    return not wrong, [(f"FAILS: {wrong}; " if wrong else "passes: ") + (shares or "no findings"),
                       *(finding["what"] for finding in findings)]


def check(args, pattern, variant, folder, say):
    holds, lines = try_once(args, pattern, variant, folder)
    for _ in range(ATTEMPTS_SIMULATED - 1 if args.simulate else 0):
        if holds:
            break
        holds, lines = try_once(args, pattern, variant, folder)
    say(f"{pattern.name:18} {variant:5} {lines[0]}")
    for line in lines[1:]:
        say(f"{'':25}{line}")
    return holds


def patterns_of(args):
    if args.pytorch:
        with open(os.path.join(HERE, "pytorch_patterns.py"), encoding="utf-8") as file:
            names = re.findall(r"^def (\w+)\(is_bad\)", file.read(), re.MULTILINE)
        return [PytorchPattern(args, name) for name in args.patterns or names]
    names = sorted(name[:-2] for name in os.listdir(HERE)
                   if name.endswith(".c") and name != "pattern.c")
    return [Pattern(args, name) for name in args.patterns or names]


def main():
    args = parse_arguments()
    lines = []

    def say(line):
        print(line, flush=True)
        lines.append(line)

    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        held = [check(args, pattern, variant, folder, say)
                for pattern in patterns_of(args) for variant in ("bad", "good")]
    say(f"{sum(held)} of {len(held)} pass")
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
