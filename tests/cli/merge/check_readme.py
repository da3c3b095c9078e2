#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the output shown in README.md is what a terminal of 80 columns shows.

A code block begins with its command. A comment before it names the sections of the output that
are shown. UPDATE_EXPECTED=1 rewrites the blocks instead.

usage: check_readme.py README XTRACE_MERGE
"""

import difflib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

COLUMNS = 80
BLOCK = re.compile(r"<!-- sections shown: ([^\n]*) -->\n"
                   r"```\n\$ xtrace report --text ([^\n]*)\n.*?```\n", re.S)


def printed(program, arguments, folder):
    """The output of the program on a terminal, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    with subprocess.Popen([program, "--no-recover", *arguments], stdout=theirs,
                          stderr=subprocess.DEVNULL, cwd=folder, env=environment):
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError: # the program ended
                break
            output += part
    os.close(ours)
    return "\n".join(line.rstrip() for line in output.decode().replace("\r", "").split("\n"))


def excerpt(output, titles):
    sections = output.split("\n\n")
    chosen = [part for title in titles for part in sections if part.startswith(title)]
    assert len(chosen) == len(titles), f"{titles} are not in the output"
    return "\n\n".join(part.strip("\n") for part in chosen) + "\n"


def main():
    readme, program = sys.argv[1:]
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    folder = os.path.dirname(os.path.abspath(readme))

    def fresh(match):
        output = printed(program, match[2].split(), folder)
        return (f"<!-- sections shown: {match[1]} -->\n```\n$ xtrace report --text {match[2]}\n"
                f"{excerpt(output, match[1].split('; '))}```\n")

    wanted, count = BLOCK.subn(fresh, text)
    assert count, "the README shows no output"
    if wanted == text:
        return 0
    if os.environ.get("UPDATE_EXPECTED"):
        with open(readme, "w", encoding="utf-8") as file:
            file.write(wanted)
        return 0
    print("\n".join(difflib.unified_diff(text.split("\n"), wanted.split("\n"), "README.md",
                                         "printed", lineterm="")))
    return 1


sys.exit(main())
