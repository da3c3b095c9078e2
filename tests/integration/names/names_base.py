# SPDX-License-Identifier: Apache-2.0
"""Shared code of the name tests: build, record, merge, read logs, and run addr2line."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
VALUE_MASK = (1 << 56) - 1
# Suffixes of function parts and copies, and of symbol versions.
CLONE = re.compile(r"(\.(cold|part|constprop|isra|lto_priv|llvm|localalias)\b.*|@.*)$")


def parse_arguments():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "inject", "simgpu", "include", "dump", "cc"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--server", action="store_true", help="files_test: run only the debuginfod check")
    parser.add_argument("--seed", type=int, help="files_test: seed for the order of plugins")
    return parser.parse_args()


def run(command, status=0, **options):
    """Run a command. status: the expected exit status, or a tuple of them."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode not in (status if isinstance(status, tuple) else (status,)):
        sys.exit(f"{command} exited {done.returncode}, not {status}\n{done.stdout}\n{done.stderr}")
    return done


def has(program):
    return shutil.which(program) is not None


class Tracer:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.libraries = ["-L" + args.simgpu, "-l:libcuda.so.1"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, command, cwd=None):
        run(command, cwd=cwd or self.folder)

    def record(self, program, name, **others):
        """Run the program and return its log. embed: with embedded symbols."""
        return self.record_with_output(program, name, **others)[0]

    def record_with_output(self, program, name, embed=True, cwd=None, environment=None, status=0):
        """record(), and the stdout of the program."""
        data = self.path(name)
        shutil.rmtree(data, ignore_errors=True)
        environment = dict(os.environ, **environment or {})
        if embed:
            done = run([self.args.xtrace, "record", "--simulate", "-o", data, "--", *program],
                       status=status, cwd=cwd, env=environment)
        else:
            environment.update(LD_PRELOAD=self.args.inject, XTRACE_DATA=data,
                               LD_LIBRARY_PATH=self.args.simgpu,
                               XTRACE_CUPTI=os.path.join(self.args.simgpu, "libcupti.so"))
            done = run(program, status=status, cwd=cwd, env=environment)
        logs = [entry for entry in os.listdir(data) if entry.endswith(".xtr")]
        assert len(logs) == 1, logs
        return os.path.join(data, logs[0]), done.stdout

    def merge(self, log, *options, status=0, **others):
        return run([self.args.merge, log, *options], status=status, **others)

    def folded(self, log, *options, status=0, **others):
        return self.merge(log, "--folded", "-", *options, status=status, **others).stdout

    def tables(self, log):
        tables = {}
        run([self.args.dump, "--check", log])
        for line in run([self.args.dump, "--format", "json", log]).stdout.splitlines():
            row = json.loads(line)
            if row.get("record") == "row":
                tables.setdefault(row["kind"], []).append(row)
        return tables


def number(value):
    return int(value, 0) if isinstance(value, str) else value


def addresses_of(tables, path):
    """ELF addresses to look up for the frames in a module."""
    modules = [row for row in tables["MODULE"] if row["path"] == path]
    found = set()
    for row in tables["STACK"]:
        for frame in row["frames"]:
            kind, value = frame if isinstance(frame, list) else map(
                lambda part: int(part, 0), frame.split(":"))
            for module in modules:
                if number(module["start"]) <= value - 1 < number(module["end"]):
                    found.add(value - (kind == 0) - number(module["bias"]))
    return found


def embedded_chains(tables, path):
    """Embedded places by address: (function, file, line), innermost first."""
    modules = {row["id"] for row in tables["MODULE"] if row["path"] == path}
    chains = {}
    for row in tables.get("SOURCE", []):
        if row["module"] in modules:
            chains.setdefault(number(row["address"]), []).append(
                (row["function"], os.path.basename(row["file"]), row["line"]))
    return chains


ORACLES = {
    "addr2line": ["addr2line", "-a", "-i", "-f", "-e"],
    "llvm-symbolizer": ["llvm-symbolizer", "--output-style=GNU", "--no-demangle", "-a", "-i", "-f",
                        "-e"],
}


def oracle_chains(oracle, program, addresses):
    """The same from addr2line or llvm-symbolizer."""
    lines = run([*ORACLES[oracle], program, *map(hex, sorted(addresses))]).stdout
    chains, chain = {}, None
    lines = lines.splitlines()
    at = 0
    while at < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[at]):
            chain = chains.setdefault(int(lines[at], 16), [])
            at += 1
            continue
        place = re.sub(r" \(discriminator \d+\)$", "", lines[at + 1])
        file, line = place.rsplit(":", 1)
        chain.append((lines[at], os.path.basename(file) if file != "??" else "",
                      int(line) if line.isdigit() else 0))
        at += 2
    return chains


def plain(name, known={}):
    """A demangled name without parameters."""
    if name not in known:
        known[name] = run(["c++filt", "-p", CLONE.sub("", name)]).stdout.strip()
    return known[name]


def same_function(ours, theirs):
    """Compare names. DWARF has only the short name of a function with internal linkage."""
    return (CLONE.sub("", ours) == CLONE.sub("", theirs) or
            not theirs.startswith(("_Z", "_R")) and plain(ours).endswith("::" + theirs) or
            plain(ours) == plain(theirs))


def same_chain(ours, theirs, symbol_first, files):
    """Compare chains. binutils prints the symbol instead of some inlined functions; symbol_first allows
    that. It also mixes up the files of clang's line tables; files=False ignores them."""
    return len(ours) == len(theirs) and all(
        (same_function(mine[0], other[0]) or
         symbol_first and not place and same_function(ours[-1][0], other[0])) and
        mine[2] == other[2] and (mine[1] == other[1] or not files)
        for place, (mine, other) in enumerate(zip(ours, theirs)))


def check_chains(what, ours, theirs, addresses, symbol_first=False, files=True):
    """Check that every address known to addr2line has the same chain in the log."""
    known = {address: chain for address, chain in theirs.items() if chain[0][1:] != ("", 0)}
    wrong = [(hex(address), ours.get(address), chain)
             for address, chain in sorted(known.items())
             if not same_chain(ours.get(address, []), chain, symbol_first, files)]
    assert not wrong, f"{what}: {len(wrong)} of {len(known)} differ:\n" + "\n".join(
        f"{address}\n  ours   {mine}\n  theirs {other}" for address, mine, other in wrong[:5])
    assert len(known) >= 3, f"{what}: addr2line knows only {len(known)} of {len(addresses)}"
    return len(known), sum(len(chain) > 1 for chain in known.values())
