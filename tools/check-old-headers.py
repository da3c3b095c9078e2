#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles our C files with the libc and kernel headers for which tools/portable.sh builds.

  tools/check-old-headers.py [BUILD_DIR]

Fails if a file needs newer headers, or if the old ones cannot be fetched. Those come from Debian's
mirror (DEBIAN_MIRROR), once, into build-old-headers. BUILD_DIR (default: build) is a finished build;
its compile commands are used, except those of tests. Headers of other libraries are this machine's.

To be fast, this only looks at syntax, and only at files that can fail: those that include more of
libc than ISO C, and those with a name that this machine's headers have and the old ones lack.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
CACHE = SOURCE / "build-old-headers"
SYSTEM = CACHE / "system"
NOT_SHIPPED = ("tests", "tools/xtrace-mpi")
ISO = {f"<{name}.h>" for name in (
    "assert ctype errno inttypes limits math stdarg stdbool stddef stdint stdio stdlib string"
).split()}
FETCH = """
. tools/portable/apt.sh
private_apt "$1/apt"
cd "$1"
rm -rf ./*.deb new
apt-get -qq download libc6-dev linux-libc-dev
for deb in *.deb; do
	dpkg-deb -x "$deb" new
done
mv new system
"""
# Links to the headers of all packages but libc's and the kernel's.
LINK = r"""
dpkg-query -W -f '${db:Status-Status} ${binary:Package}\n' '*-dev' |
	sed -nE '/ (libc6|linux-libc)-dev(:|$)/d; s/^installed //p' | xargs dpkg -L |
	grep '^/usr/include/.*\.h$' | grep -v '/c++/' | sort -u |
	xargs cp -s --remove-destination --parents -t "$1"
"""


def shell(script, *arguments):
    if subprocess.run(["sh", "-eu", "-c", script, "check-old-headers", *map(str, arguments)],
                      cwd=SOURCE).returncode:
        sys.exit("check-old-headers: cannot set up the headers of Debian 11, so nothing was checked")


def shipped(build):
    """Compile commands of C files, by file."""
    try:
        entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    except OSError as error:
        sys.exit(f"check-old-headers: cannot read the compile commands of {build}: {error}; "
                 "build first")
    commands = {}
    for entry in entries:
        file = pathlib.Path(entry["file"])
        if file.suffix == ".c" and file.is_relative_to(SOURCE):
            if not str(file.relative_to(SOURCE)).startswith((*NOT_SHIPPED, build.name)):
                commands[file] = entry
    return commands


def code(text):
    """The text without comments and strings."""
    return re.sub(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"', " ", text, flags=re.S)


def words(includes, *options):
    """The names that headers define, as far as there are such headers."""
    text = "".join(f"#if __has_include({name})\n#include {name}\n#endif\n" for name in includes)
    run = subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-E", "-P", "-dD", *options,
                          "-xc", "-"], input=text, capture_output=True, text=True, check=True)
    return set(re.findall(r"\w+", code(run.stdout)))


def candidates(files):
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    includes = {file: set(re.findall(r"#include (<.*?>)", text)) for file, text in texts.items()}
    everything = sorted(set().union(*includes.values()))
    newer = words(everything) - words(everything, f"--sysroot={SYSTEM}")
    for file, text in texts.items():
        # Names of functions and macros. Parameters and attributes of headers have plain words.
        used = set(re.findall(r"\w*[A-Z0-9_]\w*|\w+(?=\()", code(text)))
        if includes[file] - ISO or used & newer:
            yield file


def complaint(entry):
    """Returns the compiler's messages about a file that fails, else an empty string."""
    command = shlex.split(entry["command"])
    command = command[command[0].endswith("ccache"):]
    at = command.index("-o")
    del command[at:at + 2]
    run = subprocess.run([*command, "-O0", "-g0", "-fsyntax-only", f"--sysroot={SYSTEM}"],
                         cwd=entry["directory"], capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def main():
    if len(sys.argv) > 2 or sys.argv[1:] and sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    commands = shipped(pathlib.Path(sys.argv[1] if sys.argv[1:] else SOURCE / "build").resolve())
    CACHE.mkdir(exist_ok=True)
    if not SYSTEM.exists():
        shell(FETCH, CACHE)
    shell(LINK, SYSTEM)
    files = list(candidates(commands))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(filter(None, pool.map(lambda file: complaint(commands[file]), files)))
    sys.stderr.write("".join(complaints))
    if complaints:
        sys.exit(f"check-old-headers: {len(complaints)} files do not compile with the headers of "
                 "Debian 11; see src/log/base/new_syscalls.h")
    print(f"check-old-headers: {len(files)} files compile with the headers of Debian 11")


if __name__ == "__main__":
    main()
