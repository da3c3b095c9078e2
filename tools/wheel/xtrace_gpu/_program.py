# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the program `xtrace`."""
from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys

DISTRIBUTION = "xtrace-gpu"
OLDEST_GLIBC = (2, 28)
MACHINES = ("x86_64",)


class Error(Exception):
    """xtrace could not do something. The text says why, in one sentence."""


def find() -> str:
    """Returns the path of the program that was installed with this package, or else on PATH."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "xtrace":
            program = os.path.abspath(file.locate())
            if os.access(program, os.X_OK):
                return program
    program = shutil.which("xtrace")
    if not program:
        raise Error("the program xtrace is missing: install it with 'pip install xtrace-gpu'")
    return program


def why_not_started(error: OSError) -> str:
    """Says in one sentence why the program did not start on this system."""
    libc, version = platform.libc_ver()
    if sys.platform != "linux":
        return f"it runs on Linux only, and this is {platform.system()}"
    if platform.machine() not in MACHINES:
        return f"it runs on {' and '.join(MACHINES)} only, and this is {platform.machine()}"
    if libc != "glibc":
        return "it needs glibc, which this system lacks (Alpine has musl): use Debian or Ubuntu"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_GLIBC:
        return f"it needs glibc {OLDEST_GLIBC[0]}.{OLDEST_GLIBC[1]} or newer, and this is {version}"
    return f"cannot start {error.filename or 'xtrace'}: {error.strerror}"


# The options that choose a part or a view, and whether they have a value.
OPTIONS = {"--from": True, "--to": True, "--range": True, "--filter": True, "--focus": True,
           "--hide": True, "--my-code": True, "--by": True, "--nvtx": True, "--python": True,
           "--graph-stacks": True, "--backward": True, "--inline": True, "--lines": True,
           "--full-names": False, "--debug-dir": True, "--top": True, "--finding": True,
           "--html-size": True, "--weight": True, "--jobs": True, "--redact": False,
           "--no-recover": False}


def check_options(options: tuple[object, ...]) -> list[str]:
    """Returns the options of a part or view as text. Raises Error for others."""
    words = [str(option) for option in options]
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if not word.startswith("-"):
            raise Error(f"'{word}' is no option: to read several recordings, use 'xtrace merge'")
        if name not in OPTIONS:
            raise Error(f"cannot use {name} here: only options that choose a part or a view. For "
                        "outputs, use 'xtrace merge'")
        if OPTIONS[name] and not equals and next(rest, None) is None:
            raise Error(f"option '{name}' needs a value")
    return words


INCOMPLETE = 1  # exit status: something is missing in the recording; all the rest was written


def run(*arguments: str | os.PathLike[str], accepts_incomplete: bool = False) -> str:
    """Runs the program and returns its standard output. Raises Error with its message."""
    program = find()
    try:
        done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              encoding="utf-8", errors="replace")
    except OSError as error:
        raise Error(why_not_started(error)) from None
    if done.returncode and not (accepts_incomplete and done.returncode == INCOMPLETE):
        if "GLIBC_" in done.stderr:
            raise Error(why_not_started(OSError(0, "it needs a newer glibc", program)))
        lines = done.stderr.strip().splitlines()
        raise Error(re.sub(r"^xtrace( [a-z]+)?: ", "", lines[-1]) if lines
                    else f"{program} ended with status {done.returncode}")
    return done.stdout
