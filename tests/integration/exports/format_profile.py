# SPDX-License-Identifier: Apache-2.0
"""The run profile: checks values of the whole run against the log's rows and the folded stacks, and
values of an iteration for consistency.
"""

import json
import math
import re

from reference import expect, expect_same

NAME = "profile.json"
ARGUMENTS = ("--profile", NAME)


def check(reference, folder, args):
    with open(folder / NAME, encoding="utf-8") as file:
        profile = json.load(file)
    expect((profile["format"], profile["version"]) == ("xtrace-profile", 2), "format and version")
    expect(len(profile["processes"]) == reference.traced_count, "processes are missing")
    tables = {key: [dict(zip(profile["columns"], row)) for row in table]
              for key, table in profile.items()
              if isinstance(table, list) and table and isinstance(table[0], list)}
    check_whole(reference, profile, tables)
    check_iterations(profile, tables)


def path_of(profile, node):
    names, nodes, path = profile["names"], profile["nodes"], []
    while node:
        path.append(names[nodes[2 * node - 1]])
        node = nodes[2 * node - 2]
    return tuple(reversed(path))


def plain(frame):
    return re.sub("[0-9]+", "#", frame) if frame.startswith("[NVTX ") else frame


def check_whole(reference, profile, tables):
    wanted = {}
    for path, value in reference.folded("gpu-time").items():
        path = tuple(plain(frame) for frame in path)
        wanted[path] = wanted.get(path, 0) + value
    expect_same({path_of(profile, row["id"]): row["whole_value"] for row in tables.get("paths", [])},
                wanted, "paths")
    totals = {row["id"]: row for row in tables["totals"]}
    works = sum(reference.count(kind) for kind in ("KERNEL", "COPY", "SET"))
    for name, value, count in (
            ("gpu-time", reference.work_ns(), works),
            ("gpu-idle", reference.total("gpu-idle"), None),
            ("gpu-busy", reference.total("gpu-exclusive"), None),
            ("copies", None, reference.count("COPY") + reference.count("SET"))):
        if value is not None:
            expect(totals[name]["whole_value"] == value, name, totals[name]["whole_value"], value)
        if count is not None:
            expect(totals[name]["whole_count"] == count, name, totals[name]["whole_count"], count)
    for key, column, value in (
            ("kernels", "whole_value", reference.work_ns()),
            ("apis", "whole_count", reference.count("CALL")),
            ("idle", "whole_value", reference.total("gpu-idle")),
            ("bytes", "whole_value", totals["bytes"]["whole_value"])):
        expect(sum(row[column] for row in tables.get(key, [])) == value, key, "do not add up")


def check_iterations(profile, tables):
    if not profile["batch_count"]:
        return
    for key, table in tables.items():
        for row in table:
            # A row with values in iterations has one for the run.
            expect(row["value"] >= 0 and (row["value"] == 0 or row["whole_value"] > 0), key, row)
            expect(row["count"] >= 0 and (row["count"] == 0 or row["whole_count"] > 0), key, row)
            for column in row:
                if column.endswith(("_error", "_residual")):
                    expect(row[column] is None or row[column] >= 0, key, row)
    total = next(row for row in tables["totals"] if row["id"] == "gpu-time")
    for key in "paths", "kernels":
        for column in "value", "count":
            whole = sum(row[column] for row in tables.get(key, []))
            expect(math.isclose(whole, total[column], rel_tol=1e-6, abs_tol=1e-6), key, column,
                   "do not add up to that of an iteration")
    for process in profile["processes"]:
        expect(process["found_count"] >= process["warmup_count"] + process["used_count"], process)
