#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that the installed numba-cuda contains, bare and under xtrace.

Each test module runs in a process of its own, bare and recorded with the default options. Each test
must have the same outcome. If outcomes differ, the module runs twice more in both ways: a test
differs if no bare run has the outcome of its recorded runs. The text of failures is not compared.

All modules import the package filecheck and need numpy.row_stack. If they are missing, an empty
package and numpy.vstack take their place. Tests that use filecheck then fail, bare and recorded.

Exit status: 0 no differences, 1 differences, 2 usage, 77 no numba-cuda or no GPU.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import types
import unittest

import compare_runs

SKIPPED, MORE_RUNS = 77, 2
FIRST = ("stream", "event", "context|thread", "ipc|IPC", "cooperative", "link|jitlink", "cudadrv",
         "managed|pinned|host_alloc", "gufunc|vectorize", "cudapy")


class Recorder(unittest.TestResult):
    """Writes a line for each test at once, so that a crash shows where it happened."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def write(self, test, outcome, text=""):
        self.file.write(json.dumps({"test": test.id(), "outcome": outcome,
                                    "text": text.strip()[-300:]}) + "\n")
        self.file.flush()

    def startTest(self, test):
        super().startTest(test)
        self.write(test, "started")

    def addSuccess(self, test):
        self.write(test, "passed")

    def addFailure(self, test, err):
        self.write(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.write(test, "error", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self.write(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        self.write(test, "failed as expected")

    def addUnexpectedSuccess(self, test):
        self.write(test, "passed unexpectedly")

    def addSubTest(self, test, subtest, err):
        if err:
            self.write(test, "failed", self._exc_info_to_string(err, test))


def replace_missing():
    """Makes the modules loadable. See the top of this file."""
    import numpy
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack
    if importlib.util.find_spec("filecheck"):
        return
    parts = {"matcher": ["Matcher"], "options": ["Options"], "finput": ["FInput"],
             "parser": ["Parser", "pattern_for_opts"]}
    sys.modules["filecheck"] = types.ModuleType("filecheck")
    for part, names in parts.items():
        module = sys.modules["filecheck." + part] = types.ModuleType("filecheck." + part)
        for name in names:
            setattr(module, name, None)


def run_module(name, path):
    """The child's part: runs one module."""
    replace_missing()
    with open(path, "w", encoding="utf-8") as file:
        unittest.defaultTestLoader.loadTestsFromName(name).run(Recorder(file))


def list_modules():
    """Prints the names of all test modules as JSON."""
    from numba import cuda
    modules = []
    for root in cuda.__path__:
        tests = os.path.join(root, "tests")
        for folder, _, names in os.walk(tests):
            for name in names:
                if name.startswith("test_") and name.endswith(".py"):
                    part = os.path.relpath(os.path.join(folder, name[:-3]), root)
                    modules.append("numba.cuda." + part.replace(os.sep, "."))
    print(json.dumps({"modules": sorted(set(modules)), "is_available": cuda.is_available()}))


class Tests:
    """Runs modules bare and recorded, until a deadline."""

    def __init__(self, options):
        self.options, self.scratch = options, tempfile.mkdtemp(prefix="numba_tests")
        self.deadline = time.monotonic() + options.total
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        self.files = 0

    def run(self, module, is_recorded):
        """Returns (status, outcomes by test, texts by test)."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        results = os.path.join(folder, "results.jsonl")
        command = [self.options.python, os.path.abspath(__file__), "--child", module, results]
        if is_recorded:
            command = [self.options.xtrace, "record", "-o", os.path.join(folder, "trace"), "--",
                       *command]
        limit = min(self.options.limit * (2 if is_recorded else 1),
                    self.deadline - time.monotonic())
        program = compare_runs.Program(module, command, folder, self.environment)
        outcome = compare_runs.run_once(program, command, limit)
        outcomes, texts = {}, {}
        if os.path.exists(results):
            with open(results, encoding="utf-8") as file:
                for row in map(json.loads, filter(lambda line: line.endswith("\n"), file)):
                    known = outcomes.get(row["test"])
                    if row["outcome"] == "passed" and known == "failed":
                        continue  # a part of it failed
                    outcomes[row["test"]], texts[row["test"]] = row["outcome"], row["text"]
        shutil.rmtree(folder, ignore_errors=True)
        return outcome.status, outcomes, texts

    def examine(self, module):
        row = {"module": module, "verdict": "not reached", "outcomes": {}, "differences": []}
        if time.monotonic() > self.deadline:
            return row
        bare, recorded = [self.run(module, False)], [self.run(module, True)]
        if bare[0][:2] != recorded[0][:2] and bare[0][0] != "timeout":
            for _ in range(MORE_RUNS):
                bare.append(self.run(module, False))
                recorded.append(self.run(module, True))
        if time.monotonic() > self.deadline:
            return row
        row["outcomes"] = collections.Counter(bare[0][1].values())
        if bare[0][0] == "timeout":
            return dict(row, verdict="too slow bare")
        for test in sorted(set().union(*(run[1] for run in bare + recorded))):
            seen = {run[1].get(test, "absent") for run in bare}
            if not seen & {run[1].get(test, "absent") for run in recorded}:
                row["differences"].append("%s: bare %s, recorded %s: %s" % (
                    test, "/".join(sorted(seen)), recorded[0][1].get(test, "absent"),
                    recorded[0][2].get(test, "")))
        statuses = {compare_runs.traced_status(run[0]) for run in bare}
        if not statuses & {run[0] for run in recorded}:
            row["differences"].append("status %s bare, %s recorded" % (bare[0][0], recorded[0][0]))
        return dict(row, runs=len(bare), status=bare[0][0],
                    failures={test: text for test, text in bare[0][2].items()
                              if bare[0][1][test] in ("failed", "error")},
                    verdict="DIFFERENT" if row["differences"] else "same")

    def run_all(self, modules):
        def examine(module):
            try:
                row = self.examine(module)
            except Exception:  # noqa: it must not lose the results of other modules
                row = {"module": module, "verdict": "script failed", "outcomes": {},
                       "differences": [traceback.format_exc()]}
            print("%-60s %-14s %s" % (module, row["verdict"], dict(row["outcomes"])), flush=True)
            for line in row["differences"]:
                print("    " + line[:300], flush=True)
            return row
        try:
            with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
                return list(pool.map(examine, modules))
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)


def importance(module):
    for place, pattern in enumerate(FIRST):
        if re.search(pattern, module):
            return place
    return len(FIRST)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xtrace", help="the command")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    parser.add_argument("--python", default="python3", help="the Python that has numba-cuda")
    parser.add_argument("--jobs", type=int, default=14, help="modules at once (14)")
    parser.add_argument("--limit", type=float, default=100, help="seconds of one bare run (100)")
    parser.add_argument("--total", type=float, default=420, help="seconds of everything (420)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only modules of this name")
    parser.add_argument("--child", nargs=2, metavar=("MODULE", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return run_module(*options.child)
    if options.list:
        return list_modules()
    if not options.xtrace:
        parser.error("--xtrace is required")
    options.xtrace = os.path.abspath(options.xtrace)
    listed = subprocess.run([options.python, os.path.abspath(__file__), "--list"],
                            capture_output=True, text=True, check=False)
    found = json.loads(listed.stdout.splitlines()[-1]) if listed.returncode == 0 else None
    if not found or not found["modules"]:
        print("numba-cuda has no tests here: " + listed.stderr.strip()[-400:])
        return SKIPPED
    modules = sorted((name for name in found["modules"] if re.search(options.only, name)),
                     key=lambda name: (importance(name), name))
    print("%d modules, GPU available: %s" % (len(modules), found["is_available"]), flush=True)
    rows = Tests(options).run_all(modules)
    verdicts = collections.Counter(row["verdict"] for row in rows)
    outcomes = sum((collections.Counter(row["outcomes"]) for row in rows), collections.Counter())
    print("\nmodules: %s\ntests bare: %s" % (dict(verdicts), dict(outcomes)))
    for row in rows:
        for line in row["differences"]:
            print("DIFFERENT: %s: %s" % (row["module"], line[:300]))
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"verdicts": verdicts, "outcomes": outcomes, "rows": rows}, file, indent=1)
    return 1 if verdicts["DIFFERENT"] or verdicts["script failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
