# SPDX-License-Identifier: Apache-2.0
"""Compares the cells of tables between CSV, the JSON summary, SQLite and text."""

import csv
import json
import re
import sqlite3

import format_csv
import format_sqlite
import format_summary
from reference import Mismatch, expect

# In SQLite some tables are views of events: the view, and its column by the column in CSV.
VIEWS = {
    "api_calls": ("top_calls", {"name": "name", "count": "count", "failed_count": "failed_count",
                                "total_ns": "total_ns", "min_ns": "min_ns", "max_ns": "max_ns"}),
    "kernels": ("kernels", {"name": "CASE WHEN kind IN ('copy', 'set') THEN '[GPU_' || name || ']' "
                                    "ELSE name END", "count": "count", "gpu_time_ns": "total_ns",
                            "min_ns": "min_ns", "max_ns": "max_ns"}),
    "idle": ("idle_by_class", {"class": "class", "gpu_idle_ns": "gpu_idle_ns"}),
    "losses": ("loss", {"name": "name", "count": "count"}),
    "wait_causes": ("wait_causes", {"path": "path", "wait_ns": "wait_ns", "cost_ns": "cost_ns"}),
    "paths": ("path", {"path": "text", **{column: column for column in
                                          format_csv.COLUMNS.values()}}),
}
# Tables whose rows in SQLite are sums of other things, or have other columns.
ONLY_ELSEWHERE = {"clocks", "collective_groups", "communicators", "copies", "devices", "memory",
                  "processes", "ranges", "rank_waits", "warnings"}
TITLES = {"API calls by function": "api_calls", "Copies and memsets": "copies",
          "GPU time by NVTX range, including nested ranges": "ranges", "Memory": "memory",
          "GPU time by kernel, copy and memset": "kernels", "Collectives of MPI": "mpi"}
COMPUTED = {"share", "mean", "bandwidth"}  # text shows these beside the cells
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "B": 1, "KiB": 2**10, "MiB": 2**20,
         "GiB": 2**30, "TiB": 2**40}
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def clean(value):
    """A cell as CSV prints it: without what could control a terminal."""
    return "" if value is None else CONTROLS.sub("_", str(value))


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    # The apostrophe keeps a spreadsheet from running a name as a formula.
    return [{key: value[1:] if value[:1] == "'" and value[1:2] in tuple("=+-@") else value
             for key, value in row.items()} for row in rows]


def expect_rows(found, wanted, what):
    expect(len(found) == len(wanted), what, "has", len(found), "rows, wanted", len(wanted))
    for number, (row, other) in enumerate(zip(found, wanted)):
        expect(row == other, what, "row", number, row, "wanted", other)


def json_cell(row, column):
    """A cell of the JSON summary as CSV prints it. Paths have other names there."""
    value = row.get(column, row.get({"path": "frames", "range": "ranges"}.get(column)))
    if isinstance(value, list):
        value = (";" if column in ("path", "range") else "; ").join(map(str, value))
    return clean(value)


def check_json(name, rows, found):
    if not rows or name not in found or "rows" not in found[name]:
        return
    columns = [column for column in rows[0]
               if any(json_cell(row, column) for row in found[name]["rows"])]
    expect_rows([{column: json_cell(row, column) for column in columns}
                 for row in found[name]["rows"]],
                [{column: row[column] for column in columns} for row in rows], f"{name} in JSON")


def check_sqlite(name, rows, ask):
    if name in ONLY_ELSEWHERE or not rows:
        return
    table, columns = VIEWS.get(name, (name, {column: f'"{column}"' for column in rows[0]}))
    found = ask(f"SELECT {', '.join(columns.values())} FROM {table}")
    found = [tuple(map(clean, row)) for row in found]
    wanted = [tuple(row[column] for column in columns) for row in rows]
    if name in VIEWS:  # in another order, and with rows that have only zeros
        is_known = lambda row: any(value not in ("0", "") for column, value in zip(columns, row)
                                   if column not in ("name", "path", "class"))
        found, wanted = sorted(filter(is_known, found)), sorted(filter(is_known, wanted))
    expect_rows(found, wanted, f"{name} in SQLite")


def text_tables(text):
    """The heads and rows of each table, by its title."""
    tables = {}
    for block in text.split("\n\n"):
        title, *lines = block.split("\n")
        name = TITLES.get(title.split(" (")[0])
        if name and lines:
            heads = re.split(r"  +", lines[0].strip())
            tables[name] = heads, [re.split(r"  +", line.strip(), maxsplit=len(heads) - 1)
                                   for line in lines[1:] if line.startswith(" ")]
    return tables


def is_shown(text, cell):
    """Whether text shows this number, rounded."""
    number, _, unit = text.partition(" ")
    number = number.replace(",", "")
    if not re.fullmatch(r"-?[\d.]+", number) or not re.fullmatch(r"-?\d+", cell):
        return text == cell
    factor = UNITS.get(unit, 1)
    decimals = len(number.partition(".")[2])
    return abs(float(number) * factor - int(cell)) <= factor * 10**-decimals


def check_text(name, rows, tables):
    heads, lines = tables.get(name, ((), ()))
    if not rows or not heads:
        return
    expect(len(lines) == len(rows), name, "in text has", len(lines), "rows, wanted", len(rows))
    for place, head in enumerate(heads[:-1]):
        if head in COMPUTED:
            continue
        expect(any(all(is_shown(line[place], row[column]) for line, row in zip(lines, rows))
                   for column in rows[0]),
               name, "in text: no column has the numbers of", head, [line[place] for line in lines])


def check(reference, folder):
    database = sqlite3.connect(f"file:{folder / format_sqlite.NAME}?mode=ro", uri=True)
    ask = lambda query: database.execute(query).fetchall()
    with open(folder / format_summary.NAME, encoding="utf-8") as file:
        summary = json.load(file)
    texts = text_tables(reference.run("--text", "-", "--all", "--top", "1000000").decode("utf-8"))
    missing = []
    for path in sorted((folder / format_csv.NAME).glob("*.csv")):
        rows = read_csv(path)
        for compare, other in ((check_json, summary), (check_sqlite, ask),
                               (check_text, texts)):
            try:
                compare(path.stem, rows, other)
            except Mismatch as mismatch:
                missing.append(str(mismatch))
    database.close()
    expect(not missing, "\n  ".join(missing[:8]))
