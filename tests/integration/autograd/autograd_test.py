#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records training on the stand-in for PyTorch and compares each call path with the truth."""

import argparse
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

import check

HERE = os.path.dirname(os.path.abspath(__file__))

# Tokens that must be among the paths of each case.
MODEL = ("b$AddmmBackward0", "b$MulBackward0", "b$ReluBackward0", "b$AccumulateGrad")
CUSTOM = ("b$CubeBackward", "v$IdentityBackward", "b$ReluBackward0", "b$AccumulateGrad")
CPP = ("b$AddmmBackward0", "b$CppNode%Square%", "v$SliceBackward0")
CASES = {
    "plain": MODEL,
    "views": ("v$SliceBackward0", "b$MulBackward0"),
    "unknown": ("u$SliceBackward0", "b$MulBackward0"),
    "copy_slices": ("v$CopySlices", "b$MulBackward0"),
    "threads": (*MODEL[:3], "v$AccumulateGrad", "b$MmBackward0", "v$SliceBackward0"),
    "devices": (*MODEL[:3], "v$AccumulateGrad", "b$MmBackward0", "v$SliceBackward0"),
    "deep": MODEL,
    "quiet": MODEL[:3],
    "same_thread": (*MODEL, *CUSTOM),
    "custom": CUSTOM,
    "recompute": ("r", "b$MulBackward0", "b$AccumulateGrad"),
    "reentrant": ("r", "b$MulBackward0", "b$AccumulateGrad"),
    "recompute_same_thread": ("r", "b$MulBackward0", "b$AccumulateGrad"),
    "double_backward": ("b$ThresholdBackwardBackward0", "b$MulBackward0", "v$SliceBackward0"),
    "retain_graph": MODEL,
    "hooks": MODEL,
    "graph": (*MODEL, "r"),
    # The root that runs last adds both gradients. The sum launches nothing else.
    "several_roots": ("b$ReluBackward0", "b$MulBackward0"),
}
CPP_CASES = {
    "cpp": (*CPP, "u$AccumulateGrad"),
    "cpp_threads": (*CPP, "u$AccumulateGrad"),
    "cpp_same_thread": (*CPP, "b$AccumulateGrad"),
}

# Libraries whose state cannot be read: what the log says.
WRONG = {
    "moved": "unknown layout",
    "swapped": "unknown layout",
    "no_node": "does not export _ZN5torch8autograd16get_current_nodeEv",
    "garbage": "unknown layout",
    "unmapped": "unknown layout",
}
WRONG_CASES = ("plain", "threads", "custom", "recompute")


def run(command, accepted=(0,), **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode not in accepted:
        sys.exit("%s exited %s\n%s\n%s" % (command, done.returncode, done.stdout, done.stderr))
    return done


def record(args, folder, case, variant="right", **variables):
    """Records a case. Returns the folder of its log."""
    data = os.path.join(folder, case)
    library = os.path.join(args.standin, variant, "lib", "libtorch_cpu.so")
    environment = dict(os.environ, STANDIN=library, PYTHONPATH=HERE, PYTHONDONTWRITEBYTECODE="1",
                       XTRACE_SIMGPU_DEVICES="2", **variables)
    program = [args.program] if case in CPP_CASES else [sys.executable,
                                                        os.path.join(HERE, "cases.py")]
    done = run([args.xtrace, "record", "--simulate", "-o", data, "--", *program, case],
               env=environment)
    assert ", 0 lost" in done.stderr, done.stderr
    return data


def fold(args, data, *options, accepted=(0,)):
    return run([args.merge, "--folded", "-", *options, data], accepted).stdout.splitlines()


def test_paths(args, folder, case, expected):
    labels, faults = check.check(fold(args, record(args, folder, case)))
    missing = [label for label in expected if not labels[label]]
    assert not missing, "no path has %s: %s" % (missing, dict(labels))
    assert not faults, "\n".join(faults)
    return dict(labels)


def labelled(lines):
    """The lines that claim to know a forward path."""
    return [line for line in lines if any(
        (check.token_of(frame) or "")[:2] in ("b$", "v$") for frame in line.split(";"))]


def kernel_of(line):
    return line.rsplit(" ", 1)[0].split(";")[-1]


def meta(args, data):
    log, = (name for name in os.listdir(data) if name.endswith(".xtr"))
    rows = map(json.loads, run([args.dump, "--format", "json", os.path.join(data, log)])
               .stdout.splitlines())
    return {row["key"]: row["value"] for row in rows if row.get("kind") == "META" and "key" in row}


def test_wrong(args, folder, variant, reason):
    """No crash, no wrong line, and a reason in the log and in the summary."""
    for case in WRONG_CASES:
        data = record(args, folder, case, variant)
        lines = labelled(fold(args, data, accepted=(0, 1)))
        _, faults = check.check(lines)
        assert not faults, "\n".join(faults)
        assert reason in meta(args, data).get("torch.missing", ""), (case, meta(args, data))
        # The text is wrapped, and where depends on the length of the log's path.
        summary = " ".join(run([args.merge, data], (0, 1)).stdout.split())
        assert "PyTorch" in summary and reason in summary, summary
    return "%d cases" % len(WRONG_CASES)


def test_no_task(args, folder):
    """Old versions of PyTorch do not number the calls of backward()."""
    for case in WRONG_CASES:
        labels, faults = check.check(fold(args, record(args, folder, case, "no_task")))
        # If several threads are in backward(), the caller is not always known.
        wrong = [fault for fault in faults if "b$AccumulateGrad" not in fault]
        assert labels and not wrong, "\n".join(wrong)
    return "%d cases" % len(WRONG_CASES)


def test_engine(args, folder):
    """--backward engine shows the paths of the launches themselves, and both shows both."""
    data = record(args, folder, "plain")
    forward, engine, both = (fold(args, data, "--backward", shown)
                             for shown in ("forward", "engine", "both"))
    assert labelled(forward) and not labelled(engine)
    kernels = {kernel_of(line) for line in labelled(forward)}
    backward = [line for line in engine if kernel_of(line) in kernels]
    assert backward and all(check.ENGINE in line for line in backward), backward
    assert all("at::_ops::" in line.split("[backward] ")[1] for line in labelled(both)), both
    for one, other in zip(sorted(labelled(forward)), sorted(labelled(both))):
        label = next(frame for frame in one.split(";") if frame.startswith("[backward]"))
        before = one.split(label)[0] + label
        assert other.startswith(before), (one, other)
    return "%d paths" % len(both)


def test_off(args, folder):
    """XTRACE_AUTOGRAD=off records nothing of autograd."""
    data = record(args, folder, "plain", XTRACE_AUTOGRAD="off")
    lines = fold(args, data)
    assert any(check.ENGINE in line for line in lines) and not labelled(lines), lines
    log, = (name for name in os.listdir(data) if name.endswith(".xtr"))
    rows = run([args.dump, "--kind", "AUTOGRAD", os.path.join(data, log)]).stdout
    assert "AUTOGRAD" not in rows, rows
    return "%d paths" % len(lines)


def truth_of(tool, places, data, scratch):
    """The truth in the form of tests/gpu/training.py, from the names of kernels."""
    list(tool.work_of_nodes(places, data, scratch))  # makes the database
    database = sqlite3.connect(os.path.join(scratch, "events.sqlite"))
    (pid, log), truth = database.execute("SELECT pid, log FROM process").fetchone(), {}
    nodes = tool.nodes_of_calls(places, log)
    script = os.path.join(HERE, "cases.py")
    for correlation, kernel in database.execute("SELECT correlation, name FROM work"):
        *parts, _ = check.parts_of(kernel.partition("$$")[2].split("."))
        if correlation in nodes and parts:
            truth[(pid, *nodes[correlation])] = {
                "name": parts[-1].label[2:],
                "frames": [[(script, int(line)) for line in part.places] for part in parts]}
    return truth


def test_truth(args, folder):
    """tests/gpu/forward_lines.py accepts right lines and rejects others."""
    places = argparse.Namespace(merge=args.merge, dump=args.dump)
    spec = importlib.util.spec_from_file_location("forward_lines", args.tool)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    compared = 0
    for case in ("plain", "views", "double_backward", "unknown"):
        data = record(args, folder, case)
        truth = truth_of(tool, places, data, folder)
        works = list(tool.work_of_nodes(places, data, folder))
        found = tool.compare(works, truth)
        assert found.right and not found.wrong and not found.far and not found.unknown, found
        assert found.near or case in ("plain", "unknown"), found
        assert bool(found.none) == (case == "unknown"), found
        for row in truth.values():
            row["frames"] = [[(file, line + 1) for file, line in level] for level in row["frames"]]
        moved = tool.compare(works, truth)
        assert moved.wrong == found.right and moved.far == found.near, moved
        for row in truth.values():
            row["name"] = "OtherBackward0"
        assert tool.compare(works, truth).wrong == found.right
        assert tool.compare(works, {}).unknown == len(works)
        compared += len(works)
    return "%d kernels" % compared


def tests():
    for case, expected in {**CASES, **CPP_CASES}.items():
        yield case, lambda args, folder, c=case, e=expected: test_paths(args, folder, c, e)
    for variant, reason in WRONG.items():
        yield variant, lambda args, folder, v=variant, r=reason: test_wrong(args, folder, v, r)
    yield "no_task", test_no_task
    yield "engine", test_engine
    yield "off", test_off
    yield "truth", test_truth


def main():
    known = dict(tests())
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "dump", "standin", "program", "tool"):
        parser.add_argument("--" + name)
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("cases", nargs="*", choices=[*known, []])
    args = parser.parse_args()
    if args.list:
        print(*known)
        return
    for case in args.cases:
        with tempfile.TemporaryDirectory() as folder:
            print("%s: %s" % (case, known[case](args, folder)), flush=True)


if __name__ == "__main__":
    main()
