# SPDX-License-Identifier: Apache-2.0
"""Checks the size of the brief summary, and its rows with the queries that it names."""

import contextlib
import re
import sqlite3

import format_sqlite
from reference import expect

NAME = "b.md"
ARGUMENTS = ("--brief", NAME)
BYTES_MAX = 8192


# The columns of a query that the first column of a table shows, if it is a time: in a run without
# steps, and with steps.
TIMES = {"lines": ("gpu_time_ns", "step_gpu_ns"), "modules": ("own_gpu_time_ns", "own_step_ns"),
         "kernels": ("total_ns",) * 2, "idle_by_class": ("gpu_idle_ns",) * 2}


def short_time(value_ns):
    """In three digits."""
    for unit_ns, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if value_ns >= unit_ns - unit_ns // 2000:
            value = value_ns / unit_ns
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return f"{value_ns} ns"


def check(reference, folder, args):
    text = (folder / NAME).read_text(encoding="utf-8")
    expect(len(text.encode()) <= BYTES_MAX, "too large:", len(text.encode()))
    sections = re.findall(r"^## ([^\n]+): (\d+) of (\d+)\n(.*?)^`SELECT \* FROM (\w+);`$",
                          text, re.M | re.S)
    titles = [title.removesuffix(", in a step") for title, *_ in sections]
    for title in ("GPU time by line of own code", "GPU time by kernel, copy and memset"):
        expect(title in titles or not reference.work_ns() or "(cut:" in text, "no section", title)
    with contextlib.closing(sqlite3.connect(folder / format_sqlite.NAME)) as database:
        database.row_factory = sqlite3.Row
        for title, shown, count, body, table in sections:
            check_table(title, int(shown), int(count), body,
                        [dict(row) for row in database.execute(f"SELECT * FROM {table}")],
                        TIMES.get(table) and TIMES[table]["- steps: " in text])


def check_table(title, shown, count, body, rows, column):
    # Lines that only allocate are in the database alone, and causes without idle time.
    expect(len(rows) >= count >= shown, title, len(rows), count, shown)
    if not column:
        return
    wanted = [row[column] for row in rows][:shown]
    if column != "own_step_ns":
        wanted = sorted((row[column] for row in rows), reverse=True)[:shown]
    # The rows of parts of a line are indented.
    first = re.findall(r"^\| (\d\S* \S+) \| (?!.*`  )", body, re.M)
    expect(first == [short_time(value) for value in wanted], title, first, "wanted", wanted)
