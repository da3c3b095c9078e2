#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds one program in many ways. Inlined functions and lines must match addr2line."""

import concurrent.futures
import os
import shutil
import sys
import tempfile

import names_base as base

# Name, flags, and flags of a twin with the same code if addr2line cannot read the build itself.
GCC = [
    ("O0", ["-O0"], None),
    ("O1, frame pointers", ["-O1", "-fno-omit-frame-pointer"], None),
    ("O2", ["-O2"], None),
    ("O3, no frame pointers", ["-O3", "-fomit-frame-pointer"], None),
    ("Os, DWARF 4", ["-Os", "-gdwarf-4"], None),
    ("O2, LTO", ["-O2", "-flto"], None),
    ("O2, no PIE", ["-O2", "-no-pie", "-fno-pie"], None),
    ("O2, compressed", ["-O2", "-gz"], None),
    ("O2, type units", ["-O2", "-fdebug-types-section"], ["-O2"]),
    ("O2, sections dropped", ["-O2", "-ffunction-sections", "-Wl,--gc-sections"], None),
    ("O2, split", ["-O2", "-gsplit-dwarf"], ["-O2"]),
    ("O2, split, compressed", ["-O2", "-gsplit-dwarf", "-gz"], ["-O2"]),
    ("O2, split, DWARF 4", ["-O2", "-gdwarf-4", "-gsplit-dwarf"], ["-O2", "-gdwarf-4"]),
    ("O2, package, DWARF 4", ["-O2", "-gdwarf-4", "-gsplit-dwarf", "dwp"], ["-O2", "-gdwarf-4"]),
    ("O2, LLVM's package, DWARF 4", ["-O2", "-gdwarf-4", "-gsplit-dwarf", "llvm-dwp"],
     ["-O2", "-gdwarf-4"]),
    ("O2, LLVM's package", ["-O2", "-gsplit-dwarf", "llvm-dwp"], ["-O2"]),
    ("O2, dwz", ["-O2", "dwz"], ["-O2"]),
    ("O2, dwz with a shared file", ["-O2", "dwz -m"], ["-O2"]),
]
# Tools to run after linking.
STEPS = ("dwp", "llvm-dwp", "dwz", "dwz -m")
CLANG = [
    ("O0", ["-O0"], None),
    ("O2", ["-O2"], None),
    ("O3, DWARF 4", ["-O3", "-gdwarf-4"], None),
    ("O2, split", ["-O2", "-gsplit-dwarf"], ["-O2"]),
    ("O2, LLVM's package", ["-O2", "-gsplit-dwarf", "llvm-dwp"], ["-O2"]),
]
RUST = [
    ("debug", ["-Copt-level=0"], None),
    ("release", ["-Copt-level=3"], None),
    ("release, v0 names", ["-Copt-level=3", "-Csymbol-mangling-version=v0"], None),
]


def build_cxx(tracer, folder, compiler, flags):
    """Compile each object separately, so that split DWARF has its .dwo files or a package."""
    steps = [flag for flag in flags if flag in STEPS]
    flags = [flag for flag in flags if flag not in STEPS]
    c_compiler = compiler.replace("clang++", "clang").replace("g++", "gcc")
    os.makedirs(folder, exist_ok=True)
    compile_flags = [flag for flag in flags if not flag.startswith("-Wl,")]
    for tool, source in ((c_compiler, "device.c"), (compiler, "calls.cpp")):
        tracer.compile([tool, "-g", *compile_flags, "-I" + tracer.args.include, "-c",
                        os.path.join(base.HERE, source), "-o", source + ".o"], cwd=folder)
    tracer.compile([compiler, "-g", *flags, "device.c.o", "calls.cpp.o", "-o", "program",
                    *tracer.libraries], cwd=folder)
    for step in steps:
        if step == "dwz -m":  # moves shared DWARF to a file
            shutil.copy(os.path.join(folder, "program"), os.path.join(folder, "other"))
            tracer.compile(["dwz", "-m", "common.debug", "program", "other"], cwd=folder)
            assert os.path.exists(os.path.join(folder, "common.debug"))
        elif step == "dwz":
            tracer.compile(["dwz", "program"], cwd=folder)
        else:
            make_package(tracer, folder, step)
    return os.path.join(folder, "program")


def make_package(tracer, folder, tool):
    tracer.compile([tool, "-e", "program", "-o", "program.dwp"], cwd=folder)
    for name in os.listdir(folder):
        if name.endswith(".dwo"):
            os.unlink(os.path.join(folder, name))


def build_rust(tracer, folder, _, flags):
    os.makedirs(folder, exist_ok=True)
    tracer.compile([tracer.args.cc, "-g", "-O1", "-I" + tracer.args.include, "-c",
                    os.path.join(base.HERE, "device.c"), "-o", "device.o"], cwd=folder)
    tracer.compile(["rustc", "-g", *flags, os.path.join(base.HERE, "calls.rs"), "-o", "program",
                    "-Clink-arg=device.o", "-Clink-arg=-L" + tracer.args.simgpu,
                    "-Clink-arg=-l:libcuda.so.1"], cwd=folder)
    return os.path.join(folder, "program")


def check_build(tracer, builder, compiler, what, flags, twin_flags):
    name = f"{compiler} {what}"
    folder = tracer.path(name.replace(" ", "_").replace(",", ""))
    program = builder(tracer, folder, compiler, flags)
    log = tracer.record([program], os.path.basename(folder) + ".data", cwd=folder)
    tables = tracer.tables(log)
    addresses = base.addresses_of(tables, program)
    oracle = program
    if twin_flags:
        oracle = builder(tracer, folder + "_twin", compiler, twin_flags)
        codes = [base.run(["objcopy", "-O", "binary", "--only-section=.text", file, "/dev/stdout"],
                          encoding="latin-1").stdout for file in (program, oracle)]
        assert codes[0] and codes[0] == codes[1], f"{name}: code differs from its twin"
    chains = base.embedded_chains(tables, program)
    for tool in base.ORACLES:
        if base.has(tool):
            known, inlined = base.check_chains(
                f"{name}, {tool}", chains, base.oracle_chains(tool, oracle, addresses), addresses,
                symbol_first=tool == "addr2line",
                files=not (tool == "addr2line" and compiler == "clang++"))
    # A log with embedded symbols gives the same output as one that needs the program.
    bare = tracer.record([program], os.path.basename(folder) + ".bare", embed=False, cwd=folder)
    for options in ([], ["--lines", "on"], ["--inline", "off"], ["--full-names"],
                    ["--lines", "on", "--inline", "off"]):
        assert (strip_times(tracer.folded(bare, *options)) ==
                strip_times(tracer.folded(log, *options))), f"{name}: embedded differs: {options}"
    os.rename(program, program + ".gone")
    text = tracer.folded(log, "--lines", "on")
    assert text.count("device_launch (device.c:") == len(text.splitlines()), text
    return f"{name}: {known} addresses, {inlined} with inlined functions"


def strip_times(folded):
    return sorted(line.rsplit(" ", 1)[0] for line in folded.splitlines())


def main():
    args = base.parse_arguments()
    families = [("gcc", build_cxx, "g++", GCC), ("clang", build_cxx, "clang++", CLANG),
                ("rustc", build_rust, "rustc", RUST)]
    if not base.has("addr2line"):
        print("addr2line is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        tracer = base.Tracer(args, os.path.realpath(folder))
        jobs = []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for family, builder, compiler, builds in families:
                if not base.has(compiler):
                    print(f"{family} is not installed")
                    continue
                for build in builds:
                    missing = [flag for flag in build[1]
                               if flag in STEPS and not base.has(flag.split()[0])]
                    if missing:
                        print(f"{compiler} {build[0]}: {missing[0]} is not installed")
                    else:
                        jobs.append(pool.submit(check_build, tracer, builder, compiler, *build))
            for job in jobs:
                print(job.result(), flush=True)
    if not jobs:
        print("no C++ or Rust compiler is installed")
        sys.exit(77)


if __name__ == "__main__":
    main()
