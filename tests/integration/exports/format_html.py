# SPDX-License-Identifier: Apache-2.0
"""Checks the data of the page: its call tree against the folded stacks, its events against the
database, and its tables against the JSON summary.
"""

import base64
import collections
import gzip
import json
import re
import sqlite3

import format_sqlite
import format_summary
from reference import expect, expect_same

NAME = "page.html"
ARGUMENTS = ("--html", NAME, "--html-size", "50M")


def numbers(data, count):
    """Unsigned numbers as LEB128."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    expect(len(found) == count and not shift, "a column has", len(found), "numbers, not", count)
    return found


def read(path):
    """The document and the columns by name."""
    packed = re.search(r'id="xtrace-data">([^<]*)<', path.read_text(encoding="utf-8"))
    data = gzip.decompress(base64.b64decode(packed.group(1)))
    end = 4 + int.from_bytes(data[:4], "little")
    document, columns = json.loads(data[4:end]), {}
    for column in document["columns"]:
        columns[column["name"]] = numbers(data[end:end + column["bytes"]], column["count"])
        end += column["bytes"]
    expect(end == len(data), "data after the last column")
    return document, columns


def check(reference, folder, args):
    document, columns = read(folder / NAME)
    check_tables(folder, document)
    if document["left_out_path_count"]:
        return
    paths = paths_of(document, columns)
    check_samples(reference, document, columns, paths)
    check_events(folder, document, columns, paths)


def check_tables(folder, document):
    """The page has the summary's members, and may have fewer rows."""
    with open(folder / format_summary.NAME, encoding="utf-8") as file:
        summary = json.load(file)
    for key, found in {**document["summary"], "kernels": document["kernels"]}.items():
        wanted = summary[key]
        if isinstance(found, dict) and "rows" in found:
            wanted = {**wanted, "rows": wanted["rows"][:len(found["rows"])]}
        expect(found == wanted, key, "is not as in the summary:", found, "wanted", wanted)


def paths_of(document, columns):
    """The call path of each node, from 1."""
    paths, path = [()], []
    for depth, name in zip(columns["node.depth"], columns["node.name"]):
        path[depth - 1:] = [document["names"][name]]
        paths.append(tuple(path))
    return paths


def summed(differences):
    total = 0
    for difference in differences:
        total += difference
        yield total


def check_samples(reference, document, columns, paths):
    nodes = list(summed(columns["sample.node"]))
    for weight in document["weights"]:
        found = collections.Counter()
        for node, value in zip(nodes, columns[f"weight.{weight['name']}"]):
            found[paths[node]] += value
        expect_same(+found, +reference.folded(weight["name"]), weight["name"])


def check_events(folder, document, columns, paths):
    """The page has the database's events: calls with their function, and work with its name."""
    database = sqlite3.connect(f"file:{folder / format_sqlite.NAME}?mode=ro", uri=True)
    for kind, texts, place, query in (
            ("call", document["events"]["apis"], "api", "name FROM calls"),
            ("work", [path[-1] if path else "" for path in paths], "node",
             "CASE WHEN kind IN ('copy', 'set') THEN '[GPU_' || name || ']' "
             "ELSE '[GPU_Kernel]' || name END FROM work WHERE stream IS NOT NULL")):
        if f"{kind}.duration" not in columns:
            continue
        found = collections.Counter(
            (duration, texts[number]) for duration, number in
            zip(columns[f"{kind}.duration"], columns[f"{kind}.{place}"]))
        wanted = collections.Counter(
            (duration, text or "") for duration, text in
            database.execute(f"SELECT duration_ns, {query}"))
        expect_same(found, wanted, kind)
    database.close()
