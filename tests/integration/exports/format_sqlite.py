# SPDX-License-Identifier: Apache-2.0
"""Checks SQLite databases with SQLite: events row by row, views by their totals, and the document
against the schema. Also runs the queries in the document.
"""

import collections
import re
import sqlite3

from reference import WEIGHTS, expect, expect_same

NAME = "run.db"
ARGUMENTS = ("--sqlite", NAME)
COLUMNS = {"gpu-time": "gpu_time_ns", "count": "count", "cpu-wait": "cpu_wait_ns",
           "gpu-exclusive": "gpu_exclusive_ns", "gpu-idle": "gpu_idle_ns",
           "alloc-bytes": "alloc_bytes", "peak-bytes": "peak_bytes",
           "leaked-bytes": "leaked_bytes"}


def check(reference, folder, args):
    database = sqlite3.connect(f"file:{folder / NAME}?mode=ro", uri=True)
    ask = lambda query: database.execute(query).fetchall()
    expect(ask("PRAGMA integrity_check") == [("ok",)], "it is damaged")
    expect(ask("PRAGMA user_version") == ask("SELECT value FROM meta WHERE key = 'version'"),
           "versions")
    check_events(reference, ask)
    check_paths(reference, ask)
    check_views(reference, ask)
    check_document(ask, args.docs / "SQLITE.md")
    database.close()


def shift_of(reference, ask):
    """The difference between a log's times and those of the database; None for several logs."""
    if len(reference.logs) > 1 or not reference.count("CALL"):
        return None
    return (min(int(row["enter_ns"]) for row in reference.rows[0]["CALL"]) -
            ask("SELECT min(start_ns) FROM api_call")[0][0])


def check_events(reference, ask):
    shift = shift_of(reference, ask)
    known = shift is not None

    def times(rows, start):
        return collections.Counter((int(row[start]) if known else 0, int(row["duration_ns"]),
                                    int(row["correlation"])) for row in rows)

    for table, kinds, start in (("api_call", ("CALL",), "enter_ns"),
                                ("gpu_work", ("KERNEL", "COPY", "SET"), "start_ns")):
        found = collections.Counter((time + shift if known else 0, duration, correlation)
                                    for time, duration, correlation in ask(
                                        f"SELECT start_ns, duration_ns, correlation FROM {table}"))
        wanted = collections.Counter()
        for rows in reference.rows:
            for kind in kinds:
                wanted += times(rows[kind], start)
        expect_same(found, wanted, table)
    for kind, key in (("COPY", "copy"), ("SET", "set")):
        expect(ask(f"SELECT coalesce(sum(bytes), 0) FROM work WHERE kind = '{key}'")[0][0] ==
               sum(int(row["bytes"]) for rows in reference.rows for row in rows[kind]), key)
    marks = sum(int(row["operation"]) == 5 for rows in reference.rows for row in rows["RANGE"])
    expect(ask("SELECT count(*) FROM nvtx_range WHERE kind = 'mark'") == [(marks,)], "marks")


def check_paths(reference, ask):
    for weight in WEIGHTS:
        column = COLUMNS[weight]
        found = {tuple(text.split(";")): value for text, value in
                 ask(f"SELECT text, {column} FROM path WHERE {column} > 0")}
        expect_same(found, +reference.folded(weight), weight)
    broken = ask("SELECT count(*) FROM path p LEFT JOIN path q ON q.id = p.parent_id "
                 "LEFT JOIN name n ON n.id = p.name_id "
                 "WHERE n.id IS NULL OR (p.parent_id IS NOT NULL AND q.id IS NULL)")
    expect(broken == [(0,)], "paths lead nowhere")
    for table in ("api_call", "gpu_work"):
        expect(ask(f"SELECT count(*) FROM {table} t LEFT JOIN path p ON p.id = t.path_id "
                   "WHERE t.path_id IS NOT NULL AND p.id IS NULL") == [(0,)], table, "paths")


def check_views(reference, ask):
    total = reference.total()
    expect(ask("SELECT coalesce(sum(gpu_time_ns), 0) FROM top_kernels") == [(total,)], "kernels")
    expect(ask("SELECT coalesce(sum(gpu_time_ns), 0) FROM top_paths") == [(total,)], "paths")
    expect(ask("SELECT coalesce(sum(count), 0) FROM top_calls") == [(reference.count("CALL"),)],
           "calls")
    idle = collections.Counter()
    for path, value in reference.folded("gpu-idle").items():
        idle[path[-1]] += value
    expect_same(dict(ask("SELECT * FROM idle_by_class")), idle, "idle classes")
    expect(ask("SELECT coalesce(sum(peak_bytes), 0) FROM memory_peaks") ==
           [(reference.total("peak-bytes"),)], "memory")
    expect(ask("SELECT count(*) FROM work") == ask("SELECT count(*) FROM gpu_work"), "work")
    expect(ask("SELECT count(*) FROM calls") == ask("SELECT count(*) FROM api_call"), "calls")
    expect(ask("SELECT count(*) FROM launches WHERE call_id IS NULL OR delay_ns IS NULL") ==
           [(0,)], "launches")


def check_document(ask, path):
    """The document describes each table, view and column, and no other. Its questions run."""
    text = path.read_text(encoding="utf-8")
    told = {match[1]: set(re.findall(r"`(\w+)`", match[2]))
            for match in re.finditer(r"^\| `(\w+)` \|(.*)$", text, re.MULTILINE)}
    there = {name: {column[1] for column in ask(f"PRAGMA table_info({name})")}
             for name, in ask("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    expect(set(told) == set(there), "the document tells of", set(told) ^ set(there))
    for name, columns in there.items():
        expect(columns <= told[name], name, "has", columns - told[name], "that is not told of")
    for question in re.findall(r"```sql\n(.*?)```", text, re.DOTALL):
        answer = ask(question)
        if "WITH RECURSIVE" in question:
            expect([time for _, time in answer] == whole_times(ask)[:len(answer)],
                   "time of functions with all that they call")


def whole_times(ask):
    """GPU time by name including callees, counted once per path, in descending order."""
    paths = {key: rest for key, *rest in ask("SELECT id, parent_id, name_id, gpu_time_ns FROM path")}
    times = collections.Counter()
    for at, (_, _, time) in paths.items():
        names = set()
        while at is not None:
            at, name, _ = paths[at]
            names.add(name)
        times.update(dict.fromkeys(names, time))
    return sorted(times.values(), reverse=True)
