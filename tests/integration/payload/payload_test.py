#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests NVTX's payload extension: ranges end, and values reach the log and the timelines."""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

COMM = str(0xFEDCBA9876543210)  # exceeds the integers of JavaScript
INIT = {"NCCL communicator ID": COMM, "No. of ranks": 2, "Rank": 1, "CUDA device": 0}
MIXED = {"text": "a text of two lines", "null": "[null]", "points[0].x": 1, "points[0].y": 2,
         "points[1].x": -0.5, "points[1].y": 4, "small": -3, "real_1 no": 2.25, "letters": "abc",
         "numbers": "[1, 2, 65535]", "address": "0x000000000000abc0", "registered": "kept",
         "length": 3, "values": "[10, 20, -30]", "last": 7}
THREADS, ROUNDS = 4, 50


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8",
                          **options).stdout


def reduce_values(size, operation):
    return {"NCCL communicator ID": COMM, "Message size [bytes]": size,
            "Reduction operation": operation}


def check_roots(merge, data):
    """A pop with a payload ends the range: no later kernel is in it."""
    lines = run([merge, data, "--quiet", "--folded", "-"]).splitlines()
    for line in lines:
        kernel = line.split("[GPU_Kernel]")[1].split()[0]
        assert ("[NVTX" in line) == (kernel == "inside"), line
    assert sum("ncclCommInitRankConfig]" in line for line in lines) == 1, lines
    summary = json.loads(run([merge, data, "--quiet", "--summary", "-"]))
    for doubt in ("nvtx_pops_without_push", "nvtx_ends_without_start"):
        assert doubt not in json.dumps(summary), doubt


def check_chrome(merge, data):
    events = [event for event in
              json.loads(run([merge, data, "--quiet", "--chrome", "-"]))["traceEvents"]
              if event.get("cat") == "nvtx"]
    assert not [event for event in events if event["ph"] == "B"], "a range never ends"

    def values(name, phase="X"):
        return [event["args"].get("values") for event in events
                if event["name"] == "NCCL:" + name and event["ph"] == phase]

    assert values("ncclCommInitRankConfig") == [INIT], values("ncclCommInitRankConfig")
    assert values("ncclAllReduce") == [reduce_values(4096, "Sum"),
                                       reduce_values(1 << 20, "Product")]
    assert values("mixed", "i") == [MIXED], values("mixed", "i")
    named = {"message": "named by payload", "step": 41}
    assert values("named by payload") == [named]
    assert values("named by payload", "b") == [named]
    assert values("named by payload", "e") == [{**named, "step": 42}]
    check_hostile(values("hostile"), values("many")[0])
    texts = values("texts")[0]
    assert texts["text"].endswith("...") and texts["null"] == "[null]", texts
    assert "[cut]" in texts, texts
    threaded = values("threaded")
    assert len(threaded) == THREADS * ROUNDS
    for number in range(1, THREADS + 1):
        wanted = {"NCCL communicator ID": number, "Message size [bytes]": number * 1000,
                  "Reduction operation": "Product"}
        assert threaded.count(wanted) == ROUNDS, number


def check_hostile(hostile, many):
    nothing = dict.fromkeys(reduce_values(0, 0), "[not decoded]")
    assert len(hostile) == 13, hostile
    assert hostile[0] == {**reduce_values(0, "Sum"), "NCCL communicator ID": 0}
    assert hostile[1]["payload"].startswith("0x00") and hostile[1]["payload"].endswith("...")
    assert list(hostile[2])[0].startswith("[unknown schema"), hostile[2]
    assert "[cut]" in hostile[4] and hostile[4]["length"] == "[not decoded]", hostile[4]
    assert {**hostile[5], "[cut]": 0} == {**nothing, "[cut]": 0}, hostile[5]
    assert hostile[8]["length"] == 2 ** 32 - 1 and hostile[8]["values"] == "[not decoded]"
    assert hostile[9]["Reduction operation"] == 77, "no value of the enum has that number"
    assert hostile[10:12] == [{"payload": "plain text"}, {"payload": 77}]
    assert "[cut]" in hostile[12] and "[cut]" in many


def check_sqlite(merge, data, folder):
    path = os.path.join(folder, "payload.sqlite")
    run([merge, data, "--quiet", "--sqlite", path])
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT n.text, r.payload FROM nvtx_range r JOIN name n ON n.id = r.name_id").fetchall()
    found = {name: json.loads(payload) for name, payload in rows if payload}
    assert found["NCCL:ncclCommInitRankConfig"] == INIT
    assert found["NCCL:named by payload"]["step"] in (41, 42)
    assert ("NCCL:none", None) in rows


def check_perfetto(merge, data, folder):
    path = os.path.join(folder, "payload.pftrace")
    run([merge, data, "--quiet", "--perfetto", path])
    with open(path, "rb") as file:
        trace = file.read()
    for text in (*INIT, *MIXED, COMM, "a text of two lines", "Product"):
        assert text.encode() in trace, text


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "dump", "program"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        run([args.xtrace, "record", "--simulate", "-o", data, args.program])
        logs = [os.path.join(data, name) for name in os.listdir(data) if name.endswith(".xtr")]
        run([sys.executable, args.dump, "--check", *logs])
        check_roots(args.merge, data)
        check_chrome(args.merge, data)
        check_sqlite(args.merge, data, folder)
        check_perfetto(args.merge, data, folder)
    print("all ranges end, all values are there")


if __name__ == "__main__":
    sys.exit(main())
