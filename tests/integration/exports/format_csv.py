# SPDX-License-Identifier: Apache-2.0
"""Checks CSV: reads it strictly with Python's reader and compares totals with the folded stacks."""

import collections
import csv
import re

from reference import expect, expect_same

NAME = "tables"
ARGUMENTS = ("--csv", NAME)
COLUMNS = {"gpu-time": "gpu_time_ns", "count": "count", "cpu-wait": "cpu_wait_ns",
           "gpu-exclusive": "gpu_exclusive_ns", "gpu-idle": "gpu_idle_ns",
           "alloc-bytes": "alloc_bytes", "peak-bytes": "peak_bytes",
           "leaked-bytes": "leaked_bytes", "cpu-time": "cpu_time_ns",
           "off-cpu": "off_cpu_ns", "collective-wait": "collective_wait_ns",
           "collective-cause": "collective_cause_ns"}
NUMBERS = re.compile(r".*(_ns|_bytes|_count)|count|bytes|untimed_launches|error")


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    for row in rows:
        expect(None not in row and None not in row.values(), path.name, row)
        for key, value in row.items():
            if NUMBERS.fullmatch(key):
                row[key] = int(value) if value else None
            elif key != "drift_ppm":
                expect(not value or value[0] not in "=+-@", "a formula:", value)
    return rows


def check(reference, folder, args):
    files = {path.name for path in (folder / NAME).iterdir()}
    with open(args.docs / "SUMMARY.md", encoding="utf-8") as file:
        described = set(re.findall(r"`(\w+\.csv)`", file.read()))
    expect(files == described | {"paths.csv"}, "files:", files)
    tables = {name.removesuffix(".csv"): read(folder / NAME / name) for name in files}
    for weight in reference.weights:
        found = collections.Counter()
        for row in tables["paths"]:
            found[tuple(row["path"].split(";"))] += row[COLUMNS[weight]]
        expect_same(+found, +reference.folded(weight), weight)
    kernels = tables["kernels"]
    expect(sum(row["gpu_time_ns"] for row in kernels) == reference.total(), "kernels")
    check_lines(reference, tables["lines"])
    expect(sum(row["count"] for row in tables["api_calls"]) == reference.count("CALL"), "calls")
    for kind, key in (("COPY", "copy"), ("SET", "set")):
        expect(sum(row["bytes"] for row in tables["copies"] if row["kind"] == key) ==
               sum(int(row["bytes"]) for rows in reference.rows for row in rows[kind]), key)
    idle = collections.Counter()
    for path, value in reference.folded("gpu-idle").items():
        idle[reference.idle_class(path)] += value
    expect_same(+collections.Counter({row["class"]: row["gpu_idle_ns"] for row in tables["idle"]}),
                +idle, "idle classes")
    expect(sum(row["peak_bytes"] for row in tables["memory"]) == reference.total("peak-bytes"),
           "memory")
    failed = sum(int(row["result"]) != 0 for rows in reference.rows for row in rows["CALL"])
    expect(sum(row["count"] for row in tables["failed_calls"]) == failed, "failed calls")


def check_lines(reference, rows):
    """Lines have all work, and the parts of their time add up."""
    for weight, columns in (("gpu-time", ["gpu_time_ns"]), ("gpu-idle", ["gpu_idle_ns"]),
                            ("count", ["count"]),
                            ("alloc-bytes", ["alloc_bytes", "pool_growth_bytes"])):
        expect(sum(row[column] for row in rows for column in columns) == reference.total(weight),
               "lines", weight)
    for row in rows:
        passes = [row[f"{name}_ns"] for name in ("forward", "backward", "recompute", "optimizer")]
        expect(passes[0] is None or sum(passes) == row["gpu_time_ns"], "passes of", row)
