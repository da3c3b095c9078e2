#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes calls of the tracer fail: the program must not be affected, and losses must be reported.

- calls: each place in the tracer that calls the C library, including libunwind. The call fails
  the first time, always, or (with --all) at each time.
- kills: kills the process at these places. Recovery must find the rest.
- cupti: each function of CUPTI fails always, or at its first, second or third time. With --all,
  continues until a run has no failure.

A run passes if its output and exit status equal those without the tracer, and it ends in time.
The log must have every call, kernel, copy, memset, graph node and range, with stacks and names.
The tracer or the merge must report everything that is missing.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading

ROUNDS = 40
PATIENCE_S = 30
SITE = struct.Struct("<QQ")
STATE_HEAD_BYTES = 16
FUNCTIONS = re.findall(r"FUNCTION\((\w+)\)", open(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "failing.c"),
    encoding="utf-8").read().split("#define MEMBER")[0])
CUPTI_HEADER = "../../../src/cuda_abi/cupti_abi.h"

# The program's steps as rows of the log. Only the kinds of calls are checked, not their number: the
# tracer chooses which classes it records.
EXPECTED = {"KERNEL": ROUNDS * 3 + 2 * (ROUNDS // 10) + 12, "COPY": 2, "SET": 1, "MEMORY": 2,
            "RANGE": ROUNDS * 4}
LAUNCHES = ROUNDS * 3 + 2 + ROUNDS // 10 + 12  # two of these launches are captured


def load_dump(path):
    """Loads the independent reader into this process: starting an interpreter takes longer than
    reading."""
    loader = importlib.machinery.SourceFileLoader("xtrace_dump", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Run:
    def __init__(self, args, folder, failing=None, fault=None, traced=True):
        self.data = os.path.join(folder, "data")
        self.state = os.path.join(folder, "state")
        self.report = os.path.join(folder, "report")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("XTRACE_", "CUDA_", "NVTX_", "LD_", "XT_"))}
        environment.update(LD_LIBRARY_PATH=args.simgpu, XTRACE_DATA=self.data,
                           XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"),
                           XTRACE_SIMGPU_KERNEL_NS="1000:2000")
        if traced:
            environment["LD_PRELOAD"] = args.failing + ":" + args.inject
            environment["XT_FAILING_STATE"] = self.state
        if failing:
            environment["XT_FAILING"] = failing
        if fault:
            environment.update(XTRACE_SIMGPU_FAULT=fault, XTRACE_SIMGPU_FAULT_REPORT=self.report)
        done = subprocess.run([args.program, str(ROUNDS), args.plugin], env=environment,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.status, self.stdout = done.returncode, done.stdout
        lines = done.stderr.splitlines()
        self.said = [line for line in lines if line.startswith("xtrace: ")]
        self.stderr = [line for line in lines if not line.startswith("xtrace: ")]

    def sites(self):
        """The number of calls by place (function, offset)."""
        with open(self.state, "rb") as file:
            data = file.read()
        return {((key - 1) % 256, (key - 1) // 256): count
                for key, count in SITE.iter_unpack(data[STATE_HEAD_BYTES:]) if key}

    def was_struck(self):
        with open(self.state, "rb") as file:
            return struct.unpack("<Q", file.read(8))[0] > 0

    def files(self, ending):
        try:
            return sorted(os.path.join(self.data, name) for name in os.listdir(self.data)
                          if name.endswith(ending))
        except FileNotFoundError:
            return []


class Judge:
    def __init__(self, args):
        self.args = args
        self.dump = load_dump(args.dump)
        self.dumping = threading.Lock()

    def dumped(self, *arguments):
        """The output lines of the independent reader."""
        out = io.TextIOWrapper(io.BytesIO(), "ascii")
        with self.dumping, contextlib.redirect_stdout(out):
            sys.argv = ["xtrace-dump", *arguments]
            self.dump.main()
        return out.buffer.getvalue().decode("ascii").splitlines()

    def rows(self, log):
        """The rows of a log by kind."""
        tables = collections.defaultdict(list)
        for line in self.dumped("--format", "json", log):
            row = json.loads(line)
            if row.get("record") == "row":
                tables[row["kind"]].append(row)
        return tables

    def violations(self, log):
        return [line for line in self.dumped("--check", "--allow-open", log)
                if "violation" in line and "violation: missing:" not in line]

    def what_is_missing(self, log, complete=True):
        """Lists events of the program that are missing in the log."""
        tables = self.rows(log)
        strings = {row["id"]: row["text"] for row in tables["STRING"]}
        names = {row["id"]: strings.get(row["name"]) for row in tables["SHAPE"]}
        launching = {row["id"] for row in tables["API"] if row["class"] in (1, 2)}
        launches = [row for row in tables["CALL"] if row["api"] in launching]
        stacks = {row["id"]: len(row["frames"]) for row in tables["STACK"]}
        missing = []
        for kind, count in EXPECTED.items() if complete else ():
            if len(tables[kind]) != count:
                missing.append("%d rows of %s, of %d" % (len(tables[kind]), kind, count))
        if complete and len(launches) != LAUNCHES:
            missing.append("%d launches, of %d" % (len(launches), LAUNCHES))
        for row in launches:
            if stacks.get(row["stack"], 0) < 2:
                missing.append("the stack of launch %d" % row["correlation"])
        for row in tables["KERNEL"]:
            if names.get(row["shape"]) != "kernel":
                missing.append("the name of kernel %d" % row["correlation"])
        made = {row["id"] for row in tables["GRAPH_NODE"] if stacks.get(row["stack"], 0) >= 2}
        origins = {row["id"]: row["origin"] for row in tables["GRAPH_NODE"]}
        for row in tables["KERNEL"]:
            node = row["graph_node"]
            if node and node not in made and origins.get(node) not in made:
                missing.append("who made node %d" % node)
        if tables["STACK"] and not tables["MODULE"]:
            missing.append("modules")
        return missing

    def merge(self, log):
        """Recovers the crash buffer. Returns (is complete, messages)."""
        done = subprocess.run([self.args.merge, log, "--folded", os.devnull], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode in (0, 1, 2), "xtrace-merge: %d\n%s" % (done.returncode, done.stderr)
        return done.returncode == 0, done.stderr

    def untouched(self, run, bare):
        assert run.status == bare.status, "exit status %s" % run.status
        assert run.stdout == bare.stdout, "stdout: " + run.stdout
        assert run.stderr == bare.stderr, "stderr: %s" % run.stderr

    def judge(self, run, bare):
        self.untouched(run, bare)
        logs = run.files(".xtr")
        if not logs:
            assert run.said, "no log and no message"
            assert not run.files(""), "left behind: %s" % run.files("")
            return
        assert len(logs) == 1, logs
        if not os.path.getsize(logs[0]):
            assert run.said, "an empty log and no message"
            return
        odd = self.violations(logs[0])
        assert not odd, odd
        whole, said = self.merge(logs[0])
        missing = self.what_is_missing(logs[0])
        assert not (missing and whole and not run.said), \
            "missing without a message: %s" % missing[:4]

    def judge_kill(self, run):
        assert run.status == -signal.SIGKILL, "exit status %s" % run.status
        assert not run.stderr, run.stderr
        logs = run.files(".xtr")
        if not logs:
            assert not run.files(".spool"), run.files("")
            return
        _, said = self.merge(logs[0])
        assert not run.files(".spool"), "the spool is still there: " + said
        if not os.path.getsize(logs[0]):
            assert "is empty" in said, said
            return
        odd = self.violations(logs[0])
        assert not odd, odd
        tables = self.rows(logs[0])
        account = {row["name"]: row["value"] for row in tables["ACCOUNT"]}
        assert account or "was not closed" in said, "no account and no message: " + said
        missing = [m for m in self.what_is_missing(logs[0], False)
                   if not m.startswith(("the stack", "the name")) and account]
        assert not missing, missing


class Campaign:
    """Runs cases, two at a time, and collects failures."""

    def __init__(self, args):
        self.args, self.judge = args, Judge(args)
        self.folder = tempfile.mkdtemp(prefix="xtrace-faults.")
        self.bare = self.run("bare", traced=False)[1]
        self.count, self.struck, self.wrong = 0, 0, []

    def run(self, name, **options):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        return folder, Run(self.args, folder, **options)

    def case(self, name, judge, was_struck, **options):
        """Runs one case. Returns whether the fault occurred. Keeps failed cases."""
        folder, run = None, None
        self.count += 1
        try:
            folder, run = self.run(name, **options)
            struck = was_struck(run)
            if struck:
                self.struck += 1
                judge(run)
            shutil.rmtree(folder)
            return struck
        except (AssertionError, subprocess.TimeoutExpired) as error:
            said = "\n    ".join(run.said) if run else ""
            self.wrong.append("%s: %s\n    %s" % (name, error, said))
            return True

    def sites(self):
        folder, run = self.run("sites")
        sites = run.sites()
        self.judge.judge(run, self.bare)
        assert not run.said, run.said
        shutil.rmtree(folder)
        assert len(sites) > 30, "only %d places that call were seen" % len(sites)
        return sorted(sites.items())

    def site_case(self, site, time, how):
        function, offset = site
        judge = self.judge.judge_kill if how == "k" else \
            lambda run: self.judge.judge(run, self.bare)
        return self.case("%s-%x-%d-%s" % (FUNCTIONS[function], offset, time, how), judge, Run.was_struck,
                         failing="%s:%x:%d:%s" % (FUNCTIONS[function], offset, time, how))

    def until_untouched(self, run_nth, first=1, last=None):
        nth = first
        while run_nth(nth) and nth != last:
            nth += 1

    def parallel(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(*job) for job in jobs]:
                future.result()

    def site_jobs(self, how, always):
        last = None if self.args.all else 1
        for site, _ in self.sites():
            yield self.until_untouched, lambda nth, site=site: self.site_case(site, nth, how), 1, last
            if always:
                yield self.site_case, site, 0, how
            if always and FUNCTIONS[site[0]] == "pwrite":
                yield self.site_case, site, 1, "h"
                yield self.site_case, site, 0, "h"

    def calls(self):
        self.parallel(list(self.site_jobs("f", True)))

    def kills(self):
        self.parallel(list(self.site_jobs("k", False)))

    def cupti_case(self, fault, nth):
        def was_struck(run):
            """A process that did not end normally could not report, so it counts as struck."""
            try:
                with open(run.report, encoding="utf-8") as file:
                    return int(file.read().split()[1]) >= max(nth, 1)
            except FileNotFoundError:
                return True
        return self.case(fault.replace(":", "-"), lambda run: self.judge.judge(run, self.bare),
                         was_struck, fault=fault)

    def cupti(self):
        header = os.path.join(os.path.dirname(os.path.abspath(__file__)), CUPTI_HEADER)
        with open(header, encoding="utf-8") as file:
            functions = re.findall(r"X\((?:REQUIRED|OPTIONAL), (\w+)", file.read())
        last = None if self.args.all else 3
        jobs = []
        for name in functions:
            jobs.append((self.cupti_case, "fail:" + name, 0))
            jobs.append((self.until_untouched, lambda nth, name=name: self.cupti_case(
                "fail:%s:%d" % (name, nth), nth), 1, last))
        for fault in ("zero_times", "reversed_times:7", "drop_records:5", "lost_buffers:2",
                      "late_buffers:300", "long_buffers:2", "twice_buffers:2"):
            jobs.append((self.cupti_case, fault, 0))
        self.parallel(jobs)


def main():
    parser = argparse.ArgumentParser()
    for name in ("inject", "merge", "simgpu", "dump", "program", "failing", "plugin"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("part", choices=("calls", "kills", "cupti"))
    args = parser.parse_args()
    campaign = Campaign(args)
    getattr(campaign, args.part)()
    print("%d runs, in %d of which something failed" % (campaign.count, campaign.struck))
    if campaign.wrong:
        sys.exit("%d are wrong; they are in %s\n%s" % (
            len(campaign.wrong), campaign.folder, "\n".join(campaign.wrong)))
    assert campaign.struck > 30, "hardly anything failed"
    shutil.rmtree(campaign.folder)


if __name__ == "__main__":
    main()
