#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of a document: "check_document.py DOCUMENT XTRACE_MERGE MAKE_LOG".

A ```rows block is a log in the notation of "make_log script", and a ```samples block after it is
the CPU log of the same process. Each ```--OPTION... block after them is the output of xtrace merge
for these logs with these options. Prints the number of examples.
"""
import re
import subprocess
import sys
import tempfile

CPU_META = "meta log.kind cpu\nmeta cpu.hz 100\n"


def main():
    document, merge, make_log = sys.argv[1:]
    with open(document, encoding="utf-8") as file:
        blocks = re.findall(r"^```(\S.*?)\n(.*?)^```$", file.read(), re.M | re.S)
    with tempfile.TemporaryDirectory() as folder:
        logs, examples, wrong = [], 0, 0
        for number, (head, text) in enumerate(blocks):
            if head in ("rows", "samples"):
                logs = [*(logs if head == "samples" else ()), f"{folder}/{number}.xtr"]
                subprocess.run([make_log, "script", logs[-1]], check=True, text=True,
                               input=(CPU_META if head == "samples" else "") + text)
                continue
            if not head.startswith("--"):
                continue
            done = subprocess.run([merge, "-q", *logs, "--folded", "-", *head.split()],
                                  capture_output=True, text=True)
            examples += 1
            if done.stdout != text or done.returncode > 1:
                wrong += 1
                print(f"{head} should give\n{text}but gives\n{done.stdout}{done.stderr}")
    assert examples, "no examples"
    print(f"{examples - wrong} of {examples} examples are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
