#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md shows of a trace in the tree is what xtrace-merge prints of it, to the letter.

Findings are left out: they have a document and tests of their own.

usage: check_readme.py README XTRACE_MERGE
"""

import difflib
import os
import re
import subprocess
import sys


def sections(lines):
    """Without the paragraph of findings; spaces at the end of lines do not count."""
    text = "\n".join(line.rstrip() for line in lines).strip("\n")
    return [part for part in text.split("\n\n") if not re.match("(No f|F)indings", part)]


def main():
    readme, program = sys.argv[1:]
    with open(readme, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first = next(n for n, line in enumerate(lines) if "prints it on any machine" in line)
    command = re.search("xtrace-merge ([^`]*)`", lines[first])[1].split()
    shown = []
    for line in lines[first + 1:]:
        if line and not line.startswith("    "):
            break
        shown.append(line[4:])
    root = os.path.dirname(os.path.abspath(readme))
    result = subprocess.run([program, "--no-recover", *command], cwd=root, capture_output=True,
                            encoding="utf-8", check=False)
    wanted, found = sections(result.stdout.split("\n")), sections(shown)
    if wanted == found and len(found) > 5:
        return 0
    print(result.stderr, end="")
    print("\n".join(difflib.unified_diff("\n\n".join(found).split("\n"),
                                         "\n\n".join(wanted).split("\n"),
                                         "README.md", "printed", lineterm="")))
    return 1


sys.exit(main())
