#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a Chrome trace: "check_chrome.py TRACE [FOLDED]".

- It is valid JSON in valid UTF-8.
- Every event is on a process and a track that have names, and the spans of a track nest.
- Every arrow has one start, at an API call, and one end, at a kernel, copy or memset.
- Stack frames that are referred to exist.
- With FOLDED, the times equal the sum of the folded stacks.

Prints a summary of the content.
"""
import collections
import decimal
import json
import sys

WORK = ("kernel", "memcpy", "memset")


def load(path):
    with open(path, encoding="utf-8", errors="strict") as file:
        return json.load(file, parse_float=decimal.Decimal)


def check_names(events):
    processes = {e["pid"] for e in events if e["name"] == "process_name"}
    tracks = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    for event in events:
        if event["ph"] == "M":
            continue
        assert event["pid"] in processes, f"no process name: {event}"
        if event["ph"] == "C":
            continue
        assert (event["pid"], event["tid"]) in tracks, f"no track name: {event}"


def spans_by_track(events):
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
    return tracks


def check_nesting(tracks):
    for spans in tracks.values():
        open_ends = []
        for span in sorted(spans, key=lambda s: (s["ts"], -s["dur"])):
            while open_ends and open_ends[-1] <= span["ts"]:
                open_ends.pop()
            end = span["ts"] + span["dur"]
            assert not open_ends or end <= open_ends[-1], f"spans do not nest: {span}"
            open_ends.append(end)


def check_arrows(events):
    starts = {(e["cat"], e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "X"}
    ends = {"s": set(), "f": set()}
    for event in events:
        if event["ph"] not in ends:
            continue
        assert event["id"] not in ends[event["ph"]], f"arrow has two ends: {event}"
        ends[event["ph"]].add(event["id"])
        categories = ("api",) if event["ph"] == "s" else WORK
        place = (event["pid"], event["tid"], event["ts"])
        assert any((c, *place) in starts for c in categories), f"arrow in the void: {event}"
    assert ends["s"] == ends["f"], "arrows with one end"
    return len(ends["s"])


def check_frames(trace, events):
    frames = trace["stackFrames"]
    for frame in frames.values():
        assert frame.get("parent", next(iter(frames))) in frames, f"no parent: {frame}"
    for event in events:
        assert "sf" not in event or str(event["sf"]) in frames, f"no frame: {event}"


def folded_sum(path):
    with open(path, encoding="utf-8", errors="strict") as file:
        return sum(int(line.rsplit(" ", 1)[1]) for line in file)


def main():
    trace = load(sys.argv[1])
    events = trace["traceEvents"]
    tracks = spans_by_track(events)
    check_names(events)
    check_nesting(tracks)
    arrows = check_arrows(events)
    check_frames(trace, events)
    work = [e for e in events if e.get("cat") in WORK]
    calls = [e for e in events if e.get("cat") == "api"]
    total_ns = sum(e["dur"] for e in work) * 1000
    if len(sys.argv) > 2:
        assert total_ns == folded_sum(sys.argv[2]), f"{total_ns} ns in the trace"
    starts = [e["id"] for e in events if e["ph"] == "b"]
    ends = [e["id"] for e in events if e["ph"] == "e"]
    assert set(ends) <= set(starts) and len(ends) == len(set(ends)), "asynchronous ends alone"
    print(f"{len(calls)} calls, {len(work)} kernels, copies, memsets of {int(total_ns)} ns, {arrows} arrows")


main()
