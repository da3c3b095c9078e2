#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests names of CUDA objects, from NVTX to the roots of paths and the names of tracks."""

import argparse
import base64
import contextlib
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

WANTED = {"on_default": " (default)", "on_copies": " (köpien:1)", "on_compute": " (compute)",
          "on_nameless": ""}


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8",
                          **options).stdout


def page_data(path):
    """The document in a report: its length precedes it."""
    with open(path, encoding="utf-8") as file:
        packed = re.search(r'<script[^>]*id="xtrace-data"[^>]*>(.*?)</script>', file.read(), re.DOTALL)[1]
    data = gzip.decompress(base64.b64decode(packed))
    return json.loads(data[4:4 + int.from_bytes(data[:4], "little")])


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "program", "trace"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--html", action="store_true", help="the build has --html")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        run([args.xtrace, "record", "--simulate", "-o", data, args.program])

        def roots(by):
            lines = run([args.merge, data, "--quiet", "--folded", "-", "--by", by]).splitlines()
            return {re.search(r"\[GPU_Kernel\](\w+)", line)[1]: line.split(";")[0]
                    for line in lines}

        streams = roots("stream")
        assert set(streams) == set(WANTED), streams
        for kernel, title in WANTED.items():
            assert re.fullmatch(r"\[GPU0 stream \d+" + re.escape(title) + r"\]",
                                streams[kernel]), streams
        assert set(roots("device").values()) == {"[GPU0 (right)]"}, roots("device")
        assert all(re.fullmatch(r"trainer \(\d+\)", root)
                   for root in roots("thread").values()), roots("thread")
        trace = json.loads(run([args.merge, data, "--quiet", "--chrome", "-"]))
        names = {event["args"]["name"] for event in trace["traceEvents"]
                 if event["name"] in ("thread_name", "process_name")}
        for wanted in (r"context \d+ stream \d+ default", r"context \d+ stream \d+ köpien;1",
                       r"context \d+ stream \d+ compute", r"context \d+ stream \d+",
                       r"GPU 0 right .*", "trainer"):
            assert any(re.fullmatch(wanted, name) for name in names), (wanted, names)
        run([args.merge, data, "--quiet", "--perfetto", os.path.join(folder, "trace")])
        with open(os.path.join(folder, "trace"), "rb") as file:
            names = file.read().decode("utf-8", "replace")
        for wanted in (r"stream \d+ default", r"stream \d+ köpien;1", "GPU 0 right ", "trainer"):
            assert re.search(wanted, names), wanted
        path = os.path.join(folder, "run.db")
        run([args.merge, data, "--quiet", "--sqlite", path])
        with contextlib.closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT nvtx_name FROM device").fetchall() == [("right",)]
            streams = database.execute("SELECT sh.text, s.nvtx_name FROM gpu_work w "
                                       "JOIN stream s ON s.id = w.stream_id "
                                       "JOIN shape h ON h.id = w.shape_id "
                                       "JOIN name sh ON sh.id = h.name_id").fetchall()
        assert dict(streams) == {"on_default": "default", "on_copies": "köpien;1",
                                 "on_compute": "compute", "on_nameless": None}, streams
        path = os.path.join(folder, "report.html")
        if args.html:
            run([args.merge, data, "--quiet", "--html", path])
            page = page_data(path)
            assert all(name.startswith("GPU 0 right ") for name in page["devices"]), page["devices"]
            names = {stream.get("name") for stream in page["events"]["streams"]}
            assert names == {"default", "köpien;1", "compute", None}, names
    # A process has the name of the script that its interpreter runs.
    summary = json.loads(run([args.merge, args.trace, "--quiet", "--summary", "-"]))
    (process,) = summary["processes"]
    assert process["title"] == "pytorch_train.py", process["title"]
    assert process["label"].startswith("pytorch_train.py ("), process["label"]
    trace = json.loads(run([args.merge, args.trace, "--quiet", "--chrome", "-"]))
    names = {event["args"]["name"] for event in trace["traceEvents"]
             if event["name"] == "process_name"}
    assert any(name.startswith("pytorch_train.py") for name in names), names
    print("all names are there")


if __name__ == "__main__":
    sys.exit(main())
