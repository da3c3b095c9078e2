#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python frames in call stacks, held against what Python itself says.

Runs programs that launch through ctypes on the simulated GPU and note sys._getframe() at each
launch; then each launch's stack in the log must be the same, frame for frame and line for line.
Each frame must stand in its place: on a native frame of the interpreter's loop, and where C code
is known to be between two of them, between these.

The programs may be run by another interpreter (--python), as tools/check-pythons.sh does.
"""

import argparse
import bisect
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit("%s exited %s\n%s\n%s" % (command, done.returncode, done.stdout, done.stderr))
    return done


class Log:
    """The tables of a log, as the independent reader has them, and who made which launch."""

    def __init__(self, args, path):
        self.tables = collections.defaultdict(list)
        for line in run([args.dump, "--format", "json", path]).stdout.splitlines():
            row = json.loads(line)
            if row.get("record") == "row":
                self.tables[row["kind"]].append(row)
        strings = {row["id"]: row["text"] for row in self.tables["STRING"]}
        strings[0] = ""
        self.frames = {row["id"]: (strings[row["name"]], strings[row["file"]], row["line"])
                       for row in self.tables["PYTHON_FRAME"]}
        self.account = {row["name"]: row["value"] for row in self.tables["ACCOUNT"]}
        self.meta = {row["key"]: row["value"] for row in self.tables["META"]}
        stacks = {row["id"]: row for row in self.tables["STACK"]}
        numbers = {row["id"]: row["grid_x"] for row in self.tables["SHAPE"]}
        calls = {row["correlation"]: row["stack"] for row in self.tables["CALL"]}
        self.stacks = {numbers[row["shape"]]: stacks.get(calls.get(row["correlation"]))
                       for row in self.tables["KERNEL"]}

    def module_at(self, address):
        found = [row for row in self.tables["MODULE"] if row["start"] <= address < row["end"]]
        return found[-1] if found else None


class Functions:
    """The functions that an ELF file exports."""

    def __init__(self, root):
        self.files, self.root = {}, root

    def name_of(self, module, address):
        path = module["path"]
        if path not in self.files:
            self.files[path] = self.read(self.path_of(path))
        functions = self.files[path]
        virtual = address - 1 - module["bias"]
        at = bisect.bisect(functions, (virtual, 1 << 64, "")) - 1
        if at >= 0 and virtual < functions[at][0] + functions[at][1]:
            return functions[at][2]
        return None

    def path_of(self, path):
        within = self.root + path
        return within if self.root and os.path.exists(within) else path

    @staticmethod
    def read(path):
        if not os.path.isfile(path):
            return []
        with open(path, "rb") as file:
            data = file.read()
        functions = []
        offset, = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size)
                    for i in range(count)]
        for section in sections:
            if section[1] not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
                continue
            names = sections[section[6]]
            for at in range(section[4], section[4] + section[5], 24):
                name, kind, _, index, value, length = struct.unpack_from("<IBBHQQ", data, at)
                if kind & 15 == 2 and index:
                    end = data.index(b"\0", names[4] + name)
                    functions.append((value, length, data[names[4] + name:end].decode()))
        return sorted(functions)


def check_frames(log, entry, stack):
    """The frames themselves. A name to 3.10 is the function's alone."""
    got = [log.frames[number] for number in stack["python"]]
    wanted = [tuple(frame) for frame in entry["frames"]]
    assert [(name, file, line or 0) for name, file, line in wanted] == got, (
        "launch %d:\n  wanted %s\n  got    %s" % (entry["number"], wanted, got))


def check_places(log, functions, entry, stack, bridge):
    """Each run of frames stands on a frame of the loop; the bridge stands between two."""
    native = [address for _, address in stack["frames"]]
    loops = []
    for place in dict.fromkeys(stack["places"]):
        assert place < len(native), (entry, stack)
        module = log.module_at(native[place])
        name = functions.name_of(module, native[place])
        # A part of the loop that is seldom run may lie elsewhere and have no name.
        assert name is None or "_PyEval_EvalFrameDefault" in name, (name, entry)
        loops.append(place)
    assert loops == sorted(loops), stack
    names = [functions.name_of(log.module_at(address), address) if log.module_at(address) else None
             for address in native]
    named = [i for i, name in enumerate(names) if name == "_PyEval_EvalFrameDefault"]
    assert set(named) <= set(loops), "a loop has no Python frames: %s %s" % (named, loops)
    if not entry.get("bridged"):
        return
    bridges = [i for i, address in enumerate(native)
               if (log.module_at(address) or {}).get("path") == bridge]
    assert bridges, entry
    # called_back was called by the bridge: between it and whoever called the bridge.
    inner = max(i for i, number in enumerate(stack["python"])
                if log.frames[number][0].endswith("called_back"))
    assert stack["places"][inner] < bridges[-1], (entry, stack, bridges)
    if inner + 1 < len(stack["places"]):
        outer = next((place for place, number in zip(stack["places"][inner + 1:],
                                                     stack["python"][inner + 1:])
                      if not log.frames[number][0].endswith("in_foreign")), None)
        assert outer is None or bridges[-1] < outer, (entry, stack, bridges)


def record(args, folder, program, **environment):
    """Runs a program of this folder; its log and its ledger."""
    data = os.path.join(folder, "data")
    ledger = os.path.join(folder, "ledger")
    environment = dict(os.environ, LEDGER=ledger, BRIDGE=args.bridge, XTRACE_AUDIT="7",
                       PYTHONPATH=HERE, PYTHONDONTWRITEBYTECODE="1", **environment)
    done = run([args.xtrace, "record", "--simulate", "-o", data, "--", *args.python.split(),
                os.path.join(HERE, program[0]), *program[1:]], env=environment)
    logs = [os.path.join(data, name) for name in os.listdir(data) if name.endswith(".xtr")]
    assert len(logs) == 1, os.listdir(data)
    run([args.dump, "--check", logs[0]])
    with open(ledger) as file:
        entries = [json.loads(line) for line in file]
    return Log(args, logs[0]), entries, done


def check_log(args, log, entries):
    functions = Functions(args.root)
    assert entries
    for entry in entries:
        stack = log.stacks[entry["number"]]
        check_frames(log, entry, stack)
        check_places(log, functions, entry, stack, args.bridge)
    account = log.account
    assert account["stacks.mismatched"] == 0 and account["stacks.audited"] > 0, account
    assert account["stacks.transient"] == 0, account
    for name in ("python.unreadable", "python.unplaced", "python.unknown", "python.finalizing"):
        assert account[name] == 0, account
    assert account["python.stacks"] == account["stacks.walked"], account
    return account


def test_cases(args, folder):
    log, entries, _ = record(args, folder, ["cases.py"])
    account = check_log(args, log, entries)
    return "%d launches, %d stacks, %d hits, %d audits" % (
        len(entries), account["stacks.walked"], account["stacks.hits"], account["stacks.audited"])


TESTS = {"cases": test_cases}


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "dump", "bridge"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--python", default=sys.executable, help="a command line")
    parser.add_argument("--root", default="", help="where that interpreter's files lie")
    parser.add_argument("--only", action="append")
    args = parser.parse_args()
    for name, test in TESTS.items():
        if args.only and name not in args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            print("%s: %s" % (name, test(args, folder)), flush=True)


if __name__ == "__main__":
    main()
