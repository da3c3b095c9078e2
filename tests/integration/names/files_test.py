#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources of names: debug files, debuginfod, plugins and generated code. Also changed binaries, and
damaged or missing debug information."""

import collections
import functools
import http.server
import json
import lzma
import os
import random
import re
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time

import names_base as base


def paths_of(folded):
    """The sorted call paths, each as a list of frames."""
    return sorted(line.rsplit(" ", 1)[0].split(";") for line in folded.splitlines())


class Files:
    def __init__(self, tracer):
        self.tracer = tracer

    def build(self, name, source, *flags, libraries=(), link=True):
        """Build a program or plugin in its own folder."""
        args, folder = self.tracer.args, self.tracer.path(name)
        os.makedirs(folder, exist_ok=True)
        sources = [os.path.join(base.HERE, source)]
        if link:
            sources.append(os.path.join(base.HERE, "device.c"))
        self.tracer.compile([args.cc, "-g", "-O1", *flags, "-I" + args.include, *sources, "-o",
                             "program", *(self.tracer.libraries if link else ()), *libraries],
                            cwd=folder)
        return os.path.join(folder, "program")

    def calls(self, name, *flags):
        """Build calls.cpp."""
        folder = self.tracer.path(name)
        os.makedirs(folder, exist_ok=True)
        args = self.tracer.args
        self.tracer.compile([args.cc, "-g", "-O2", "-I" + args.include, "-c",
                             os.path.join(base.HERE, "device.c"), "-o", "device.o"], cwd=folder)
        self.tracer.compile(["g++", "-g", "-O2", *flags, "-I" + args.include,
                             os.path.join(base.HERE, "calls.cpp"), "device.o", "-o", "program",
                             *self.tracer.libraries], cwd=folder)
        return os.path.join(folder, "program")

    def bare(self, program, name, arguments=(), **others):
        return self.tracer.record([program, *arguments], name, embed=False, **others)

    def unnamed(self, log, *options):
        """Modules without names. The text and the JSON summary must agree."""
        text = self.tracer.merge(log, "--all", *options).stdout
        document = json.loads(self.tracer.merge(log, "--summary", "-", *options).stdout)
        table = text.partition("\nFunctions without names\n")[2].partition("\n\n")[0]
        found = {row["module"]: row["places"] for row in document["trust"]["nameless"]}
        shown = {path: int(count) for count, path in re.findall(r"^ *([0-9]+) +(/.*)$", table, re.M)}
        assert shown == found, (shown, found)
        return found

    def folded_names(self, log):
        """Call paths without inlined functions."""
        return paths_of(self.tracer.folded(log, "--inline", "off"))

    def lines(self, log, *options, **others):
        return paths_of(self.tracer.folded(log, "--lines", "on", *options, **others))


def build_id(program):
    notes = base.run(["readelf", "-n", program]).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def check_debug_files(files):
    """A stripped program has the same names with its debug file, in every place it may be."""
    tracer = files.tracer
    program = files.calls("stripped")
    log = files.bare(program, "stripped.data")
    whole = files.lines(log)
    assert any("Layer::forward (calls.cpp:" in frame for path in whole for frame in path), whole
    debug = program + ".debug"
    base.run(["objcopy", "--only-keep-debug", program, debug])
    base.run(["objcopy", "--strip-all", program])
    unnamed = files.lines(log)
    assert any(re.search(r"program\+0x[0-9a-f]+", frame) for path in unnamed for frame in path)
    assert not any("calls.cpp" in frame for path in unnamed for frame in path), unnamed
    assert all(path[0].startswith("program+0x") and "_start" not in path[0] for path in unnamed)
    places = {frame for path in unnamed for frame in path if frame.startswith("program+0x")}
    counted = files.unnamed(log)  # includes calls without GPU work
    assert list(counted) == [program] and counted[program] >= len(places) > 5, (counted, places)
    # By build id, in the folder of --debug-dir.
    folder, ident = tracer.path("debug"), build_id(program)
    place = os.path.join(folder, ".build-id", ident[:2])
    os.makedirs(place)
    shutil.copy(debug, os.path.join(place, ident[2:] + ".debug"))
    assert files.lines(log, "--debug-dir", folder) == whole
    assert files.unnamed(log, "--debug-dir", folder) == {}
    # A debug file of another build is rejected, whatever its name.
    other = files.calls("other", "-DOTHER", "-O1")
    base.run(["objcopy", "--only-keep-debug", other, os.path.join(place, ident[2:] + ".debug")])
    assert files.lines(log, "--debug-dir", folder) == unnamed
    # By debug link: beside the program, in .debug, and below --debug-dir.
    os.rename(program, program + ".bare")
    base.run(["objcopy", "--add-gnu-debuglink=" + debug, program + ".bare", program])
    shutil.rmtree(folder)
    assert files.lines(log) == whole, "beside"
    for there in (os.path.join(os.path.dirname(program), ".debug"),
                  folder + os.path.dirname(program)):
        os.makedirs(there, exist_ok=True)
        os.rename(debug, os.path.join(there, os.path.basename(debug)))
        debug = os.path.join(there, os.path.basename(debug))
        assert files.lines(log, "--debug-dir", folder) == whole, there
    # A debug file without DWARF still has the symbols.
    base.run(["objcopy", "--strip-debug", debug])
    rest = files.lines(log, "--debug-dir", folder)
    assert any("net::Layer::forward" in path for path in rest), rest
    assert not any("calls.cpp" in frame for path in rest for frame in path), rest


def check_mini_debug(files):
    """A stripped program with .gnu_debugdata has the names of its functions."""
    tracer = files.tracer
    program = files.calls("mini")
    log = files.bare(program, "mini.data")
    names = files.folded_names(log)
    assert any("net::Layer::forward" in path for path in names), names
    symbols = program + ".symbols"
    base.run(["objcopy", "--only-keep-debug", program, symbols])
    base.run(["objcopy", "--strip-debug", "--remove-section=.comment", symbols])
    with open(symbols, "rb") as file:
        packed = lzma.compress(file.read())
    base.run(["objcopy", "--strip-all", program])
    stripped = program + ".stripped"
    os.rename(program, stripped)
    assert len(packed) > 512

    def carry(data, status=0):
        with open(symbols + ".xz", "wb") as file:
            file.write(data)
        base.run(["objcopy", f"--add-section=.gnu_debugdata={symbols}.xz", stripped, program])
        return tracer.merge(log, "--folded", "-", "--inline", "off", status=status)

    whole = carry(packed)
    assert paths_of(whole.stdout) == names and "gnu_debugdata" not in whole.stderr, whole.stderr
    # If it is damaged or has no symbols, names are missing, with one warning.
    for data in (b"no xz", packed[:-40], lzma.compress(b"\0" * (1 << 20)),
                 lzma.compress(b"\x7fELF" + b"\2" * 4000)):
        less = carry(data, 1)
        said = f"{program}: .gnu_debugdata is damaged"
        assert less.stderr.count(said) == 1, less.stderr
        assert "program+0x" in less.stdout and "Layer" not in less.stdout, less.stdout


def check_no_build_id(files):
    """Without a build id, the CRC of the debug link and the time of the file are checked."""
    program = files.calls("noid", "-Wl,--build-id=none")
    log = files.bare(program, "noid.data")
    whole = files.lines(log)
    debug = program + ".debug"
    base.run(["objcopy", "--only-keep-debug", program, debug])
    stamp = os.stat(program)
    base.run(["objcopy", "--strip-all", "--add-gnu-debuglink=" + debug, program])
    os.utime(program, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert files.lines(log) == whole
    with open(debug, "ab") as file:
        file.write(b"\0")
    assert files.lines(log) != whole, "a debug file with another CRC was accepted"
    with open(log, "rb") as file:
        began_ns = struct.unpack_from("<Q", file.read(64), 32)[0]
    os.utime(program, ns=(began_ns, began_ns))
    assert not files.tracer.merge(log, "--folded", "-").stderr
    # A change within the same second counts too.
    for later_ns in (began_ns + 1, began_ns + 10**10):
        os.utime(program, ns=(later_ns, later_ns))
        done = files.tracer.merge(log, "--folded", "-", status=1)
        said = f"{program}: changed since the trace, and has no build id"
        assert done.stderr.count(said) == 1, done.stderr
        assert "main" not in done.stdout, done.stdout


def check_changed(files):
    """A program that was rebuilt gives no names, with one warning."""
    program = files.calls("changed")
    logs = [files.bare(program, f"changed{i}.data") for i in range(2)]
    files.calls("changed", "-DOTHER", "-O1")
    done = files.tracer.merge(*logs, "--folded", "-", status=1)
    said = f"{program}: not the file that was traced (build id differs)"
    assert done.stderr.count(said) == 1, done.stderr
    assert "launch" not in re.sub("cuLaunch", "", done.stdout), done.stdout
    assert said in files.tracer.merge(*logs, "--all", status=1).stdout


def check_split_missing(files):
    """Without its .dwo file, with that of another build, or with FIFOs in place of it and of the package,
    a program has lines and functions. A warning names the missing file."""
    program = files.calls("split", "-gsplit-dwarf")
    log = files.bare(program, "split.data", cwd=os.path.dirname(program))
    whole = files.lines(log)
    folder = os.path.dirname(program)
    parts = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".dwo")]
    assert len(parts) == 1, parts
    others = files.calls("others", "-gsplit-dwarf", "-DOTHER", "-O1")
    for name in os.listdir(os.path.dirname(others)):
        if name.endswith(".dwo"):
            shutil.copy(os.path.join(os.path.dirname(others), name), parts[0])
    for _ in range(3):
        done = files.tracer.merge(log, "--folded", "-", "--lines", "on", status=1, timeout=60)
        assert re.search(r"split/program: its debug information is split, and \S+\.dwo is missing or of another",
                         done.stderr), done.stderr
        rest = paths_of(done.stdout)
        assert rest != whole and len(rest) > 5
        assert any("main (calls.cpp:" in frame for path in rest for frame in path), rest
        if os.path.exists(parts[0]):
            os.unlink(parts[0])
        else:
            for fifo in (parts[0], program + ".dwp"):
                os.mkfifo(fifo)


def check_shared(files):
    """A dwz file with shared DWARF is used if it exists and has the right build id."""
    tracer = files.tracer
    if not base.has("dwz"):
        print("dwz is not installed")
        return
    program = files.calls("five")
    log = files.bare(program, "five.data")
    shutil.copy(program, program + "2")
    tracer.compile(["dwz", "--dwarf-5", "-m", "common.debug", "program", "program2"],
                   cwd=os.path.dirname(program))
    done = tracer.merge(log, "--folded", "-", "--lines", "on", status=1)
    assert "needs a .debug_sup file, which is not supported" in done.stderr, done.stderr
    assert "net::Layer::forward" in done.stdout and "calls.cpp" not in done.stdout, done.stdout
    logs = {}
    for name in ("shared", "elsewhere"):
        program = files.calls(name, *(["-DOTHER", "-O1"] if logs else []))
        logs[name] = files.bare(program, name + ".data")
        whole = files.lines(logs[name])
        shutil.copy(program, program + "2")
        tracer.compile(["dwz", "-m", "common.debug", "program", "program2"],
                       cwd=os.path.dirname(program))
        assert files.lines(logs[name]) == whole
    common = tracer.path("shared/common.debug")
    shutil.copy(tracer.path("elsewhere/common.debug"), common)
    for wrong in ("of another build", "missing", "missing"):
        done = tracer.merge(logs["shared"], "--folded", "-", "--lines", "on", status=1, timeout=60)
        said = f"shared/program: its debug information needs common.debug, which is {wrong};"
        assert done.stderr.count(said) == 1, done.stderr
        assert "net::Layer::forward" in done.stdout and "calls.cpp" not in done.stdout, done.stdout
        if os.path.exists(common):
            os.unlink(common)
        else:
            os.mkfifo(common)


def check_plugins(files):
    """Every launch has the right name, although plugins are loaded and unloaded fast at the same
    addresses. This also holds if the process is killed."""
    tracer, args = files.tracer, files.tracer.args
    names = [letter * 4 + "_step" for letter in "abcdefgh"]
    folder = tracer.path("churn")
    os.makedirs(folder)
    tracer.compile([args.cc, "-g", "-O1", "-rdynamic", "-I" + args.include,
                    os.path.join(base.HERE, "plugins.c"), "-o", "churn", *tracer.libraries, "-ldl",
                    "-pthread"], cwd=folder)
    for number, name in enumerate(names):
        tracer.compile([args.cc, "-g", "-O1", "-shared", "-fPIC", "-DNAME=" + name,
                        f"-DKERNEL={number}", os.path.join(base.HERE, "plugin.c"), "-o",
                        name + ".so"], cwd=folder)
    plugins = [os.path.join(folder, name + ".so") for name in names]
    for threads, stay_us, loads, killed in ((1, 0, 300, 0), (4, 0, 200, 0), (2, 1000, 300, 0),
                                            (4, 5000, 150, 0), (2, 1000, 300, 1)):
        seed = args.seed if args.seed is not None else random.randrange(1 << 30)
        what = f"{threads} threads, {stay_us} us, seed {seed}"
        log, said = tracer.record_with_output(
            [os.path.join(folder, "churn"), *map(str, (seed, threads, loads, stay_us, killed)),
             *plugins], "churn.data", status=137 if killed else 0)
        truth = dict(line.split() for line in said.splitlines() if line.startswith("k"))
        tables = tracer.tables(log)
        counts, wrong = collections.Counter(), []
        for line in tracer.folded(log, "--weight", "count", status=(0, 1) if killed
                                  else 0).splitlines():
            path, count = line.rsplit(" ", 1)
            match = re.fullmatch(r"work;load;run;(\w+);plugin_launch;cuLaunchKernel;"
                                 r"\[GPU_Kernel\]k(\d)", path)
            if killed and path.startswith("[unattributed];"):
                continue  # the call had not returned
            if not match or match[1] != names[int(match[2])]:
                wrong.append(line)
            else:
                counts["k" + match[2]] += int(count)
        assert not wrong, (what, wrong)
        places = collections.defaultdict(set)
        for row in tables["MODULE"]:
            if row["path"] in plugins:
                places[row["start"]].add(row["path"])
        assert max(map(len, places.values())) >= 2, "no two plugins had the same address"
        if not killed:
            assert {name: str(counts[name]) for name in truth} == truth, (what, counts, truth)
        print(f"  {what}{', killed' if killed else ''}: {sum(counts.values())} launches named correctly;"
              f" {max(map(len, places.values()))} plugins at the same address")


def check_jit(files):
    """Generated code has the names of /tmp/perf-<pid>.map, if this process wrote it."""
    tracer = files.tracer
    program = files.build("jit", "jit.c")
    # [unknown]: one function replaced another at the same address, so the caller is ambiguous.
    wanted = {"[unknown]", "jit_loop<float: 3>", "jit::step", "py::train_step:/src/train.py"}

    def names(log, *options, **others):
        paths = paths_of(tracer.folded(log, *options, **others))
        assert all(path[0] == "[truncated]" and path[2] == "device_launch" for path in paths), paths
        return {path[1] for path in paths}

    def map_of(log):
        return f"/tmp/perf-{os.path.basename(log).split('.')[-2]}.map"

    log = tracer.record([program], "jit.data")
    os.unlink(map_of(log))
    assert names(log) == wanted, names(log)
    log = tracer.record([program], "jit.bare", embed=False)
    assert names(log, status=1) == wanted
    said = "1 address in stacks had several generated functions"
    assert tracer.merge(log, "--folded", "-", status=1).stderr.count(said) == 1
    # A map of an earlier process with the same number, of a later one, or of another user.
    for when in (time.time() - 100, time.time() + 100):
        os.utime(map_of(log), (when, when))
        assert names(log) == {"[unknown]"}
    os.utime(map_of(log))
    assert names(log, status=1) == wanted
    if os.geteuid() == 0:
        os.chown(map_of(log), 12345, -1)
        assert names(log) == {"[unknown]"}
    os.unlink(map_of(log))
    log = tracer.record([program, "--remove"], "jit.gone", embed=False)
    assert names(log) == {"[unknown]"}


def check_loops(files):
    """Debug information with cyclic sibling references is walked once."""
    if os.uname().machine != "x86_64":
        print("loops: this machine is not x86-64")
        return
    depth, tracer = 40, files.tracer
    folder = tracer.path("loops")
    os.makedirs(folder)
    # Nested namespaces. Each names its first child as its next sibling.
    text = [""".text
        .globl main
        .type main, @function
    main: sub $8, %rsp
        call work
        xor %eax, %eax
        add $8, %rsp
        ret
    .Lend: .size main, .-main
        .section .debug_abbrev, "", @progbits
        .uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7
        .uleb128 0; .uleb128 0
        .uleb128 2; .uleb128 0x39; .byte 1; .uleb128 1; .uleb128 0x13; .uleb128 0; .uleb128 0
        .uleb128 3; .uleb128 0x2e; .byte 0; .uleb128 0x3f; .uleb128 0x19; .uleb128 0; .uleb128 0
        .byte 0
        .section .debug_info, "", @progbits
    .Lunit: .long .Lunit_end - .Lunit_start
    .Lunit_start: .short 4
        .long 0
        .byte 8
        .uleb128 1
        .quad main
        .quad .Lend - main"""]
    text += [f".Ld{i}: .uleb128 2\n .long .Ld{i + 1} - .Lunit" for i in range(depth)]
    text += [f".Ld{depth}: .uleb128 3"] + [".byte 0"] * (depth + 1) + [".Lunit_end:"]
    with open(os.path.join(folder, "main.s"), "w") as file:
        file.write("\n".join(text) + '\n.section .note.GNU-stack, "", @progbits\n')
    with open(os.path.join(folder, "work.c"), "w") as file:
        file.write('#include "device.h"\nvoid work(void) { device_open(); device_launch(1);'
                   ' device_close(); }\n')
    args = tracer.args
    tracer.compile([args.cc, "-O1", "-I" + args.include, "-I" + base.HERE, "main.s", "work.c",
                    os.path.join(base.HERE, "device.c"), "-o", "program", *tracer.libraries],
                   cwd=folder)
    log = files.bare(os.path.join(folder, "program"), "loops.data")
    done = tracer.merge(log, "--folded", "-", "--lines", "on", status=1, timeout=60)
    assert "its debug information is damaged" in done.stderr, done.stderr
    assert "main;work;device_launch;" in done.stdout, done.stdout


def check_lambdas(files):
    """Two lambdas in one function have different names, inlined or not."""
    tracer, args = files.tracer, files.tracer.args
    folder = tracer.path("lambdas")
    os.makedirs(folder)
    with open(os.path.join(folder, "lambdas.cpp"), "w") as file:
        file.write("""extern "C" {
#include "device.h"
}
int main()
{
	auto first = [](int n) { device_launch(n); asm volatile(""); };
	auto second = [](int n) { device_launch(n); asm volatile(""); };
	device_open();
	first(1);
	second(2);
	device_close();
}
""")
    tracer.compile([args.cc, "-g", "-I" + args.include, "-c", os.path.join(base.HERE, "device.c"),
                    "-o", "device.o"], cwd=folder)
    for level in ("-O0", "-O2"):
        tracer.compile(["g++", "-g", level, "-I" + base.HERE, "-I" + args.include, "lambdas.cpp",
                        "device.o", "-o", "program", *tracer.libraries], cwd=folder)
        log = files.bare(os.path.join(folder, "program"), "lambdas.data")
        found = {path[1] for path in paths_of(tracer.folded(log))}
        assert len(found) == 2 and all("{lambda" in name for name in found), found


def check_hidden_interpreter(files):
    """A warning says that Python frames are missing if a program hides its interpreter."""
    tracer, args = files.tracer, files.tracer.args
    folder = tracer.path("hidden")
    os.makedirs(folder)
    with open(os.path.join(folder, "engine.c"), "w") as file:
        file.write("""#include "device.h"
static __attribute__((noinline)) void _PyEval_EvalFrameDefault(void) { device_launch(1); __asm__ volatile(""); }
int main(void) { device_open(); _PyEval_EvalFrameDefault(); device_close(); }
""")
    tracer.compile([args.cc, "-O1", "-I" + base.HERE, "-I" + args.include, "engine.c",
                    os.path.join(base.HERE, "device.c"), "-o", "engine", *tracer.libraries], cwd=folder)
    program = os.path.join(folder, "engine")
    said = f"no Python frames: the interpreter in {program} does not export its symbols"
    log = files.bare(program, "hidden.data")
    done = tracer.merge(log, status=1)
    assert said in done.stderr and said in done.stdout, done
    log = files.bare(program, "unwanted.data", environment={"XTRACE_PYTHON": "off"})
    assert "Python" not in tracer.merge(log).stderr


TWO_STEPS = """
#include "device.h"
static __attribute__((noinline)) void step(void) { device_launch(1); __asm__ volatile(""); }
void from_%s(void) { step(); __asm__ volatile(""); }
"""
OVERLOADS = """
extern "C" {
#include "device.h"
void from_left(void);
void from_right(void);
}
#define APART __attribute__((noinline))
static APART void go(int n) { device_launch(n); __asm__ volatile(""); }
static APART void go(double) { device_launch(4); __asm__ volatile(""); }
namespace { APART void solo(int n) { device_launch(n); __asm__ volatile(""); } }
struct %(long)s_left {};
struct %(long)s_right {};
template <class T> APART void with(T) { device_launch(sizeof(T)); __asm__ volatile(""); }
int main()
{
	device_open();
	from_left();
	from_right();
	go(1);
	go(1.0);
	solo(2);
	with(%(long)s_left());
	with(%(long)s_right());
	device_close();
}
""" % {"long": "one_of_the_names_that_are_made_by_programs_and_differ_at_their_ends_alone" * 2}


def check_same_names(files):
    """Functions with the same name, or with the same short name, are shown separately."""
    tracer, args = files.tracer, files.tracer.args
    folder = tracer.path("same")
    os.makedirs(folder)
    for name, text in (("left.c", TWO_STEPS % "left"), ("right.c", TWO_STEPS % "right"),
                       ("main.cpp", OVERLOADS)):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    program = os.path.join(folder, "program")
    includes = ["-I" + base.HERE, "-I" + args.include]
    for flags in (["-g"], [], ["-g", "-flto"]):
        tracer.compile([args.cc, "-O1", *flags, *includes, "-c", "left.c", "right.c",
                        os.path.join(base.HERE, "device.c")], cwd=folder)
        tracer.compile(["g++", "-O1", *flags, *includes, "main.cpp", "left.o", "right.o",
                        "device.o", "-o", "program", *tracer.libraries], cwd=folder)
        log = files.bare(program, "same.data")
        for options in ([], ["--full-names"], ["--lines", "on"] if "-g" in flags else []):
            found = paths_of(tracer.folded(log, *options))
            callers = {path[-4] for path in found}
            assert len(found) == len(callers) == 7, (flags, options, found)
            assert "--lines" not in options or "step (left.c:3)" in callers, callers
        found = {frame for path in paths_of(tracer.folded(log)) for frame in path}
        assert {"go [with int]", "go [with double]", "solo"} <= found, found
        assert not any(frame.startswith("solo [") for frame in found)
        steps = sorted(frame for frame in found if frame.startswith("step"))
        if "-g" in flags:
            assert steps == ["step [left.c]", "step [right.c]"], steps
        else:
            assert all(re.fullmatch(r"step \[program\+0x[0-9a-f]+\]", step) for step in steps), steps
    # A function of the same name in two modules, built from different files.
    names = ("one", "two")
    for name in names:
        with open(os.path.join(folder, name + ".c"), "w") as file:
            file.write("void plugin_launch(unsigned kernel);\n"
                       "void run(void) { plugin_launch(%d); __asm__ volatile(\"\"); }\n" %
                       names.index(name))
    tracer.compile([args.cc, "-g", "-O1", "-rdynamic", *includes,
                    os.path.join(base.HERE, "plugins.c"), "-o", "plugins", *tracer.libraries,
                    "-ldl", "-pthread"], cwd=folder)
    for flags, wanted in ((["-g"], ["run [one.c]", "run [two.c]"]),
                          ([], ["run [one.so]", "run [two.so]"])):
        for name in names:
            tracer.compile([args.cc, "-O1", *flags, "-shared", "-fPIC", name + ".c", "-o",
                            name + ".so"], cwd=folder)
        log = files.bare(os.path.join(folder, "plugins"), "run.data", arguments=[
            "1", "1", "20", "0", "0", *(os.path.join(folder, name + ".so") for name in names)])
        runs = {frame for path in paths_of(tracer.folded(log)) for frame in path
                if frame.startswith("run")}
        assert sorted(runs) == wanted, (runs, wanted)
    # Modules opened by a relative path.
    log = files.bare(os.path.join(folder, "plugins"), "run.data", cwd=folder, arguments=[
        "1", "1", "20", "0", "0", "./one.so", "./two.so"])
    runs = {frame for path in paths_of(tracer.folded(log)) for frame in path
            if frame.startswith("run")}
    assert sorted(runs) == wanted, (runs, wanted)


class Quiet(http.server.SimpleHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Quiet.asked += 1
        super().do_GET()

    def log_message(self, *_):
        pass


def check_server(files):
    """Servers are asked only if the user has named them. A dead or silent server does not block."""
    tracer = files.tracer
    program = files.calls("served")
    log = files.bare(program, "served.data")
    whole = files.lines(log)
    folder = tracer.path("www")
    place = os.path.join(folder, "buildid", build_id(program))
    os.makedirs(place)
    base.run(["objcopy", "--only-keep-debug", program, os.path.join(place, "debuginfo")])
    base.run(["objcopy", "--strip-all", program])
    environment = dict(os.environ, DEBUGINFOD_CACHE_PATH=tracer.path("cache"))
    environment.pop("DEBUGINFOD_URLS", None)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    unnamed = files.lines(log, env=environment)
    assert unnamed != whole and not Quiet.asked
    environment["DEBUGINFOD_URLS"] = f"http://127.0.0.1:{server.server_port}"
    done = tracer.merge(log, "--folded", "-", "--lines", "on", env=environment)
    if "libdebuginfod.so.1 is not installed" in done.stderr:
        print("libdebuginfod.so.1 is not installed")
        sys.exit(77)
    assert paths_of(done.stdout) == whole and Quiet.asked, done.stderr
    server.shutdown()
    # A refused connection does not delay the merge.
    with socket.socket() as none:
        none.bind(("127.0.0.1", 0))
        environment.update(DEBUGINFOD_URLS=f"http://127.0.0.1:{none.getsockname()[1]}",
                           DEBUGINFOD_CACHE_PATH=tracer.path("cache2"))
        began = time.monotonic()
        assert files.lines(log, env=environment) == unnamed
        assert time.monotonic() - began < 30
    # This server accepts connections but never answers: the client stops after 20 s.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment.update(DEBUGINFOD_URLS=f"http://127.0.0.1:{silent.getsockname()[1]}",
                           DEBUGINFOD_CACHE_PATH=tracer.path("cache3"))
        began = time.monotonic()
        done = tracer.merge(log, "--folded", "-", "--lines", "on", env=environment)
        assert paths_of(done.stdout) == unnamed and "no answer in time" in done.stderr, done.stderr
        assert time.monotonic() - began < 60


CHECKS = (check_debug_files, check_mini_debug, check_no_build_id, check_changed, check_split_missing,
          check_shared, check_plugins,
          check_same_names, check_jit, check_loops, check_lambdas, check_hidden_interpreter)


def main():
    os.environ["COLUMNS"] = "1000"  # no line of text is wrapped
    args = base.parse_arguments()
    checks = (check_server,) if args.server else CHECKS
    if not (base.has("g++") and base.has("objcopy") and base.has("readelf")):
        print("g++ or binutils is not installed")
        sys.exit(77)
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            check(Files(base.Tracer(args, os.path.realpath(folder))))
        print(check.__doc__.splitlines()[0], flush=True)


if __name__ == "__main__":
    main()
