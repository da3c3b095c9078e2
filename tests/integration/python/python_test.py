#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Python frames in call stacks with Python's own.

Runs programs that launch through ctypes on the simulated GPU and record sys._getframe() at each
launch. The stack of each launch in the log must match, frame by frame and line by line. Each run
of frames must be at a native frame of the interpreter's loop. Known C code between two Python
frames must be between them.

--python runs the programs with another interpreter, as tools/check-pythons.sh does.
"""

import argparse
import bisect
import collections
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, status=0, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != status:
        sys.exit("%s exited %s\n%s\n%s" % (command, done.returncode, done.stdout, done.stderr))
    return done


class Log:
    """The tables of a log, from the independent reader, and the call of each launch."""

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
    """Compares frames. Up to 3.10, a name is the plain function name."""
    got = [log.frames[number] for number in stack["python"]]
    wanted = [tuple(frame) for frame in entry["frames"]]
    assert [(name, file, line or 0) for name, file, line in wanted] == got, (
        "launch %d:\n  wanted %s\n  got    %s" % (entry["number"], wanted, got))


def check_places(log, functions, entry, stack, bridge):
    """Each run of Python frames is at a frame of the loop, and the bridge is between two runs."""
    native = [address for _, address in stack["frames"]]
    loops = []
    for place in dict.fromkeys(stack["places"]):
        assert place < len(native), (entry, stack)
        module = log.module_at(native[place])
        name = functions.name_of(module, native[place])
        # A cold part of the loop may be elsewhere and have no name.
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
    # The bridge called called_back: its frame is between that and its caller.
    inner = max(i for i, number in enumerate(stack["python"])
                if log.frames[number][0].endswith("called_back"))
    assert stack["places"][inner] < bridges[-1], (entry, stack, bridges)
    if inner + 1 < len(stack["places"]):
        outer = next((place for place, number in zip(stack["places"][inner + 1:],
                                                     stack["python"][inner + 1:])
                      if not log.frames[number][0].endswith("in_foreign")), None)
        assert outer is None or bridges[-1] < outer, (entry, stack, bridges)


def record(args, folder, program, status=0, options=(), whole=True, command=None, **environment):
    """Runs a program of this folder, or another command. Returns its log and its ledger."""
    data = os.path.join(folder, "data")
    ledger = os.path.join(folder, "ledger")
    environment = dict(os.environ, **{**dict(
        LEDGER=ledger, BRIDGE=args.bridge, XTRACE_AUDIT="7", PYTHONPATH=HERE,
        PYTHONDONTWRITEBYTECODE="1"), **environment})
    done = run([args.xtrace, "record", "--simulate", *options, "-o", data, "--",
                *(command or [*args.python.split(), os.path.join(HERE, program[0])]),
                *program[0 if command else 1:]], status, env=environment)
    logs = [os.path.join(data, name) for name in os.listdir(data) if name.endswith(".xtr")]
    assert len(logs) == 1, os.listdir(data)
    if whole:
        run([args.dump, "--check", logs[0]])
    entries = []
    if os.path.exists(ledger):
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
    assert account["stacks.mismatched"] == 0 and account["stacks.transient"] == 0, account
    assert account["stacks.audited"] >= account["stacks.hits"] // 8 > 0, account
    for name in ("python.unreadable", "python.unplaced", "python.unknown", "python.finalizing"):
        assert account[name] == 0, account
    assert account["python.stacks"] == account["stacks.walked"], account
    return account


def test_cases(args, folder):
    log, entries, _ = record(args, folder, ["cases.py"])
    account = check_log(args, log, entries)
    return "%d launches, %d stacks, %d hits, %d audits" % (
        len(entries), account["stacks.walked"], account["stacks.hits"], account["stacks.audited"])


def test_trees(args, folder):
    """Random call trees, one program per seed."""
    launches = 0
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        with tempfile.TemporaryDirectory(dir=folder) as one:
            try:
                log, entries, _ = record(args, one, ["trees.py", str(seed), str(args.launches)])
                check_log(args, log, entries)
            except BaseException:
                print("seed %d:" % seed)
                raise
        launches += len(entries)
    return "%d seeds, %d launches" % (args.seeds, launches)


def test_killed(args, folder):
    """The calls of a killed process have Python frames, from the log or from the crash buffer."""
    recovered = checked = 0
    for count in (3, 50, 400, 1500):
        with tempfile.TemporaryDirectory(dir=folder) as one:
            log, entries, _ = record(args, one, ["killed.py", str(count)], status=128 + 9,
                                     LEDGER_LIVE="1")
        by_number = {entry["number"]: entry for entry in entries}
        assert len(entries) == count // 2 * 2
        recovered += log.account.get("recovered.calls", 0)
        assert len(log.tables["CALL"]) >= len(entries), (len(log.tables["CALL"]), len(entries))
        for number, stack in log.stacks.items():
            if stack:
                check_frames(log, by_number[number], stack)
                checked += 1
        # Launches that the GPU had not run have no kernel, but their calls are known.
        python = {row["id"]: row["python"] for row in log.tables["STACK"]}
        calls = [row for row in log.tables["CALL"] if len(python.get(row["stack"], ())) >= 4]
        assert len(calls) >= len(entries), (len(calls), len(entries))
    assert recovered
    return "%d launches, %d calls recovered" % (checked, recovered)


def test_off(args, folder):
    """With --python off, native stacks stay the same and have no Python frames."""
    log, entries, _ = record(args, folder, ["cases.py", "recursion"], options=["--python", "off"])
    assert entries and not log.tables["PYTHON_FRAME"] and "python.version" not in log.meta
    assert all(log.stacks[entry["number"]]["frames"] and not log.stacks[entry["number"]]["python"]
               for entry in entries)
    return "%d launches" % len(entries)


def fold(args, folder, mode):
    done = run([args.merge, "--folded", "-", "--python", mode, os.path.join(folder, "data")])
    return [line.rsplit(" ", 1)[0].split(";") for line in done.stdout.splitlines()]


def shown(frame):
    name, file, line = frame
    return "%s (%s:%d)" % (name, os.path.basename(file), line)


def is_of_interpreter(frame):
    return frame.startswith(("_PyEval_", "PyObject_", "_PyObject_", "python3.", "libpython3.", "ffi_",
                             "libffi.so", "_ctypes_", "_ctypes.cpython"))


def test_shown(args, folder):
    """The merge shows Python frames in order, with the C code between them."""
    _, entries, _ = record(args, folder, ["cases.py", "callbacks", "recursion"])
    wanted = {tuple(shown(frame) for frame in reversed(entry["frames"])) for entry in entries}
    only = fold(args, folder, "only")
    assert {tuple(line[:-2]) for line in only} == wanted, (only, wanted)
    mixed = fold(args, folder, "mixed")
    # --full shows the interpreter's own functions.
    full = fold(args, folder, "full")
    assert sum(map(len, full)) > sum(map(len, mixed)) and len(full) >= len(mixed)
    assert {tuple(frame for frame in line if ".py:" in frame) for line in full} == wanted
    assert any(is_of_interpreter(frame) for line in full for frame in line), full
    assert not any(is_of_interpreter(frame) for line in mixed for frame in line), mixed
    assert {tuple(frame for frame in line if ".py:" in frame) for line in mixed} == wanted
    for line in mixed:
        assert ".py:" in line[0], line  # frames that start the interpreter are hidden
        assert not any("EvalFrameDefault" in frame for frame in line), line
        inner = [i for i, frame in enumerate(line) if frame.startswith("called_back ")]
        for i in inner:
            before = max(place for place in range(i) if ".py:" in line[place])
            assert "bridge_call" in line[before + 1:i], line
    done = run([args.merge, "--folded", "-", "--full-names", os.path.join(folder, "data")])
    assert " (%s:" % os.path.join(HERE, "cases.py") in done.stdout
    off = fold(args, folder, "off")
    # With another root, the files with the symbols were elsewhere.
    assert args.root or any("_PyEval_EvalFrameDefault" in line for line in off)
    assert not any(".py:" in frame for line in off for frame in line), off
    return "%d paths" % len(mixed)


def test_subinterpreter(args, folder):
    """Up to 3.11, frames are unknown if there are several interpreters and none holds the GIL. A
    message says so.
    """
    log, entries, _ = record(args, folder, ["subinterpreter.py"], LEDGER_LIVE="1")
    version = tuple(map(int, log.meta["python.version"].split(".")[:2]))
    for entry in entries:
        if entry.get("uncertain") and version < (3, 12):
            entry["frames"] = []
        check_frames(log, entry, log.stacks[entry["number"]])
    assert log.account["stacks.mismatched"] == 0
    assert log.account["python.unknown"] > 0 or version >= (3, 12)
    return "%d launches" % len(entries)


def test_states(args, folder):
    """States that another thread runs or has deleted: the program is not harmed, and no thread gets
    the frames of another. From 3.12 on, frames are known even if the thread's variable does not
    name the state.
    """
    log, entries, _ = record(args, folder, ["states.py"])
    version = tuple(map(int, log.meta["python.version"].split(".")[:2]))
    seen = collections.Counter()
    for entry in entries:
        if entry.get("lent") and version < (3, 12):
            entry["frames"] = []
        check_frames(log, entry, log.stacks[entry["number"]])
        seen["native" if entry.get("native") else "of Python"] += 1
    assert seen["native"] >= 200 and log.account["stacks.mismatched"] == 0, (seen, log.account)
    # Their native stack contains Python whose frames are unknown. From 3.14 on there are none.
    assert log.account["python.unknown"] > 0 or version >= (3, 14), log.account
    assert log.account["python.unplaced"] == 0 and log.account["python.unreadable"] == 0
    return ", ".join("%d launches %s" % (count, name) for name, count in seen.items())


def test_restarted(args, folder):
    """A program that repeatedly ends its interpreter and starts a new one. Code of an ended
    interpreter is never mistaken for new objects at its address.
    """
    *before, python = args.python.split()
    asked = run([*before, python, "-c", "import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix)"])
    path, prefix = asked.stdout.split()
    engine = os.path.join(folder, "engine")  # the interpreter's own executable cannot restart it
    shutil.copy(args.root + path, engine)
    draw = random.Random(args.first_seed)
    names = [draw.choice("abc") for _ in range(args.interpreters)]
    code = ["%s def %s(): return launch()" % (name, name) for name in names]
    log, _, _ = record(args, folder, code, XTRACE_AUDIT="0",
                       command=[*before, "env", "LD_PRELOAD=" + args.restarter, "PYTHONHOME=" + prefix, engine])
    for number in range(1, 3 * len(names) + 1):
        name = names[(number - 1) // 3]
        check_frames(log, {"number": number, "frames": [(name, "/tmp/%s.py" % name, 1)]}, log.stacks[number])
    # The frames around the interpreter are the program's.
    for line in fold(args, folder, "mixed"):
        inner = [i for i, frame in enumerate(line) if ".py:1)" in frame]
        assert len(inner) == 1 and line.index("run_each") < line.index("run") < inner[0], line
    return "%d interpreters, %d stacks, %d hits" % (
        args.interpreters, log.account["stacks.walked"], log.account["stacks.hits"])


def test_shutdown(args, folder):
    """Launches from daemon threads and dying objects: every run ends normally."""
    said = collections.Counter()
    for _ in range(args.shutdowns):
        with tempfile.TemporaryDirectory(dir=folder) as one:
            # Threads launch until the end, after the last recorded call.
            log, _, _ = record(args, one, ["shutdown.py"], whole=False)
        for name in ("python.finalizing", "python.unreadable", "calls.written"):
            said[name] += log.account[name]
        assert log.account["stacks.mismatched"] == 0
        # The thread that shuts down has its frames until the last launch.
        names = {frame[0] for frame in log.frames.values()}
        assert any(name.endswith("__del__") for name in names), names
    assert said["python.unreadable"] == 0 and said["python.finalizing"] > 0, said
    return ", ".join("%s %d" % item for item in said.items())


def test_declined(args, folder):
    """Unknown interpreters: native stacks, and a message."""
    expected = {"future": ("3.15.0", "3.9 to 3.14 are supported"),
                "unpublished": ("3.13.1", "does not publish its layout"),
                "preview": ("3.14.0", "3.9 to 3.14 are supported"),
                "nameless": ("3.12.1", "does not export _PyRuntime"),
                "old": ("before 3.9", "3.9 to 3.14 are supported")}
    for path in args.fakes:
        name = os.path.basename(path).replace("libpython_fake_", "").replace(".so", "")
        version, reason = expected.pop(name)
        with tempfile.TemporaryDirectory(dir=folder) as one:
            data = os.path.join(one, "data")
            done = run([args.xtrace, "record", "--simulate", "-o", data, "--", "env",
                        "LD_PRELOAD=" + path, args.launcher, "1", "1", "100", "1", "0"])
            said = [line for line in done.stderr.splitlines() if "Python" in line]
            assert len(said) == 1 and version in said[0] and reason in said[0], done.stderr
            log = Log(args, next(os.path.join(data, name) for name in os.listdir(data)
                                 if name.endswith(".xtr")))
            assert reason in log.meta["python.missing"] and log.meta["python.path"] == path
            stacks = [row["stack"] for row in log.tables["CALL"]]
            assert len(stacks) >= 100 and all(stacks)
            assert not any(row["python"] for row in log.tables["STACK"])
            done = run([args.merge, data], status=1)
            assert reason in " ".join(done.stdout.split()), done.stdout
    assert not expected, expected
    # A program named like an interpreter, without its symbols.
    program = os.path.join(folder, "python3.12")
    shutil.copy(args.launcher, program)
    done = run([args.xtrace, "record", "--simulate", "-o", os.path.join(folder, "data"), "--",
                program, "1", "1", "100", "1", "0"])
    assert "exports none of its symbols" in done.stderr, done.stderr
    # The search continues after an interpreter that is declined.
    data = os.path.join(folder, "both")
    fakes = {os.path.basename(path): path for path in args.fakes}
    preload = "%s:%s" % (fakes["libpython_fake_future.so"], fakes["libpython_fake_old.so"])
    done = run([args.xtrace, "record", "--simulate", "-o", data, "--", "env",
                "LD_PRELOAD=" + preload, program, "1", "1", "100", "1", "0"])
    said = [line for line in done.stderr.splitlines() if "Python" in line]
    assert len(said) == 3 and all(text in done.stderr for text in (
        "exports none", "3.15.0", "before 3.9")), done.stderr
    # A program with a merely similar name causes no message.
    program = os.path.join(folder, "python3app")
    shutil.copy(args.launcher, program)
    done = run([args.xtrace, "record", "--simulate", "-o", os.path.join(folder, "app"), "--",
                program, "1", "1", "100", "1", "0"])
    assert "Python" not in done.stderr, done.stderr
    return "%d of them" % (len(args.fakes) + 1)


TESTS = {"cases": test_cases, "trees": test_trees, "killed": test_killed, "off": test_off,
         "shown": test_shown, "subinterpreter": test_subinterpreter,
         "states": test_states, "restarted": test_restarted, "shutdown": test_shutdown,
         "declined": test_declined}


def parse(tests):
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "dump", "bridge", "restarter", "launcher"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--fakes", nargs="*", default=[])
    parser.add_argument("--python", default=sys.executable, help="a command line")
    parser.add_argument("--root", default="", help="where that interpreter's files lie")
    parser.add_argument("--only", action="append", choices=tests)
    parser.add_argument("--seeds", type=int, default=2, help="random programs (2)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--launches", type=int, default=1500, help="of each, at least (1500)")
    parser.add_argument("--shutdowns", type=int, default=3)
    parser.add_argument("--interpreters", type=int, default=40, help="one after the other (40)")
    return parser.parse_args()


def main():
    args = parse(TESTS)
    for name, test in TESTS.items():
        if args.only and name not in args.only or name == "declined" and not args.fakes:
            continue
        with tempfile.TemporaryDirectory() as folder:
            print("%s: %s" % (name, test(args, folder)), flush=True)


if __name__ == "__main__":
    main()
