#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a killed process loses none of its launches.

Kills the launcher with SIGKILL at random times, recovers its log, and compares it with a ledger
that the launcher keeps in a shared mapping. Every launch that returned must be in the log once.
Its kernel must be there too, unless it ran within the last half second.

To run it by hand: --kills 1000, or, without --simgpu, on a real GPU.
"""

import argparse
import collections
import glob
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ENTRY = struct.Struct("<I4s")
PAGE_HEAD = struct.Struct("<II")
LEDGER_ENTRIES = 1 << 20
PAGE_BYTES = PAGE_HEAD.size + ENTRY.size * LEDGER_ENTRIES

LAUNCH_CLASSES = (1, 2)
OPEN_CALLS_MAX = 1  # per thread: launches do not nest
KERNELS_LOST_NS = 500_000_000
CUT_LOG_BYTES = 8192  # truncate only logs of at least this size
UNNAMED = "[unnamed]"


def fail(message):
    raise AssertionError(message)


def run(command, statuses=(0,), **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode not in statuses:
        fail(f"{command} exited {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done


def read_ledger(path):
    """By tid: (blocks, path) of each launch that returned."""
    launches = {}
    with open(path, "rb") as file:
        data = file.read()
    for at in range(0, len(data), PAGE_BYTES):
        tid, count = PAGE_HEAD.unpack_from(data, at)
        entries = data[at + PAGE_HEAD.size:at + PAGE_HEAD.size + count * ENTRY.size]
        if tid:
            launches[tid] = [(blocks, name.split(b"\0")[0].decode())
                             for blocks, name in ENTRY.iter_unpack(entries)]
    return launches


def read_log(tool, log):
    tables = collections.defaultdict(list)
    for line in run([tool, "--format", "json", log]).stdout.splitlines():
        row = json.loads(line)
        if row.get("record") == "row":
            tables[row["kind"]].append(row)
    return tables


def start(args, case, folder, ledger):
    """Starts the process to wait for. Its launcher, which may be a child, is killed."""
    threads, streams, sync_every, kernel_ns, by_record = case
    data = os.path.join(folder, "data")
    program = [args.launcher, str(threads), str(streams), str(LEDGER_ENTRIES),
               str(random.randrange(1 << 30)), str(sync_every), ledger]
    environment = dict(os.environ, XTRACE_SIMGPU_KERNEL_NS=kernel_ns)
    if by_record:
        simulate = ["--simulate"] if args.simgpu else []
        program = [args.xtrace, "record", *simulate, "-o", data, "--", *program]
    else:
        environment.update(LD_PRELOAD=args.inject, XTRACE_DATA=data)
        if args.simgpu:
            environment.update(LD_LIBRARY_PATH=args.simgpu,
                               XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"))
    return subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def wait_for_log(data, process):
    for _ in range(2000):
        logs = glob.glob(os.path.join(data, "*.xtr"))
        if logs:
            return logs[0]
        if process.poll() is not None:
            break
        time.sleep(0.005)
    fail("no log: " + process.stderr.read())


def check_launches(tables, ledger):
    """The log has each thread's launches once, in the order of the ledger."""
    tids = {row["id"]: row["tid"] for row in tables["THREAD"]}
    launching = {row["id"] for row in tables["API"] if row["class"] in LAUNCH_CLASSES}
    calls = collections.defaultdict(list)
    for row in tables["CALL"]:
        if row["api"] in launching:
            calls[tids[row["thread"]]].append(row)
    kernels = collections.defaultdict(list)
    strings = {row["id"]: row["text"] for row in tables["STRING"]}
    shapes = {row["id"]: (row["grid_x"], strings[row["name"]]) for row in tables["SHAPE"]}
    for row in tables["KERNEL"]:
        kernels[row["correlation"]].append(row)
    correlations = collections.Counter(row["correlation"] for rows in calls.values()
                                       for row in rows)
    if correlations and max(correlations.values()) > 1:
        fail("a launch is in the log more than once")
    last_ns = max((row["enter_ns"] + row["duration_ns"] for row in tables["CALL"]), default=0)
    missing, unnamed = 0, 0
    for tid, launches in ledger.items():
        rows = calls[tid]
        if not len(launches) <= len(rows) <= len(launches) + OPEN_CALLS_MAX:
            fail(f"thread {tid}: {len(launches)} launches, {len(rows)} in the log")
        for (blocks, path), row in zip(launches, rows):
            ran = kernels[row["correlation"]]
            if len(ran) > 1:
                fail(f"launch {row['correlation']} has {len(ran)} kernels")
            if not ran:
                missing += 1
                if row["enter_ns"] + row["duration_ns"] < last_ns - KERNELS_LOST_NS:
                    fail(f"the kernel of launch {row['correlation']} is lost")
                continue
            grid_x, name = shapes[ran[0]["shape"]]
            unnamed += name == UNNAMED
            if grid_x != blocks or name not in ("k_" + path, UNNAMED):
                fail(f"launch {row['correlation']} of {path}, {blocks} blocks: {name}, {grid_x}")
            if row["stack"] == 0:
                fail(f"launch {row['correlation']} has no stack")
    return sum(map(len, ledger.values())), missing, unnamed


def check_paths(args, log, tables):
    """Folded stacks: each kernel's name gives its launch path. The total is exact to the
    nanosecond."""
    merged = run([args.merge, log, "--folded", "-"], statuses=(0, 1))
    total = 0
    for line in merged.stdout.splitlines():
        frames, weight = line.rsplit(" ", 1)
        frames = frames.split(";")
        name = frames[-1].removeprefix("[GPU_Kernel]")
        path = "".join(f[-1] for f in frames if re.fullmatch(r"path_[abc]", f))
        if name not in ("k_" + path, UNNAMED):
            fail("wrong owner: " + line)
        total += int(weight)
    if total != sum(row["duration_ns"] for row in tables["KERNEL"]):
        fail("the weights are not the sum of the kernels")


def check_trust(args, log, tables, missing):
    """Each launch without a kernel counts as a loss, and nothing else does."""
    summary = log + ".json"
    run([args.merge, log, "--quiet", "--summary", summary], statuses=(0, 1))
    with open(summary, encoding="utf-8") as file:
        trust = json.load(file)["trust"]
    os.remove(summary)
    reported = sum(trust["losses"].get(name, 0)
                   for name in ("recovered.unfinished", "kernels.missing"))
    account = {row["name"]: row["value"] for row in tables["ACCOUNT"]}
    # A launch that had not returned may have no kernel either.
    if not missing <= reported <= missing + account.get("recovered.open_calls", 0):
        fail(f"{missing} kernels are missing, {reported} are reported: {trust}")
    if reported and trust["word"] == "complete":
        fail("a log with missing kernels is called complete")


def trust_line(args, log, statuses):
    text = run([args.merge, log, "--quiet", "--text", "-", "--all"], statuses=statuses).stdout
    return re.search(r"^Trust: .*", text, re.M).group(0)


def check_cut_log(args, log, folder):
    """A log without its end or second half is damaged, with and without a crash buffer."""
    for has_spool in (False, True):
        copy = os.path.join(folder, f"cut{has_spool:d}.xtr")
        shutil.copy(log, copy)
        if has_spool:
            shutil.copy(log + ".spool", copy + ".spool")
            os.truncate(copy, os.path.getsize(copy) // 2)
        for _ in range(2):
            if not trust_line(args, copy, (1,)).startswith("Trust: damaged"):
                fail(f"{copy} is not called damaged")
            embedded = run([args.merge, copy, "--embed-symbols"], statuses=(0, 1))
            if embedded.returncode != 1:
                fail(f"symbols of the damaged {copy} were embedded with status 0")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()


def check_empty(args, log, said):
    """The process was killed before it wrote the header. said: messages of xtrace record."""
    if said is not None and "1 process ended before recording began" not in said:
        fail("xtrace record: " + said)
    merged = run([args.merge, log], statuses=(2,))
    if "is empty" not in merged.stderr or os.path.exists(log + ".spool"):
        fail(merged.stderr)
    return 0, 0, 0


def check_kill(args, case, after_s, folder):
    ledger_path = os.path.join(folder, "ledger")
    data = os.path.join(folder, "data")
    process = start(args, case, folder, ledger_path)
    log = wait_for_log(data, process)
    time.sleep(after_s)
    os.kill(int(re.search(r"\.(\d+)\.xtr$", log).group(1)), 9)
    said = process.communicate()[1]
    if not os.path.getsize(log):
        return check_empty(args, log, said if case[-1] else None)
    if case[-1]:
        if process.returncode != 137 or "1 process was killed" not in said:
            fail(f"xtrace record: {process.returncode}: {said}")
    elif os.path.exists(log + ".spool"):
        kept = digest(log)
        if os.path.getsize(log) > CUT_LOG_BYTES and not random.randrange(4):
            check_cut_log(args, log, folder)
        left = run([args.merge, log, "--no-recover", "--quiet"], statuses=(1,))
        if digest(log) != kept or not os.path.exists(log + ".spool"):
            fail("--no-recover changed something: " + left.stderr)
        recovered = run([args.merge, log, "--folded", os.devnull], statuses=(0, 1))
        if "its process was killed" not in recovered.stderr:
            fail("nothing was recovered: " + recovered.stderr)
        # A process that had hardly begun has little to show, which a message says. A call may not
        # have been committed to its ring yet, which a message says too.
        said = r"no launches|launched kernels are missing|process ended\)|was killed\)"
        if recovered.returncode and not re.search(said, recovered.stderr):
            fail(recovered.stderr)
    if os.path.exists(log + ".spool"):
        fail("the spool is still there")
    run([args.dump, "--check", log])
    kept = digest(log)
    tables = read_log(args.dump, log)
    counts = check_launches(tables, read_ledger(ledger_path))
    if tables["KERNEL"]:
        check_paths(args, log, tables)
        check_trust(args, log, tables, counts[1])
    if digest(log) != kept:
        fail("a recovered log was changed again")
    return counts


def random_case():
    threads = random.choice((1, 2, 3, 4, 8))
    sync_every, kernel_ns = random.choice(((1, "1000:20000"), (5, "20000:200000"),
                                           (20, "1000:100000"), (50, "100000:400000")))
    return threads, random.randint(1, 4), sync_every, kernel_ns, random.random() < 0.25


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "inject", "simgpu", "dump", "launcher"):
        parser.add_argument("--" + name, required=name != "simgpu")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print("seed", args.seed)
    random.seed(args.seed)
    total = collections.Counter()
    for number in range(args.kills):
        case, after_s = random_case(), random.choice((0.02, 0.2, 0.6, 1.2)) * random.random()
        with tempfile.TemporaryDirectory() as folder:
            try:
                launches, missing, unnamed = check_kill(args, case, after_s, folder)
            except AssertionError as error:
                sys.exit(f"kill {number}, {case} after {after_s:.3f} s: {error}")
        total.update(launches=launches, missing=missing, unnamed=unnamed)
        print(f"{case} after {after_s:.3f} s: {launches} launches, {missing} kernels not over, "
              f"{unnamed} unnamed", flush=True)
    print(f"{args.kills} kills: {total['launches']} launches, none lost, none doubled; "
          f"{total['missing']} kernels not over or lost, {total['unnamed']} without a name")
    if args.kills >= 40 and not total["launches"]:
        sys.exit("nothing was launched")


if __name__ == "__main__":
    main()
