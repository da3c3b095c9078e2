#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two runs that differ in one line with the ground truth of the simulated GPU."""

import argparse
import os
import re
import subprocess
import tempfile

STEPS = 20
KERNEL_NS = 50000
COUNTS = {"base": 3, "new": 5}  # kernels of the line in a step
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
AMOUNT = r"([+-]?[\d.,]+ (?:ns|us|ms|s))"
ROW = re.compile(rf" *(?:{AMOUNT}|-) +(?:{AMOUNT}|-) +{AMOUNT} +(new|gone|-|[+-][\d.]+ %)  (.*)")
LINE = re.compile(rf"^    GPU time {AMOUNT} -> {AMOUNT}", re.MULTILINE)  # below a row


def nanoseconds(text):
    if not text:
        return 0
    number, unit = text.split()
    return float(number.replace(",", "")) * UNITS[unit]


def record(folder, side):
    """Returns the GPU time of each kernel."""
    truth = os.path.join(folder, side + ".truth")
    environment = dict(os.environ, XTRACE_SIMGPU_TRUTH=truth, XTRACE_SIMGPU_KERNEL_NS=f"{KERNEL_NS}:{KERNEL_NS}")
    subprocess.run([args.xtrace, "record", "-q", "--simulate", "-o", os.path.join(folder, side),
                    "--", args.program, str(STEPS), str(COUNTS[side])], env=environment, check=True)
    times = {}
    with open(truth, encoding="utf-8") as lines:
        for fields in map(str.split, lines):
            if fields[0] == "kernel":
                times[fields[8]] = times.get(fields[8], 0) + int(fields[6]) - int(fields[5])
    return times


def read_tables(text):
    """Returns by title the rows, by name: base, new and change in ns, and the change in words."""
    tables, rows = {}, {}
    for line in text.splitlines():
        match = ROW.match(line)
        if match:
            rows[match[5]] = [nanoseconds(match[i]) for i in (1, 2, 3)] + [match[4]]
        elif line and not line.startswith(" "):
            rows = tables.setdefault(line, {})
    return tables


def is_near(shown, exact):
    """Three digits are shown."""
    return abs(shown - exact) <= 0.006 * abs(exact)


def compare(folder, *command):
    done = subprocess.run([args.xtrace, *command, os.path.join(folder, "base"),
                           os.path.join(folder, "new")], capture_output=True, text=True,
                          env=dict(os.environ, COLUMNS="200"), check=False)
    assert "One run each: noise unknown" in done.stdout, done.stdout + done.stderr
    return done.returncode, done.stdout


def check_kernels(tables, truths):
    rows = tables["GPU time by kernel, copy and memset"]
    assert list(rows)[0] == "grown_kernel", rows
    for name in ("grown_kernel", "same_kernel"):
        base, new, change, _ = rows[name]
        exact = [truths[side][name] for side in COUNTS]
        assert is_near(base, exact[0]) and is_near(new, exact[1]), (name, rows[name], exact)
        assert is_near(change, exact[1] - exact[0]), (name, rows[name], exact)


def check_lines(text):
    """One line has more kernels in a step. The other one, and the one that waits, have the same."""
    title, = (title for title in read_tables(text) if title.startswith("Lines of your own code"))
    rows = read_tables(text)[title]
    assert len(rows) == 3 and all(name.startswith("step (program.c:") for name in rows), rows
    changed, = LINE.findall(text)
    for shown, count in zip(changed, COUNTS.values()):
        assert is_near(nanoseconds(shown), count * KERNEL_NS), text


def check_headline(tables, truths):
    base, new, change, _ = tables["Headline"]["GPU time"]
    exact = [sum(truths[side].values()) for side in COUNTS]
    assert is_near(base, exact[0]) and is_near(new, exact[1]), (base, new, exact)
    assert is_near(change, exact[1] - exact[0]), (change, exact)


def main():
    with tempfile.TemporaryDirectory() as folder:
        truths = {side: record(folder, side) for side in COUNTS}
        for status, command in ((0, ("report", "--text", "--all")), (2, ("diff", "--top", "1000"))):
            code, text = compare(folder, *command)
            tables = read_tables(text)
            assert code == status, (command, code)
            check_kernels(tables, truths)
            check_headline(tables, truths)
            check_lines(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--xtrace", required=True)
    parser.add_argument("--program", required=True)
    args = parser.parse_args()
    main()
