#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parse the Markdown, JUnit, folded and HTML outputs of a comparison and check that they agree."""

import argparse
import base64
import gzip
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "baseline"))
from baseline_test import Folder  # noqa: E402

RULES = ("gpu-time > 3%", "path(*) > 10%", "launches > 0", "wall < 1ns", "path(<none>) > 1%")


def slow_down(folder, runs, profile, factor):
    """Slow down the most expensive call path in all runs. Returns its last frame."""
    row = max(range(len(profile["paths"])), key=lambda r: profile["paths"][r][3])
    for name in runs.split(","):
        run = json.loads(folder.text(name))
        grown = run["paths"][row][3] * (factor - 1)
        run["paths"][row][3] *= factor
        for total in run["totals"]:
            if total[0] in ("gpu-time", "gpu-busy"):
                total[3] += grown
        folder.write(name, json.dumps(run))
    node = profile["paths"][row][0]
    return profile["names"][profile["nodes"][2 * node - 1]]


def read_folded(text):
    """Returns base and new by call path."""
    paths = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([^;].*) (\d+) (\d+)", line)
        assert match, line
        assert match[1] not in paths, line
        paths[match[1]] = (int(match[2]), int(match[3]))
    return paths


def check_junit(text, outcome):
    suites = xml.etree.ElementTree.fromstring(text)
    assert suites.tag == "testsuites" and len(suites) == 1
    suite = suites[0]
    cases = suite.findall("testcase")
    assert all(case.get("name") and case.get("classname") for case in cases)
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
    assert {case.tag for case in suite} <= {"testcase", "properties"}
    found = {}
    for case in cases:
        (child,) = case
        found[case.get("name")] = child.tag
        assert child.tag == "system-out" or child.get("message") and child.get("type")
    assert found == outcome, found


def check_markdown(text, what):
    lines = text.splitlines()
    assert lines[0] == "<!-- xtrace gate -->" and lines[1].startswith("### ")
    assert "regression" in lines[1]
    assert text.count("<details>") == text.count("</details>") >= 3
    assert len(text.encode()) < 65536
    assert what in text, what
    # Each total once, in order.
    totals = re.findall(r"\| `([a-z-]+)`(?: \(whole run\))? \|$", text, re.M)
    assert totals[:2] == ["gpu-time", "gpu-busy"] and len(set(totals)) == len(totals), totals
    assert "total: " not in text and " -> " not in text
    columns = None
    for line in lines:
        if not line.startswith("|"):
            columns = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        assert columns in (None, cells), line
        columns = cells
    # A place in the program's own file.
    assert re.search(r"\(torch_work\.py:\d+\)", text)


def head_of(page):
    """The JSON document in a page."""
    packed = unpack(page)
    (size,) = struct.unpack("<I", packed[:4])
    return json.loads(packed[4:4 + size])


def check_ranges(folder, profile, has_page):
    """In whole runs, each output says that values of a range are of one instance."""
    base = folder.make_runs("whole", profile, 5, 3, 20003)
    new = folder.make_runs("grown", profile, 5, 4, 20004)
    (whole,) = [row[1] for row in profile["ranges"] if profile["names"][row[0]] == "all;step"]
    (count,) = [row[2] for row in profile["spans"] if profile["names"][row[0]] == "all;step"]
    for name in new.split(","):
        run = json.loads(folder.text(name))
        for row in run["ranges"]:
            if run["names"][row[0]] == "all;step":
                row[1], row[3] = row[1] * 1.5, row[3] * 1.5
        folder.write(name, json.dumps(run))
    outputs = ["--markdown", "w.md", "--junit", "w.xml", "--json", "w.json", "--text", "w.text",
               *(["--html", "w.html"] if has_page else [])]
    folder.run("diff", base, new, "--fail-on", "range(step).gpu-time > 3%", *outputs, status=1)
    values = "whole runs, and of one instance of each NVTX range"
    check_junit(folder.text("w.xml"), {"range(step).gpu-time > 3%": "failure"})
    assert 'name="values" value="of %s"' % values in folder.text("w.xml")
    assert ", values of %s\n" % values in folder.text("w.text")
    text = folder.text("w.md")
    assert "Values of %s." % values in text and "<summary>Whole run</summary>" in text
    assert re.search(r"\| range: `all;step` \(one instance\) \|$", text, re.M), text
    document = json.loads(folder.text("w.json"))
    assert document["per_iteration"] is False
    bases = {row["level"]: row["basis"] for row in document["rows"]}
    assert bases == {level: "instance" if level in ("range", "span") else "run" for level in bases}
    (row,) = [row for row in document["rows"] if (row["level"], row["key"]) == ("range", "all;step")]
    assert abs(row["value"]["base"] - whole / count) < 0.02 * whole / count, row
    if has_page:
        comparison = head_of(folder.text("w.html"))["comparison"]
        assert comparison["values"] == values
        notes = {row["level"]: row["note"] for row in comparison["others"]}
        assert notes["range"] == " (one instance)" and notes.get("kernel", "") == "", notes


def check_bases_of_iterations(folder, document):
    """Values are of one iteration, except those that have no mean."""
    bases = {row["key"]: row["basis"] for row in document["rows"] if row["level"] != "memory"}
    assert document["per_iteration"] is True
    assert {key for key in bases if bases[key] == "run"} == {"iterations", "peak-memory"}
    assert set(bases.values()) == {"run", "iteration"}
    assert "<summary>One iteration</summary>" in folder.text("o.md")
    assert "`iterations` (whole run) |" in folder.text("o.md")


def unpack(page):
    return gzip.decompress(base64.b64decode(
        re.search(r'id="xtrace-data">([A-Za-z0-9+/=]+)</script>', page)[1]))


def check_page(page, paths, document):
    packed = unpack(page)
    (size,) = struct.unpack("<I", packed[:4])
    head, at, columns = json.loads(packed[4:4 + size]), 4 + size, {}
    for spec in head["columns"]:
        values, value, unit = [], 0, 1
        for byte in packed[at:at + spec["bytes"]]:
            value += (byte & 127) * unit
            unit *= 128
            if byte < 128:
                values.append(value)
                value, unit = 0, 1
        assert len(values) == spec["count"], spec
        columns[spec["name"]] = values
        at += spec["bytes"]
    assert at == len(packed)
    stack, seen = [], {}
    for depth, name, base, new in zip(columns["node.depth"], columns["node.name"],
                                      columns["weight.gpu-time.base"],
                                      columns["weight.gpu-time.new"]):
        del stack[depth - 1:]
        stack.append(head["names"][name].replace(";", ":"))
        if base or new:
            seen[";".join(stack)] = (base, new)
    assert seen == paths
    comparison = head["comparison"]
    assert [side["argument"] for side in comparison["sides"]] == ["base.0.json and 4 more",
                                                                  "new.0.json and 4 more"]
    assert comparison["outcome"] == document["outcome"] == "regression"
    assert [rule["rule"] for rule in comparison["rules"]] == [r["rule"] for r in document["rules"]]
    changed = {row["key"] for row in document["rows"] if row["changes"] and row["level"] == "path"
               and (row["value"]["base"] or row["value"]["new"])}
    assert len(changed) == sum(row["level"] == "path" for row in comparison["paths"])
    for row in comparison["paths"]:
        assert row["places"] and set(row["places"]) <= set(row["frames"][:-1]), row
        depth = columns["node.depth"][row["node"] - 1]
        assert depth == len(row["frames"])
        assert head["names"][columns["node.name"][row["node"] - 1]] == row["frames"][-1]


def check_allowed(folder, base, new):
    """Outputs show allowed regressions with their reason."""
    folder.write("rules", "gpu-time > 3%\nallow gpu-time +1000% until 2999-12-31 # agreed on\n")
    folder.run("diff", "--iteration", "detected", base, new, "--rules", "rules", "--markdown", "a.md", "--junit", "a.xml")
    (line,) = [line for line in folder.text("a.md").splitlines() if "- allowed: `gpu-time`" in line]
    assert line.endswith("by `allow gpu-time +1000% until 2999-12-31` of rules:2: agreed on"), line
    suites = xml.etree.ElementTree.fromstring(folder.text("a.xml"))
    (case,) = suites.iter("testcase")
    assert "allowed by rules:2: allow gpu-time" in case.find("system-out").text


def check_nothing(folder, base):
    """Without anything to compare, reports say why, and outputs of numbers are not written."""
    folder.run("diff", "--iteration", "detected", base, "nothing-there", "--markdown", "n.md", "--junit", "n.xml", status=2)
    assert "inconclusive" in folder.text("n.md") and "nothing-there" in folder.text("n.md")
    suites = xml.etree.ElementTree.fromstring(folder.text("n.xml"))
    assert suites.find(".//error") is not None
    done = folder.run("diff", "--iteration", "detected", base, "nothing-there", "--folded", "n.folded", status=2)
    assert "n.folded" in done.stdout + done.stderr, done


# Characters that control a terminal, end a line, or change the direction of text.
UNPLAIN = "".join(map(chr, (0x1b, 0x7f, 0x9b, 0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f),
                            *range(0x2066, 0x206a))))


def check_names(folder, base, new, has_page):
    """No output contains control characters from the texts of a profile."""
    def spoil(value):
        if isinstance(value, dict):
            return {key: part if key in ("format", "word", "iterations", "columns", "totals")
                    else spoil(part) for key, part in value.items()}
        if isinstance(value, list):
            return [spoil(part) for part in value]
        return value + "SPOILT" + UNPLAIN if isinstance(value, str) else value

    sides = []
    for side in (base, new):
        files = []
        for name in side.split(","):
            files.append("spoilt." + name)
            folder.write(files[-1], json.dumps(spoil(json.loads(folder.text(name)))))
        sides.append(",".join(files))
    outputs = ["text", "markdown", "junit", "folded", "json"] + ["html"] * has_page
    folder.run("diff", "--iteration", "detected", *sides, "--fail-on", "each path(*) > 10%",
               *(word for o in outputs for word in ("--" + o, "s." + o)), status=1)
    folder.run("baseline", "save", "s.baseline", sides[0], "--label", "one" + "SPOILT" + UNPLAIN)
    texts = {output: folder.text("s." + output) for output in outputs}
    if has_page:
        texts["html"] = unpack(texts["html"]).decode("utf-8", "replace")
    texts["baseline show"] = folder.run("baseline", "show", "s.baseline").stdout
    for output, text in texts.items():
        found = re.findall("SPOILT(.{%d})" % len(UNPLAIN), text, re.S)
        # Long names are truncated.
        assert found and all(re.match(r"\?*(…|\?$)", rest) for rest in found), (output, set(found))
        assert not set("".join(found)) & set(UNPLAIN), (output, set(found))


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "traces", "html"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(args, name)
        profile = folder.profile("h200-pytorch-work.xtr")
        base = folder.make_runs("base", profile, 5, 1, 20001)
        new = folder.make_runs("new", profile, 5, 2, 20002)
        what = slow_down(folder, new, profile, 1.5)
        outputs = ["--markdown", "o.md", "--junit", "o.xml", "--folded", "o.folded", "--json",
                   "o.json"]
        if args.html == "1":
            outputs += ["--html", "o.html"]
        for rule in RULES[:4]:
            outputs += ["--fail-on", rule]
        folder.run("diff", "--iteration", "detected", base, new, *outputs, status=1)
        paths = read_folded(folder.text("o.folded"))
        assert any(path.endswith(what) and later > 1.4 * before > 0
                   for path, (before, later) in paths.items())
        check_junit(folder.text("o.xml"), {
            "gpu-time > 3%": "failure", "path(*) > 10%": "failure", "launches > 0": "system-out",
            "wall < 1ns": "failure"})
        check_markdown(folder.text("o.md"), re.sub(r"^\[GPU_Kernel\]", "", what)[:40])
        if args.html == "1":
            check_page(folder.text("o.html"), paths, json.loads(folder.text("o.json")))
        check_bases_of_iterations(folder, json.loads(folder.text("o.json")))
        check_ranges(folder, profile, args.html == "1")
        check_allowed(folder, base, new)
        check_nothing(folder, base)
        check_names(folder, base, new, args.html == "1")
        folder.run("diff", "--iteration", "detected", base, new, "--junit", "p.xml", "--fail-on", RULES[4], status=2)
        assert xml.etree.ElementTree.fromstring(folder.text("p.xml")).find(".//error") is not None
    print("all outputs agree")


if __name__ == "__main__":
    sys.exit(main())
