#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the paths of modules in call stacks with those that Python finds.

Runs models of a stand-in for PyTorch on the simulated GPU. Options are those of python_test.py.
"""

import collections
import json
import os
import re
import tempfile

import python_test as base

MARK = "[module] "
TRACES = os.path.join(base.HERE, "..", "..", "..", "samples", "traces")
CALL = "_wrapped_call_impl"
CASES = ("loops", "hooks", "shared", "replaced", "reused", "renamed", "threads", "bare", "weird", "deep")


def is_module(frame):
    return frame[0].startswith(MARK) and not frame[1]


def check_launch(log, entry):
    """Each module frame is directly outside its call. The others are Python's frames."""
    stack = log.stacks[entry["number"]]
    frames = [log.frames[number] for number in stack["python"]]
    base.check_frames(log, entry, dict(stack, python=[
        number for number, frame in zip(stack["python"], frames) if not is_module(frame)]))
    for i, frame in enumerate(frames):
        if is_module(frame):
            assert frames[i - 1][0].split(".")[-1] == CALL, frames
            assert stack["places"][i] == stack["places"][i - 1], stack
            assert frame[2] == 0, frame
    got = [frame[0][len(MARK):] for frame in reversed(frames) if is_module(frame)]
    assert got == entry["modules"], "launch %d:\n wanted %s\n got    %s" % (
        entry["number"], entry["modules"], got)


def check(args, folder, name, **environment):
    log, entries, _ = base.record(args, folder, ["modules.py", name], options=["--modules"],
                                  **environment)
    assert entries
    for entry in entries:
        check_launch(log, entry)
    for key in ("stacks.mismatched", "stacks.transient", "python.unreadable", "python.unplaced",
                "python.unknown"):
        assert log.account[key] == 0, (key, log.account)
    return log, entries


def test_case(args, folder, name):
    # Without memory for a ledger, freed objects are more often made again at their addresses.
    log, entries = check(args, folder, name, LEDGER_LIVE="1")
    assert log.account["stacks.hits"] > 0
    return "%d launches, %d stacks, %d hits, %d paths" % (
        len(entries), log.account["stacks.walked"], log.account["stacks.hits"],
        len({tuple(entry["modules"]) for entry in entries}))


def test_many(args, folder):
    """More modules than the cache keeps: memory stays bounded and names are right."""
    log, entries = check(args, folder, "many", XTRACE_AUDIT="0")
    assert len({entry["modules"][-1] for entry in entries}) > 2000
    return "%d launches, %d hits, %d MiB" % (
        len(entries), log.account["stacks.hits"], log.account["tracer.memory_bytes"] >> 20)


def test_changing(args, folder):
    """While another thread changes the model, every name is one that a module had."""
    log, entries, _ = base.record(args, folder, ["modules.py", "changing"])
    names = {frame[0][len(MARK):] for frame in log.frames.values() if is_module(frame)}
    wanted = re.compile(r"(Model|Layer|embed|(layers\.)?(\d|more\d+|<Layer>|<Linear>))?"
                        r"(^|\.)?(self_attn(\.(q_proj|k_proj|out))?|mlp(\.\d)?)?")
    assert names and all(wanted.fullmatch(name) for name in names), names
    assert log.account["calls.written"] >= len(entries) > 0
    return "%d launches, %d stacks, %d names" % (
        len(entries), log.account["stacks.walked"], len(names))


def test_killed(args, folder):
    """Recovery from the crash buffer keeps the frames of modules."""
    log, entries, _ = base.record(args, folder, ["modules.py", "killed"], status=128 + 9,
                                  LEDGER_LIVE="1")
    stacks = {row["id"]: row for row in log.tables["STACK"]}
    names = [[log.frames[number][0] for number in reversed(stacks[row["stack"]]["python"])
              if is_module(log.frames[number])]
             for row in log.tables["CALL"] if row["stack"] in stacks]
    for entry in entries:
        assert [MARK + path for path in entry["modules"]] in names, entry
    assert log.account["recovered.calls"] > 0
    return "%d launches, %d calls recovered" % (len(entries), log.account["recovered.calls"])


def test_off(args, folder):
    """No module is named if they are turned off, or without Python frames. The option wins."""
    for options, variable, wanted in (
            (["--no-modules"], "1", False), ([], "0", False), ([], "off", False),
            (["--modules", "--python", "off"], "1", False), (["--modules"], "off", True)):
        with tempfile.TemporaryDirectory(dir=folder) as one:
            log, entries, _ = base.record(args, one, ["modules.py", "loops"], options=options,
                                          XTRACE_MODULES=variable)
        named = any(is_module(frame) for frame in log.frames.values())
        assert entries and named == wanted, (options, variable)
    return "%d launches" % len(entries)


def test_shown(args, folder):
    """The merge shows the path outside the frame of the call."""
    base.record(args, folder, ["modules.py", "loops"])
    for mode in ("mixed", "only", "full"):
        lines = base.fold(args, folder, mode)
        line = next(line for line in lines if MARK + "layers.3.self_attn.q_proj" in line)
        shown = [frame for frame in line if frame.startswith(MARK)]
        assert shown == [MARK + path for path in (
            "Model", "layers.3", "layers.3.self_attn", "layers.3.self_attn.q_proj")], line
        assert CALL in line[line.index(shown[-1]) + 1], line
    assert not any(MARK in frame for line in base.fold(args, folder, "off") for frame in line)
    return "%d paths" % len(lines)


def sums_of(lines):
    """GPU time by module from folded stacks: own time by pass, and time with submodules."""
    own, whole = collections.Counter(), collections.Counter()
    for line in lines:
        path, ns = line.rsplit(" ", 1)
        modules, done = [], "forward"
        for frame in path.split(";"):
            if frame.startswith(MARK):
                modules.append(frame[len(MARK):])
            elif frame.startswith("[backward"):
                done = "backward"
        for module in set(modules):
            whole[module] += int(ns)
        if modules:
            own[modules[-1], done] += int(ns)
    return own, whole


def check_table(args, data):
    """The tables have the sums of the folded stacks, and each layer is in one row of `modules`."""
    own, whole = sums_of(base.run([args.merge, "-q", "--folded", "-", data]).stdout.splitlines())
    summary = json.loads(base.run([args.merge, "-q", "--summary", "-", data]).stdout)
    folded, layers = summary["modules"]["rows"], summary["module_layers"]["rows"]
    assert {row["layer"]: row["gpu_time_ns"] for row in layers} == whole
    for row in layers:
        assert row["own_forward_ns"] == own[row["layer"], "forward"], row
        assert row["own_backward_ns"] == own[row["layer"], "backward"], row
    assert sum(row["own_gpu_time_ns"] for row in folded) == sum(own.values()) > 0
    for row in folded:
        inner = [layer for layer in layers if layer["module"] == row["module"]]
        assert len(inner) == row["layer_count"], row
        for key in ("own_gpu_time_ns", "own_count", "forward_ns", "backward_ns", "count"):
            assert sum(layer[key] for layer in inner) == row[key], (key, row)
    return folded


def test_table(args, folder):
    """GPU time by module, also of the backward pass of a real model."""
    base.record(args, folder, ["modules.py", "loops"])
    rows = check_table(args, os.path.join(folder, "data"))
    assert {row["module"]: row["layer_count"] for row in rows}["layers.*.self_attn.q_proj"] == 6
    rows = check_table(args, os.path.join(TRACES, "h200-gpt2.xtr"))
    assert {row["module"] for row in rows} >= {"transformer.h.*.attn.c_attn", "GPT2LMHeadModel"}
    assert sum(row["own_backward_ns"] for row in rows) > 0
    return "%d modules" % len(rows)


TESTS = {"table": test_table, "shown": test_shown, "off": test_off, "many": test_many, "changing": test_changing,
         "killed": test_killed}


def main():
    args = base.parse([*TESTS, *CASES])
    for name in (*TESTS, *CASES):
        if args.only and name not in args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            said = TESTS[name](args, folder) if name in TESTS else test_case(args, folder, name)
            print("%s: %s" % (name, said), flush=True)


if __name__ == "__main__":
    main()
