# SPDX-License-Identifier: Apache-2.0
"""Records programs with --cpu, and reads their CPU logs with xtrace-dump."""
import collections
import glob
import json
import os
import resource
import subprocess
import sys

STATES = ["unknown", "running", "kernel", "io", "lock", "sleep", "fault", "gil", "process", "blocked",
          "ready"]
ON_CPU = {"running", "kernel", "fault"}
NO_NATIVE, NO_PYTHON, DROPPED = 1, 2, 4


class Row:
    """A row of CPU_SAMPLE. Innermost first: native has names, python names and files."""

    def __init__(self, log, record):
        self.thread = log.threads[record["thread"]]
        self.state = STATES[record["state"]]
        self.weight_ns = record["weight_ns"]
        self.count = record["count"]
        self.time_ns = record["time_ns"]
        self.flags = record["flags"]
        self.waits_for = (record["waits_for_pid"], record["waits_for_tid"])
        self.native, self.python = log.stacks.get(record["stack"], ((), ()))


class Log:
    """A CPU log."""

    def __init__(self, dump, path):
        self.path = path
        self.bytes = os.path.getsize(path)
        self.records = collections.defaultdict(list)
        self.chunks = []
        done = subprocess.run([sys.executable, dump, "--format", "json", path],
                              capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            record = json.loads(line)
            if record["record"] == "chunk":
                self.chunks.append(record)
            elif record["record"] == "row":
                self.records[record["kind"]].append(record)
        self.meta = {r["key"]: r["value"] for r in self.records["META"]}
        self.accounts = {r["name"]: r["value"] for r in self.records["ACCOUNT"]}
        self.threads = {r["id"]: r for r in self.records["THREAD"]}
        self.pid = int(self.meta["process.id"])
        self.stacks = self._stacks()
        self.rows = [Row(self, r) for r in self.records["CPU_SAMPLE"]]

    def _stacks(self):
        strings = {r["id"]: r["text"] for r in self.records["STRING"]}
        frames = {r["id"]: (strings.get(r["name"], ""),
                            os.path.basename(strings.get(r["file"], "")))
                  for r in self.records["PYTHON_FRAME"]}
        modules = {r["id"]: r for r in self.records["MODULE"]}
        symbols = collections.defaultdict(list)
        for symbol in self.records["SYMBOL"]:
            symbols[symbol["module"]].append(symbol)
        stacks = {}
        for stack in self.records["STACK"]:
            names = []
            for frame, module in zip(stack["frames"], stack["modules"]):
                kind, address = frame
                address -= (kind == 0) + (modules[module]["bias"] if module else 0)
                names.append(next((s["name"] for s in symbols[module]
                                   if s["start"] <= address < s["start"] + s["bytes"]), "?"))
            stacks[stack["id"]] = (tuple(names), tuple(frames[f] for f in stack["python"]))
        return stacks

    def share(self, test, among=lambda row: True):
        """The share of the weight of rows for which test() is true."""
        total = sum(r.weight_ns for r in self.rows if among(r))
        return sum(r.weight_ns for r in self.rows if among(r) and test(r)) / total if total else 0

    def thread_ns(self):
        """The sum of weights, by thread id of the log."""
        sums = collections.Counter()
        for row in self.rows:
            sums[row.thread["id"]] += row.weight_ns
        return sums


class Recording:
    """The result of xtrace record --cpu."""

    def __init__(self, xtrace, dump, folder, command, hertz="99", has_perf=True,
                 file_limit=None, **user):
        environment = dict(os.environ, XTRACE_CPU_PERF="on" if has_perf else "off")
        limit_files = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (file_limit, file_limit))
        self.done = subprocess.run([xtrace, "record", f"--cpu={hertz}", "-o", folder, *command],
                                   env=environment, capture_output=True, text=True, check=False,
                                   timeout=60, preexec_fn=file_limit and limit_files, **user)
        self.logs = [Log(dump, path) for path in sorted(glob.glob(folder + "/*.cpu.xtr"))]
        check = subprocess.run([sys.executable, dump, "--check", *(log.path for log in self.logs)],
                               capture_output=True, text=True, check=False) if self.logs else None
        self.problems = check.stdout if check and check.returncode else ""
        self.info = {}
        if os.path.exists(folder + "/info.json"):  # nothing is left of an empty recording
            with open(folder + "/info.json", encoding="utf-8") as file:
                self.info = json.load(file)
        self.truth = json.loads(self.done.stdout) if self.done.stdout.startswith("{") else {}
