# SPDX-License-Identifier: Apache-2.0
"""Checks the size of the brief summary, and its numbers with the queries that it names."""

import contextlib
import re
import sqlite3

import format_sqlite
from reference import expect

NAME = "b.md"
ARGUMENTS = ("--brief", NAME)
BYTES_MAX = 8192


def time(value_ns):
    for unit_ns, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if value_ns >= unit_ns:
            return f"{value_ns / unit_ns:.3f} {unit}"
    return f"{value_ns} ns"


def short_time(value_ns):
    """In three digits, as the headline has it."""
    for unit_ns, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if value_ns >= unit_ns - unit_ns // 2000:
            value = value_ns / unit_ns
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return f"{value_ns} ns"


def check(reference, folder, args):
    text = (folder / NAME).read_text(encoding="utf-8")
    expect(len(text.encode()) <= BYTES_MAX, "too large:", len(text.encode()))
    with contextlib.closing(sqlite3.connect(folder / format_sqlite.NAME)) as database:
        answers = {sql: database.execute(sql).fetchall()
                   for sql in re.findall(r"^`(SELECT .*)`$", text, re.M)}
    for title in ("Kernels, copies and memsets", "GPU time by frame of your own code"):
        section = re.search(rf"^## {title}: \d+ of \d+\n(.*?)^`(SELECT.*?)`$", text, re.M | re.S)
        if not section:
            expect(not reference.work_ns() or "(cut:" in text, "no section", title)
            continue
        shown = re.findall(r"^\| (\S+ \S+) \| ", section[1], re.M)
        shown = [row for row in shown if row != "GPU time"]
        wanted = [time(row[0]) for row in answers[section[2]]]
        expect(shown == wanted, title, shown, "wanted", wanted)
    gap = [row for sql, rows in answers.items() if "longest" in sql or "duration_ns," in sql
           for row in rows[:1]]
    said = re.search(r"^- longest gap: (\S+ \S+)(?: at \S+ \S+)?,", text, re.M)
    expect(bool(gap) == bool(said), "longest gap", gap, said)
    if said:
        expect(said[1] == short_time(gap[0][0]), "longest gap", said[1], "wanted", gap[0])
