# SPDX-License-Identifier: Apache-2.0
"""Checks the JSON summary against its schema, and its totals against the folded stacks."""

import json

import jsonschema

from reference import expect, expect_same

NAME = "s.json"
ARGUMENTS = ("--summary", NAME, "--top", "1000000")


def check(reference, folder, args):
    with open(folder / NAME, encoding="utf-8") as file:
        summary = json.load(file)
    with open(args.docs / "summary.schema.json", encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.validate(summary, schema)
    check_known(schema, summary, "summary")
    check_weights(reference, summary)
    check_totals(reference, summary)
    check_kernels(reference, summary)
    check_devices(summary)
    check_headline(summary)
    check_by_process(summary)
    for key, table in summary.items():
        if isinstance(table, dict) and "rows" in table:
            expect(len(table["rows"]) == table["row_count"], key, "has not all rows")


def check_known(schema, value, where):
    """Checks that the schema describes each member."""
    for item in value if isinstance(value, list) else ():
        check_known(schema.get("items", {}), item, where)
    if not isinstance(value, dict) or "additionalProperties" in schema:
        return
    for key, member in value.items():
        expect(key in schema.get("properties", {}), where, key, "is not in the schema")
        check_known(schema["properties"][key], member, f"{where}.{key}")


def check_weights(reference, summary):
    for weight, unit in reference.weights.items():
        found = summary["weights"][weight]
        paths = {tuple(summary["paths"][row["path"]]): row["value"]
                 for row in found["paths"]["rows"]}
        expect_same(paths, reference.folded(weight), weight)
        expect(found["unit"] == unit and found["total"] == reference.total(weight), weight)
        expect(found["paths"]["row_count"] == len(paths), weight, "has not all paths")
    texts = [tuple(frames) for frames in summary["paths"].values()]
    expect(len(set(texts)) == len(texts), "a path has two ids")
    expect(set(summary["paths"]) == {row["path"] for weight in summary["weights"].values()
                                     for row in weight["paths"]["rows"]}, "paths without a row")


def check_totals(reference, summary):
    totals = summary["totals"]
    for member, wanted in (
            ("kernel_count", reference.count("KERNEL")), ("copy_count", reference.count("COPY")),
            ("set_count", reference.count("SET")), ("gpu_time_ns", reference.work_ns()),
            ("gpu_exclusive_ns", reference.total("gpu-exclusive")),
            ("gpu_idle_ns", reference.total("gpu-idle")),
            ("cpu_wait_ns", reference.total("cpu-wait"))):
        expect(totals[member] == wanted, member, totals[member], "wanted", wanted)
    expect(sum(row["count"] for row in summary["api_calls"]["rows"]) == reference.count("CALL"),
           "API calls are missing")
    expect(sum(row["total_ns"] for row in summary["api_calls"]["rows"]) ==
           sum(int(call["duration_ns"]) for rows in reference.rows for call in rows["CALL"]),
           "time of API calls is missing")
    expect(sum(row["gpu_time_ns"] for row in summary["kernels"]["rows"]) == reference.work_ns(),
           "kernels are missing")
    for kind, key in (("COPY", "copy"), ("SET", "set")):
        rows = [row for row in summary["copies"]["rows"] if row["kind"] == key]
        expect(sum(row["count"] for row in rows) == reference.count(kind), key, "count")
        expect(sum(row["bytes"] for row in rows) ==
               sum(int(row["bytes"]) for log in reference.rows for row in log[kind]), key, "bytes")
    idle = {reference.idle_class(path): 0 for path in reference.folded("gpu-idle")}
    for path, value in reference.folded("gpu-idle").items():
        idle[reference.idle_class(path)] += value
    expect_same(summary["gpu_idle_by_class_ns"], idle, "idle classes")


def durations_of(reference):
    """Durations and launch shapes by kernel, kind of copy, and for memsets."""
    durations, shapes, shorter = {}, {}, 0
    for rows in reference.rows:
        known = {row["id"]: row for row in rows["SHAPE"]}
        strings = {row["id"]: row["text"] for row in rows["STRING"]}
        copies = {row["id"]: row["copy_kind"] for row in rows["COPY_SHAPE"]}
        calls = {row["correlation"]: int(row["duration_ns"]) for row in rows["CALL"]}
        for kind in ("KERNEL", "COPY", "SET"):
            for row in rows[kind]:
                name = copies.get(row["shape"]) if kind == "COPY" else (
                    strings.get(known.get(row.get("shape"), {}).get("name")))
                key = kind, str(name)
                durations.setdefault(key, []).append(int(row["duration_ns"]))
                if kind != "KERNEL":
                    continue
                shape = {**known.get(row["shape"], {}), "id": 0, "sequence": 0, "name": name}
                if int(shape.get("grid_x", 0)):
                    shapes.setdefault(key, []).append(json.dumps(shape, sort_keys=True))
                if not int(row["graph_node"]):
                    shorter += int(row["duration_ns"]) < calls.get(row["correlation"], 0)
    return durations, shapes, shorter


def check_kernels(reference, summary):
    rows = [row for row in summary["kernels"]["rows"]]
    durations, shapes, shorter = durations_of(reference)
    for row in rows:
        expect(sum(row["histogram"]) == row["count"], row, "histogram")
        expect(row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] <= row["max_ns"], row)
        expect(row["histogram"][0] and row["histogram"][-1], row, "ends of the histogram")
    keys = {row["key"] for log in reference.rows for row in log["META"]}
    knows_limits = "gpu.0.reserved_shared_bytes_per_block" in keys
    expect(all(("occupancy" in row) == knows_limits for row in rows if "grid" in row), "occupancy")
    expect(sum(row.get("shorter_than_launch_count", 0) for row in rows) == shorter, "shorter")
    if len(durations) != len(rows):  # several kernels have the same short name
        return
    wanted = sorted(
        (len(ns), sum(ns), min(ns), max(ns), len(set(shapes.get(key, ()))))
        for key, ns in durations.items())
    expect(wanted == sorted((row["count"], row["gpu_time_ns"], row["min_ns"], row["max_ns"],
                             row.get("shape_count", 0)) for row in rows), "durations")
    exact = {(len(ns), sum(ns)): sorted(ns) for ns in durations.values()}
    if len(exact) != len(rows):
        return
    for row in rows:
        ns = exact[row["count"], row["gpu_time_ns"]]
        for member, rest in (("p50_ns", len(ns) // 2), ("p99_ns", len(ns) // 100)):
            exact_ns = ns[len(ns) - rest - 1]
            expect(abs(row[member] - exact_ns) <= exact_ns / 100, row, member, exact_ns)


def check_by_process(summary):
    """The table of processes and the totals agree."""
    if "by_process" not in summary:
        expect(sum(bool(process["devices"]) for process in summary["processes"]) <= 1,
               "no table of processes")
        return
    rows = summary["by_process"]["rows"]
    for column, wanted in (("gpu_time_ns", summary["totals"]["gpu_time_ns"]),
                           ("gpu_busy_ns", summary["headline"]["gpu_busy_ns"]),
                           ("gpu_idle_ns", summary["headline"]["gpu_idle_ns"]),
                           ("span_ns", summary["headline"]["span_ns"])):
        expect(sum(row[column] for row in rows) == wanted, column, "by process")
    own = [row["own_ns"] for row in rows]
    expect(own == sorted(own, reverse=True), "rows are not sorted")
    # Collectives that were compared know better.
    verdict = summary.get("collectives", {}).get("verdict", {"kind": "unknown"})
    working = [row["own_ns"] for row in rows if row["gpus"]] or [0]
    expect(("slowest" in summary["by_process"]) ==
           (working[0] > working[-1] and verdict["kind"] == "unknown"), "slowest")


def check_devices(summary):
    devices = [device for process in summary["processes"] for device in process["devices"]]
    for total, member in (("gpu_time_ns", "gpu_time_ns"), ("gpu_exclusive_ns", "gpu_busy_ns"),
                          ("gpu_idle_ns", "gpu_idle_ns"), ("kernel_count", "kernel_count")):
        expect(summary["totals"][total] == sum(device[member] for device in devices), member)
    for device in devices:
        span = device["last_end_ns"] - device["first_start_ns"]
        expect(device["gpu_busy_ns"] + device["gpu_idle_ns"] == span or
               "work_too_late_to_be_weighed" in summary["trust"]["doubts"] or
               any("is not counted as idle" in warning for warning in summary["trust"]["warnings"]) or
               summary["totals"]["pause_count"], device)


def check_headline(summary):
    headline, totals = summary["headline"], summary["totals"]
    devices = [device for process in summary["processes"] for device in process["devices"]]
    for member, wanted in (
            ("gpu_busy_ns", totals["gpu_exclusive_ns"]), ("gpu_idle_ns", totals["gpu_idle_ns"]),
            ("launch_count", totals["launch_count"]), ("gpu_time_ns", totals["gpu_time_ns"]),
            ("own_code_gpu_time_ns", summary["own_code"]["gpu_time_ns"]),
            ("trust", summary["trust"]["word"]),
            ("span_ns", sum(d["last_end_ns"] - d["first_start_ns"] for d in devices))):
        expect(headline[member] == wanted, "headline", member, headline[member], "wanted", wanted)
    gap = headline.get("longest_gap", {"idle_ns": 0})
    expect(gap["idle_ns"] <= headline["gpu_idle_ns"], "the longest gap is longer than all")
    expect(headline["span_ns"] <= headline["wall_ns"] * max(len(devices), 1), "active time")
    costs = headline["costs"]
    order = [(cost["rule"] != "hang", not cost["cost_ns"], -cost["cost_ns"]) for cost in costs]
    expect(order == sorted(order), "costs are not sorted")
    found = {(row["rule"], row["where"], row["cost_ns"]) for row in summary["findings"]["rows"]}
    for cost in costs:
        expect((cost["rule"], cost["where"], cost["cost_ns"]) in found, "unknown cost", cost)
