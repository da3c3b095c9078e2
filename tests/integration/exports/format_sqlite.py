# SPDX-License-Identifier: Apache-2.0
"""Checks SQLite databases with SQLite: events row by row, views by their totals, and the document
against the schema. Also runs the queries in the document.
"""

import collections
import json
import re
import sqlite3

from reference import expect, expect_same

NAME = "run.db"
ARGUMENTS = ("--sqlite", NAME)
COLUMNS = {"gpu-time": "gpu_time_ns", "count": "count", "cpu-wait": "cpu_wait_ns",
           "gpu-exclusive": "gpu_exclusive_ns", "gpu-idle": "gpu_idle_ns",
           "alloc-bytes": "alloc_bytes", "peak-bytes": "peak_bytes",
           "leaked-bytes": "leaked_bytes", "cpu-time": "cpu_time_ns",
           "off-cpu": "off_cpu_ns", "collective-wait": "collective_wait_ns",
           "collective-cause": "collective_cause_ns"}


def check(reference, folder, args):
    database = sqlite3.connect(f"file:{folder / NAME}?mode=ro", uri=True)
    ask = lambda query: database.execute(query).fetchall()
    expect(ask("PRAGMA integrity_check") == [("ok",)], "it is damaged")
    expect(ask("PRAGMA user_version") == ask("SELECT value FROM meta WHERE key = 'version'"),
           "versions")
    check_events(reference, ask)
    check_paths(reference, ask)
    check_views(reference, ask)
    check_samples(reference, ask)
    check_gaps(reference, ask)
    check_lines(reference, ask)
    check_collectives(reference, ask, folder)
    expect(not args.program or ask("SELECT count(*) FROM stacks WHERE count > 0 AND line IS NULL") ==
           [(0,)], "a recorded program lacks lines")
    check_document(reference, database, args.docs / "SQLITE.md")
    database.close()


def shift_of(reference, ask):
    """The difference between a log's times and those of the database; None for several logs."""
    if reference.traced_count > 1 or not reference.count("CALL"):
        return None
    return (min(int(row["enter_ns"]) for row in reference.traced_rows["CALL"]) -
            ask("SELECT min(start_ns) FROM api_call")[0][0])


def check_events(reference, ask):
    shift = shift_of(reference, ask)
    known = shift is not None

    def times(rows, start):
        return collections.Counter((int(row[start]) if known else 0, int(row["duration_ns"]))
                                   for row in rows)

    for table, kinds, start in (("api_call", ("CALL",), "enter_ns"),
                                ("gpu_work", ("KERNEL", "COPY", "SET"), "start_ns")):
        events = ask(f"SELECT start_ns, duration_ns, correlation FROM {table}")
        found = collections.Counter((time + shift if known else 0, duration)
                                    for time, duration, _ in events)
        wanted = collections.Counter()
        for rows in reference.rows:
            for kind in kinds:
                wanted += times(rows[kind], start)
        expect_same(found, wanted, table)
        # The database also knows the call of work that kernels launched, which has no id.
        found = collections.Counter(correlation for _, _, correlation in events)
        ids = collections.Counter(int(row["correlation"]) for rows in reference.rows
                                  for kind in kinds for row in rows[kind])
        del ids[0]
        expect(ids <= found, table, "lacks correlation ids:", ids - found)
    for kind, key in (("COPY", "copy"), ("SET", "set")):
        expect(ask(f"SELECT coalesce(sum(bytes), 0) FROM work WHERE kind = '{key}'")[0][0] ==
               sum(int(row["bytes"]) for rows in reference.rows for row in rows[kind]), key)
    marks = sum(int(row["operation"]) == 5 for rows in reference.rows for row in rows["RANGE"])
    expect(ask("SELECT count(*) FROM nvtx_range WHERE kind = 'mark'") == [(marks,)], "marks")
    check_ranges(reference, ask)


def check_ranges(reference, ask):
    """Ranges have the attributes that they have in the Chrome trace."""
    wanted = collections.Counter()
    for event in json.loads(reference.run("--chrome", "-"))["traceEvents"]:
        if event.get("cat") == "nvtx" and event["ph"] in "XBbi":
            args = event["args"]
            wanted[event["name"], args.get("category"), args.get("argb"), args.get("payload")] += 1
    found = collections.Counter(ask("SELECT n.text, category, argb, number FROM nvtx_range r "
                                    "JOIN name n ON n.id = r.name_id"))
    expect_same(found, wanted, "ranges")


def check_paths(reference, ask):
    for weight in reference.weights:
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


IDLE_COLUMNS = {
    "allocating_ns": "[idle: allocating memory]", "loading_ns": "[idle: loading code]",
    "launch_late_ns": "[idle: launch late (CPU busy)]", "cpu_in_sync_ns": "[idle: CPU blocked in sync]",
    "on_copy_ns": "[idle: waiting on a copy]", "on_stream_ns": "[idle: waiting for another stream]",
    "not_submitted_ns": "[idle: nothing submitted]",
    "not_started_ns": "[idle: submitted, not started]", "call_unknown_ns": "[idle: call unknown]"}


def check_gaps(reference, ask):
    """Gaps have the summary's idle time by device and class, and their causes add up."""
    wanted = {(number, device.get("device"), label): idle_ns
              for number, process in enumerate(reference.summary["processes"], 1)
              for device in process["devices"]
              for label, idle_ns in device["gpu_idle_by_class_ns"].items()}
    found = {(process, device, label): idle_ns for column, label in IDLE_COLUMNS.items()
             for process, device, idle_ns in ask(f"SELECT process_id, device, sum({column}) "
                                                 "FROM gaps GROUP BY process_id, device")}
    expect_same(found, wanted, "idle time by device and class")
    expect(ask(f"SELECT count(*) FROM gaps WHERE duration_ns <> {' + '.join(IDLE_COLUMNS)} "
               "OR end_ns <> start_ns + duration_ns") == [(0,)], "parts of gaps")
    for column, label in IDLE_COLUMNS.items():
        expect(ask(f"SELECT count(*) FROM gaps WHERE cause = '{label}' AND "
                   f"{column} < max({', '.join(IDLE_COLUMNS)})") == [(0,)], "cause", label)
    expect(ask("SELECT count(*) FROM gaps") == ask("SELECT count(*) FROM gap"), "gaps")
    # Work starts at the end of a gap, and none runs within it.
    expect(ask("SELECT count(*) FROM gaps g WHERE NOT EXISTS (SELECT 1 FROM work w WHERE "
               "w.start_ns = g.end_ns AND w.process_id = g.process_id AND w.device IS g.device)") ==
           [(0,)], "gaps without work")


def check_views(reference, ask):
    total = reference.total()
    expect(ask("SELECT coalesce(sum(gpu_time_ns), 0) FROM top_kernels") == [(total,)], "kernels")
    expect(ask("SELECT coalesce(sum(gpu_time_ns), 0) FROM top_paths") == [(total,)], "paths")
    expect(ask("SELECT coalesce(sum(count), 0) FROM top_calls") == [(reference.count("CALL"),)],
           "calls")
    idle = collections.Counter()
    for path, value in reference.folded("gpu-idle").items():
        idle[reference.idle_class(path)] += value
    expect_same(dict(ask("SELECT * FROM idle_by_class")), idle, "idle classes")
    expect(ask("SELECT coalesce(sum(peak_bytes), 0) FROM memory_peaks") ==
           [(reference.total("peak-bytes"),)], "memory")
    expect(ask("SELECT count(*) FROM work") == ask("SELECT count(*) FROM gpu_work"), "work")
    expect(ask("SELECT count(*) FROM calls") == ask("SELECT count(*) FROM api_call"), "calls")
    expect(ask("SELECT count(*) FROM launches WHERE call_id IS NULL OR delay_ns IS NULL") ==
           [(0,)], "launches")


def check_samples(reference, ask):
    """Samples have their rows, and the sums by state are the weights."""
    rows = [row for log in reference.rows for row in log["CPU_SAMPLE"]]
    wanted = collections.Counter((int(row["span_ns"]), int(row["weight_ns"]), int(row["count"]))
                                 for row in rows)
    expect_same(collections.Counter(ask("SELECT duration_ns, weight_ns, count FROM cpu_sample")),
                wanted, "samples")
    for weight, states in (("cpu-time", "('running', 'kernel', 'page fault')"),
                           ("off-cpu", "('I/O', 'lock', 'sleep', 'GIL', 'process', 'blocked', "
                                       "'ready', 'unknown')")):
        if weight in reference.weights:
            found = ask(f"SELECT sum(weight_ns) FROM cpu_sample WHERE state IN {states}")
            expect(found == [(reference.total(weight),)], weight, found)
            stacks = ask(f"SELECT sum({COLUMNS[weight]}) FROM stacks")
            expect(stacks == found, weight, "of stacks", stacks)
    expect(ask("SELECT count(*) FROM cpu_sample s LEFT JOIN thread t ON t.id = s.thread_id AND "
               "t.process_id = s.process_id LEFT JOIN process p ON p.id = s.process_id "
               "WHERE p.id IS NULL OR t.id IS NULL") == [(0,)], "samples of no thread")
    expect(ask("SELECT count(*) FROM (SELECT DISTINCT process_id, tid FROM thread)") ==
           ask("SELECT count(*) FROM thread"), "a thread is there twice")
    expect(ask("SELECT coalesce(sum(gpu_idle_ns), 0) FROM stacks") ==
           [(reference.total("gpu-idle"),)], "idle time of stacks")


def check_lines(reference, ask):
    """The line of a path is that of its last frame in the user's files, as findings know it."""
    rows = ask("SELECT text, file, line FROM path WHERE text IS NOT NULL")
    own = {file for _, file, _ in rows if file}
    for path, file, line in rows:
        expect((file is None) == (line is None), path, "has half a line")
        shown = [(known, int(match[2])) for frame in path.split(";")
                 for match in re.finditer(r"^[^()]* \(([^() ]+\.py):(\d+)\)", frame)
                 for known in own if known == match[1] or known.endswith("/" + match[1])]
        expect(not shown or shown[-1] == (file, line), path, "is at", file, line)
    lines = {path: (file, line) for path, file, line in rows if file}
    for finding in reference.summary["findings"]["rows"]:
        for place in finding["places"]:
            path = ";".join(place["frames"])
            expect(path not in lines or "file" not in place or
                   lines[path] == (place["file"], place["line"]), path, "is at", lines.get(path))


def check_collectives(reference, ask, folder):
    """Rows are those of the kernels, and sums are those of the summary to the nanosecond."""
    processes = reference.summary["processes"]
    expect(ask("SELECT rank, local_rank, world_size FROM process ORDER BY id") ==
           [tuple(process.get(key) for key in ("rank", "local_rank", "world_size"))
            for process in processes], "ranks")
    for view, table in (("work", "gpu_work"), ("calls", "api_call"), ("gaps", "gap")):
        ranks = ask(f"SELECT o.rank, count(*) FROM {table} t JOIN process o ON "
                    "o.id = t.process_id GROUP BY o.rank ORDER BY 1")
        expect(ask(f"SELECT rank, count(*) FROM {view} GROUP BY rank ORDER BY 1") == ranks, view)
    if "collectives" not in reference.summary:
        return
    summary = reference.summary["collectives"]
    expect(ask("SELECT count(*), total(wait_ns), total(exposed_wait_ns) FROM collective") ==
           [(summary["count"], summary["wait_ns"], summary["exposed_wait_ns"])], "collectives")
    expect(ask("SELECT process_id, start_ns, end_ns FROM collective ORDER BY 1, 2, 3") ==
           ask("SELECT process_id, start_ns, start_ns + duration_ns FROM work "
               "WHERE kind = 'collective' ORDER BY 1, 2, 3"), "kernels")
    expect(ask("SELECT count(*), count(stream), count(path_id) FROM collectives") ==
           [(summary["count"],) * 3], "collectives without work")
    expect(ask("SELECT label, wait_ns, caused_ns FROM rank_waits ORDER BY process_id") ==
           [(row["process"], row["wait_ns"], row["caused_ns"]) for row in summary["ranks"]],
           "waits of ranks")
    expect(ask("SELECT host, offset_ns, error_ns, bound_count FROM host_clock") ==
           [(row["host"], row["offset_ns"] if row["is_aligned"] else None, row.get("error_ns"),
             row["bound_count"]) for row in summary["clocks"]], "clocks")
    check_arrivals(ask)
    check_alone(reference, ask, folder / "alone.db")


def check_alone(reference, ask, path):
    """The comparison does not depend on other outputs of the run."""
    reference.run("--sqlite", str(path))
    alone = sqlite3.connect(path)
    for table in ("collective", "host_clock"):
        query = f"SELECT * FROM {table}"
        expect(alone.execute(query).fetchall() == ask(query), table, "without other outputs")
    query = "SELECT wait_ns, cost_ns, path FROM wait_causes ORDER BY 1, 2, 3"
    expect(alone.execute(query).fetchall() == ask(query), "causes without other outputs")
    alone.close()
    path.unlink()


def check_arrivals(ask):
    """Waits follow from the arrivals, which follow from the clocks. Each is rounded."""
    clocks = {host: clock for host, *clock in
              ask("SELECT host, at_ns, offset_ns, drift_ppm, moved_ns FROM host_clock")}
    for host, start_ns, arrival_ns in ask("SELECT o.host, c.start_ns, c.arrival_ns FROM "
                                          "collective c JOIN process o ON o.id = c.process_id"):
        at_ns, offset_ns, drift_ppm, moved_ns = clocks[host]
        known = at_ns is not None
        start_ns -= moved_ns
        wanted = start_ns - (offset_ns + drift_ppm * 1e-6 * (start_ns - at_ns) if known else 0)
        expect(abs(arrival_ns - wanted) <= 3, "arrival", arrival_ns, "wanted", wanted)
    wrong = ask("SELECT c.number, c.wait_ns, l.arrival_ns - c.arrival_ns FROM collective c "
                "JOIN collective l ON l.communicator_id = c.communicator_id AND "
                "l.number = c.number AND l.is_last WHERE c.operation NOT IN ('Broadcast', 'Reduce') "
                "AND c.wait_ns < c.end_ns - c.start_ns - 2 AND "
                "abs(l.arrival_ns - c.arrival_ns - c.wait_ns) > 2")
    expect(not wrong, "waits that do not follow from arrivals:", wrong[:4])


def total(rows, column):
    return sum(row[column] for row in rows)


def by_stack(rows, value):
    """Weights without the last frame of paths that end with work or idle time."""
    sums = collections.Counter()
    for row in rows:
        sums[";".join(row["frames"][:-1])] += row[value]
    return sums


def agree_lines(summary, rows, what):
    expect(total(rows, "gpu_time_ns") == summary["totals"]["gpu_time_ns"], what, "GPU time")
    expect(total(rows, "count") == summary["weights"]["count"]["total"], what, "count")
    own = sum(row["gpu_time_ns"] for row in rows if row["file"])
    # A program without line tables has own code without lines.
    programs = {process["title"] for process in summary["processes"]}
    expect(own in (0, summary["own_code"]["gpu_time_ns"]) or
           len(programs) > 1 and own < summary["own_code"]["gpu_time_ns"], what, "own code")


def agree_stacks(summary, rows, what):
    for weight, column in (("gpu-time", "gpu_time_ns"), ("count", "count")):
        expect_same(collections.Counter({row["path"]: row[column] for row in rows}),
                    by_stack(summary["weights"][weight]["paths"]["rows"], "value"), what)


def agree_kernels(summary, rows, what):
    for found, member in (("total_ns", "gpu_time_ns"), ("count", "count")):
        expect(total(rows, found) == total(summary["kernels"]["rows"], member), what, found)
        expect_same({row["name"]: row[found] for row in rows if row["kind"] in KERNELS},
                    {row["name"]: row[member] for row in summary["kernels"]["rows"]
                     if row["kind"] in KERNELS}, what)
    expect(not rows or abs(total(rows, "percent") - 100) < 1e-6 or
           not summary["totals"]["gpu_time_ns"], what, "shares")
    for row in rows:
        expect(row["min_ns"] <= row["mean_ns"] <= row["max_ns"] and
               abs(row["mean_ns"] * row["count"] - row["total_ns"]) <= row["count"], what, row)


def agree_launches(summary, rows, what):
    kernels = [row for row in summary["kernels"]["rows"] if row["kind"] in KERNELS]
    found = (total(rows, "gpu_time_ns"), total(rows, "count"))
    expect(not kernels or found in {(row["gpu_time_ns"], row["count"]) for row in kernels
                                    if row["gpu_time_ns"] == kernels[0]["gpu_time_ns"]}, what)


def agree_idle(summary, rows, what):
    expect_same({row["class"]: row["gpu_idle_ns"] for row in rows},
                summary["gpu_idle_by_class_ns"], what)
    expect(not rows or abs(total(rows, "percent") - 100) < 1e-6, what, "shares")


def agree_gaps(summary, rows, what):
    expect(total(rows, "duration_ns") == summary["totals"]["gpu_idle_ns"], what)
    ended = {";".join(row["frames"]) for row in summary["weights"]["count"]["paths"]["rows"]}
    expect({row["path"] for row in rows} <= ended, what, "a gap ends with a path without work")
    expect({row["cause"] for row in rows} <= set(summary["gpu_idle_by_class_ns"]), what, "causes")


def agree_idle_lines(summary, rows, what):
    expect(total(rows, "gpu_idle_ns") == summary["totals"]["gpu_idle_ns"], what)


def agree_devices(summary, rows, what):
    devices = {(number, device["device"]): device
               for number, process in enumerate(summary["processes"], 1)
               for device in process["devices"] if "device" in device}
    expect({(row["process_id"], row["device"]) for row in rows} == set(devices), what, "devices")
    for row in rows:
        device = devices[row["process_id"], row["device"]]
        span = device["last_end_ns"] - device["first_start_ns"]
        expect((row["span_ns"], row["gpu_busy_ns"]) == (span, device["gpu_busy_ns"]), what, row)
        expect(not span or abs(row["busy_percent"] - 100 * row["gpu_busy_ns"] / span) < 1e-6,
               what, row)


def agree_waits(summary, rows, what):
    expect_same({row["path"]: row["cpu_wait_ns"] for row in rows},
                {";".join(row["frames"]): row["value"]
                 for row in summary["weights"]["cpu-wait"]["paths"]["rows"]}, what)


def agree_memory(summary, rows, what):
    for column in ("alloc_count", "alloc_bytes", "peak_bytes", "leaked_bytes"):
        expect(total(rows, column) == total(summary["memory"]["rows"], column), what, column)


def agree_rank_waits(summary, rows, what):
    ranks = summary.get("collectives", {"ranks": []})["ranks"]
    expect(len(rows) == len(ranks) or not ranks, what, "ranks")
    expect_same({row["label"]: tuple(row[column] for column in RANK_COLUMNS)
                 for row in rows if ranks},
                {row["process"]: (row.get("rank"), row["exposed_wait_ns"],
                                  row["cost_ns"], row["late_count"]) for row in ranks},
                what)


def agree_pairs(summary, rows, what):
    collectives = summary.get("collectives", {"wait_ns": 0, "exposed_wait_ns": 0})
    for column in ("wait_ns", "exposed_wait_ns"):
        expect(total(rows, column) == collectives[column], what, column)


def agree_causes(summary, rows, what):
    causes = summary.get("collectives", {"causes": []})["causes"]
    found = collections.Counter((row["rank"], row["path"] or "", row["wait_ns"],
                                 row["cost_ns"]) for row in rows)
    expect_same(found, collections.Counter(
        (row.get("rank"), ";".join(row["path"]), row["wait_ns"], row["cost_ns"])
        for row in causes), what)
    expect(all((row["kind"] == "idle") == ("[idle: " in (row["path"] or "")) for row in rows),
           what, "kinds")


def agree_bandwidth(summary, rows, what):
    """Each instance of the database has whole nanoseconds, so medians may differ by one."""
    groups = {(row["operation"], row["communicator"], row["bytes"]): row
              for row in summary.get("collectives", {"groups": []})["groups"]
              if row["transfer_ns"]}
    rows = [row for row in rows if row["transfer_ns"]]
    keys = [(row["operation"], row["communicator"], row["bytes"] or 0) for row in rows]
    expect(sorted(keys) == sorted(groups), what, keys, groups)
    for key, row in zip(keys, rows):
        group = groups[key]
        expect(abs(row["transfer_ns"] - group["transfer_ns"]) <= 1 and
               row["ranks"] == group["ranks"], what, row, group)
        expected = group.get("bus_bytes_per_second", 0) / 1e9
        expect(abs((row["bus_gigabytes_per_second"] or 0) - expected) <= 2e-4 * expected, what,
               row, group)


RANK_COLUMNS = ("rank", "exposed_wait_ns", "cost_ns", "late_count")
KERNELS = ("kernel", "collective")
# By question of the document: compares all rows of the answer with the summary.
ANSWERS = (agree_lines, agree_stacks, agree_kernels, agree_launches, agree_idle, agree_gaps,
           agree_idle_lines, agree_devices, agree_waits, agree_memory, agree_idle_lines,
           agree_rank_waits, agree_pairs, agree_causes, agree_bandwidth)


def named_rows(database, question):
    answer = database.execute(question)
    return [dict(zip([column[0] for column in answer.description], row)) for row in answer]


def check_document(reference, database, path):
    """The document describes each table, view and column, and no other. Its questions run, and
    the answers agree with the summary."""
    ask = lambda query: database.execute(query).fetchall()
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
    numbered = re.findall(r"^\*\*(\d+)\. .*?```sql\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    expect([int(number) for number, _ in numbered] == list(range(1, len(ANSWERS) + 1)), "numbers")
    for (number, question), agrees in zip(numbered, ANSWERS):
        complete = re.sub(r" LIMIT 10;", ";", question)
        rows = named_rows(database, complete)
        expect(rows[:10] == named_rows(database, question)[:10], number, "has another order")
        agrees(reference.summary, rows, f"question {number}")


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
