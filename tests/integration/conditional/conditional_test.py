#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Graphs with conditional nodes under xtrace, and frees of memory that is from no pool. The simulated
GPU fails as CUPTI does on a real one: if memory is recorded at such a free, if more kernels of
graphs are recorded one by one than fit into a buffer on the device, or if graphs are recorded as a
whole at the wrong time.

Usage: conditional_test.py --xtrace FILE --dump FILE --program FILE PART
"""
import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

MANY = "20001"  # iterations, with 20 kernels each: more than the buffer holds
WHOLE = 0xFFFFFFFF
UNSAFE = "CUPTI %s could make this program fail"
KINDS = ("while", "nested", "if", "switch", "child", "plain")


def start_recorded(trace, options, arguments, environment):
    return subprocess.Popen(
        [args.xtrace, "record", "--simulate", "-o", trace, *options, "--", args.program,
         *arguments], env={**os.environ, "XTRACE_SIMGPU_KERNEL_NS": "100:200", **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_of(process):
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_recorded(trace, options, arguments, environment):
    with start_recorded(trace, options, arguments, environment) as process:
        return end_of(process)


def record(options, arguments, **environment):
    """Records the program. Returns its status, its output, and the rows of the log."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        done = run_recorded(trace, options, arguments, environment)
        return done, rows_of(log_in(trace))


def record_windows(options, arguments, **environment):
    """The same, but armed, and started and stopped again and again until the program ends."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        with start_recorded(trace, options, arguments, environment) as process:
            while process.poll() is None:
                run_command("start", trace)
                time.sleep(0.02)
                run_command("stop", trace)
            return end_of(process), rows_of(log_in(trace))


def switches_of(rows):
    return [(int(row["time_ns"]), row["on"] == "1") for row in rows if row["kind"] == "SWITCH"]


def log_in(folder):
    found, = [name for name in os.listdir(folder) if name.endswith(".xtr")]
    return os.path.join(folder, found)


def rows_of(log):
    shown = subprocess.run([args.dump, log], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [parse(line) for line in shown.splitlines()]


def parse(line):
    kind, *fields = line.split("\t")
    return dict(field.split("=", 1) for field in fields if "=" in field) | {"kind": kind}


def kernels(rows):
    """The work of whole graphs, and all other kernels."""
    whole, others = [], []
    for row in rows:
        if row["kind"] == "KERNEL":
            is_whole = int(row["graph_node"]) & WHOLE == WHOLE
            (whole if is_whole else others).append(row)
    return whole, others


def expect(condition, what):
    if not condition:
        sys.exit("expected: " + what)


def expect_success(done, launches):
    expect(done.returncode == 0, "status 0, not %d:\n%s" % (done.returncode, done.stderr))
    expect(done.stdout == "ok %d\n" % launches, "the output of the program, not " + done.stdout)


def test_kinds():
    """No kind of graph fails, and each launch of a conditional one is one row."""
    for kind in KINDS:
        done, rows = record([], [kind, MANY, "2", "20"])
        whole, others = kernels(rows)
        expect_success(done, 4)
        if kind == "plain":
            expect(not whole and len(others) == 4 * 22, "kernels one by one")
        else:
            expect(len(whole) == 4 and not others, "4 whole graphs of kind %s" % kind)


def test_modes():
    """Nor does any way of recording."""
    for options in (["--api", "all"], ["--api", "launch"], ["--flight-recorder", "10s"],
                    ["--max-size", "256K"]):
        done, rows = record(options, ["while", MANY, "2", "20"])
        expect_success(done, 4)
        expect(len(kernels(rows)[0]) == 4, "4 whole graphs with " + " ".join(options))


def test_windows():
    """Recording that starts late and stops. After a whole graph, CUPTI may not stop."""
    for option in ("--armed", "--armed=graphs"):
        done, rows = record_windows([option], ["mixed", "101", "2000", "4", "2"])
        expect_success(done, 12000)
        expect("not recorded" not in done.stderr, "records, not " + done.stderr)
        expect(len(switches_of(rows)) > 4, "several windows")
    done, rows = record_windows(["--armed=graphs"], ["pauses", "101", "15", "4"])
    expect_success(done, 30)
    starts = [time_ns for time_ns, is_on in switches_of(rows) if is_on]
    whole = [int(row["start_ns"]) for row in kernels(rows)[0]]
    windows = {sum(start_ns < time_ns for start_ns in starts) for time_ns in whole}
    expect(len(windows) > 1, "whole graphs in several windows, not %d" % len(windows))


def test_threads():
    """Other threads launch ordinary graphs and kernels meanwhile. All of these are recorded."""
    done, rows = record([], ["mixed", "2001", "100", "4", "3"])
    whole, others = kernels(rows)
    expect_success(done, 800)
    expect(len(whole) == 100, "100 whole graphs, not %d" % len(whole))
    # The main thread and 3 others launch a graph of 6 kernels, the latter also single kernels.
    expect(len(others) == 4 * 100 * 6 + 3 * 100, "2,700 other kernels, not %d" % len(others))


def test_times():
    """Start, duration and launch of whole graphs are those of the simulator."""
    with tempfile.NamedTemporaryFile("r") as truth:
        done, rows = record([], ["while", "101", "5", "4"], XTRACE_SIMGPU_TRUTH=truth.name)
        expect_success(done, 10)
        expected = set()
        for line in truth:
            fields = line.split()
            if fields[0] == "graph":
                expected.add(tuple(int(fields[i]) for i in (1, 5, 6, 7)))
    got = {(int(row["correlation"]), int(row["start_ns"]),
            int(row["start_ns"]) + int(row["duration_ns"]), int(row["graph_node"]) >> 32)
           for row in kernels(rows)[0]}
    expect(got == expected and len(got) == 10, "%s, not %s" % (expected, got))
    names = {row["text"] for row in rows if row["kind"] == "STRING"}
    named = [row for row in rows if row["kind"] == "GRAPH_NODE_NAME"]
    expect({"before", "in_body", "after"} <= names and len(named) >= 6, "names of kernels")


def test_flushes():
    """CUPTI of CUDA 12 keeps the times of graphs that run for longer than the period of flushes."""
    for options, kind, launches in (([], "while", 16), ([], "pauses", 20),
                                    (["--api", "launch"], "pauses", 20)):
        with tempfile.NamedTemporaryFile("r") as report:
            iterations = "10001" if kind == "while" else "101"
            done, rows = record(options, [kind, iterations, str(launches // 2), "20"],
                                XTRACE_SIMGPU_FAULT="version:27,fail:cuptiActivityFlushAll:1000000",
                                XTRACE_SIMGPU_FAULT_REPORT=report.name,
                                XTRACE_SIMGPU_KERNEL_NS="400:400" if kind == "while" else "5:5")
            flushes = int(re.search(r"fail\S* (\d+)", report.read())[1])
        expect_success(done, launches)
        whole = kernels(rows)[0]
        expect(len(whole) == launches, "%d whole graphs, not %d" % (launches, len(whole)))
        if kind == "while":  # 80 ms each, and the program waits only for eight at once
            expect(min(int(row["duration_ns"]) for row in whole) > 80000000, "long graphs")
        else:
            expect(flushes >= launches // 4, "flushes in pauses, not %d" % flushes)


def test_node():
    """Without the precaution the program fails, so the other tests would notice."""
    done, _ = record(["--graph-detail", "node"], ["while", MANY, "2", "20"])
    expect(done.returncode == 1 and "ILLEGAL_ADDRESS" in done.stderr, "a failure")
    expect("can make the program fail (--graph-detail node)" in done.stderr, "a warning")


MANY_BUFFERS = ["mixed", "0", "100", "1000", "3"]  # kernels in graphs of several threads


def run_alone(version, arguments):
    """Starts the program on the simulated GPU. Only CUPTI of this version records kernels."""
    library = os.path.join(os.path.dirname(args.xtrace), "..", "lib", "xtrace", "simgpu")
    return subprocess.run(
        [args.program, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        check=False, env={
            **os.environ, "XTRACE_SIMGPU_FAULT": "version:" + version, "LD_LIBRARY_PATH": library,
            "XTRACE_CUPTI": os.path.join(library, "libcupti.so"), "XTRACE_BENCH_FLOOR": "kernel",
            "CUDA_INJECTION64_PATH": args.floor})


def run_threads(version, options, fault=""):
    with tempfile.TemporaryDirectory() as folder:
        done = run_recorded(os.path.join(folder, "trace"), options, MANY_BUFFERS,
                            {"XTRACE_SIMGPU_FAULT": "version:%s%s" % (version, fault)})
    expect_success(done, 800)
    found = re.search(r"([\d,]+) kernels", done.stderr)
    return int(found[1].replace(",", "")) if found else 0, done.stderr


def test_growth():
    """CUPTI 12.9 and 13.0.0 allocate in host memory. If they cannot, they are not used."""
    for version, fails in (("26", False), ("27", True), ("130000", True), ("130001", False)):
        count, said = run_threads(version, [])
        expect(count > 300000, "kernels with " + version + said)
        expect(("LAUNCH_FAILED" in run_alone(version, MANY_BUFFERS).stderr) == fails,
               "a failure of the old versions alone")
    count, said = run_threads("130000", [], ",fail:cuptiActivitySetAttribute")
    expect(not count and UNSAFE % "13.0.0" in said, "a refusal, not " + said)
    count, said = run_threads("130001", [], ",fail:cuptiActivitySetAttribute")
    expect(count > 300000 and UNSAFE[-20:] not in said, "no refusal, but " + said)


def start_program(command, version, arguments, **environment):
    """Starts the program and waits until it launches."""
    library = os.path.join(os.path.dirname(args.xtrace), "..", "lib", "xtrace", "simgpu")
    process = subprocess.Popen(
        [*command, args.program, *arguments], stderr=subprocess.PIPE, text=True, env={
            **os.environ, "XTRACE_SIMGPU_FAULT": "version:" + version, "LD_LIBRARY_PATH": library,
            "XTRACE_SIMGPU_KERNEL_NS": "100:200", **environment})
    for line in process.stderr:
        if line == "launching\n":
            return process
    sys.exit("the program did not launch")


def kill_recorded(folder):
    """Ends the program that is recorded in the folder. Returns the state of its recording."""
    shown = subprocess.run([args.xtrace, "ps", "--json", folder], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    found, = json.loads(shown)["processes"]
    os.kill(found["pid"], signal.SIGKILL)
    return found["state"]


def test_late():
    """CUPTI 12.9 and 13.0.0 cannot use host memory if a context exists."""
    for version, name in (("26", None), ("27", "12.9"), ("130000", "13.0.0"), ("130001", None)):
        with tempfile.TemporaryDirectory() as folder, start_program(
                [], version, ["pauses", "2", "1000", "2"]) as process:
            done = subprocess.run([args.xtrace, "attach", "--armed", "-o", folder,
                                   str(process.pid)], stderr=subprocess.PIPE, text=True,
                                  check=False)
            is_alive = process.poll() is None
            process.kill()
        expect(is_alive and (done.returncode != 0) == bool(name), "no harm, not " + done.stderr)
        expect(not name or UNSAFE % name in done.stderr, "a refusal, not " + done.stderr)


def run_command(command, folder):
    """Returns what the command says if it fails."""
    done = subprocess.run([args.xtrace, command, "-q", folder], stderr=subprocess.PIPE, text=True,
                          check=False)
    return done.stderr if done.returncode else ""


def test_stops():
    """If kernel records are disabled beside loads of code, CUPTI before 13.0.1 deadlocks."""
    for version, options, kind, kernel_count in (
            ("26", ["--armed"], "mixed", "10"), ("27", ["--armed"], "mixed", "10"),
            ("130000", [], "mixed", "10"), ("130001", ["--armed"], "mixed", "10"),
            ("26", ["--armed"], "loads", "10"), ("130000", [], "loads", "10"),
            ("130001", [], "loads", "10")):
        with tempfile.TemporaryDirectory() as folder, start_program(
                [args.xtrace, "record", "--simulate", "-o", folder, *options, "--"], version,
                [kind, "0", "1000000000", kernel_count, "3"]) as process:
            said = [run_command(command, folder) for _ in range(3) for command in ("start", "stop")]
            is_running = process.poll() is None
            state = kill_recorded(folder)
        expect(not any(said), "starts and stops, not %s" % said)
        expect(is_running and state == "stopped", "a program that runs on, stopped, not " + state)


def stays_the_same(log):
    """Whether the log does not grow for half a second. The last rows may come a little late."""
    for _ in range(20):
        size = os.stat(log).st_size
        time.sleep(0.5)
        if os.stat(log).st_size == size:
            return True
    return False


def test_again():
    """After whole graphs, CUPTI stays on while recording is stopped. Nothing is written then."""
    with tempfile.TemporaryDirectory() as folder, start_program(
            [args.xtrace, "record", "--simulate", "-o", folder, "--armed=graphs", "--"], "130001",
            ["mixed", "101", "1000000000", "4", "3"]) as process:
        said = []
        for _ in range(2):
            said.append(run_command("start", folder))
            time.sleep(0.3)
            said.append(run_command("stop", folder))
            said.append("" if stays_the_same(log_in(folder)) else "the log grows")
        is_running = process.poll() is None
        rows = rows_of(log_in(folder))
        state = kill_recorded(folder)
    expect(not any(said), "starts, stops and nothing more, not %s" % said)
    expect(is_running and state == "stopped", "a program that runs on, stopped, not " + state)
    on_ns, off_ns = ([int(row["time_ns"]) for row in rows
                      if row["kind"] == "SWITCH" and row["on"] == on] for on in "10")
    whole = [int(row["start_ns"]) for row in kernels(rows)[0]]
    expect(any(ns > on_ns[1] for ns in whole), "whole graphs after the second start")
    times = [int(row["time_ns"]) for row in rows if row["kind"] == "MEMORY"]
    expect(times and not any(off_ns[-2] < ns < on_ns[1] for ns in times),
           "allocations, but none while recording was stopped")


SLOW = {"XTRACE_SIMGPU_LAUNCH_NS": "100000"}  # a program whose log stays small


def test_changes():
    """Recording starts and stops between calls, not during them, and no id is used twice."""
    for options, windows in (([], 5), (["--graph-detail", "node"], 3)):
        with tempfile.TemporaryDirectory() as folder, start_program(
                [args.xtrace, "record", "--simulate", "-o", folder, "--armed", *options, "--"],
                "130001", ["mixed", "0", "1000000000", "4", "3"], **SLOW) as process:
            said = []
            for _ in range(windows):
                said.append(run_command("start", folder))
                time.sleep(0.05)
                said.append(run_command("stop", folder))
            is_running = process.poll() is None
            rows = rows_of(log_in(folder))
            kill_recorded(folder)
        expect(not any(said) and is_running, "a program that runs on, not %s" % said)
        calls = [row["correlation"] for row in rows if row["kind"] == "CALL"]
        expect(len(calls) == len(set(calls)) > 100, "%d calls with an id each" % len(calls))
        counts = collections.Counter(row["correlation"] for row in kernels(rows)[1])
        graphs = [row["correlation"] for row in rows
                  if row["kind"] == "CALL" and row["executable_graph"] != "0"]
        expect(graphs and all(counts[graph] == 6 for graph in graphs), "6 kernels of each graph")
        expect(counts.keys() <= set(calls), "no kernel without a call")
        memory = {row["correlation"] for row in rows if row["kind"] == "MEMORY"}
        expect(memory and memory <= set(calls), "no allocation without a call")


def test_long_calls():
    """A start and a stop wait for launches. A start gives up; the next one waits again."""
    for launch_s, commands, fails in ((0.3, ("start", "stop", "start", "stop"), False),
                                      (6, ("start", "start"), True)):
        with tempfile.TemporaryDirectory() as folder, start_program(
                [args.xtrace, "record", "--simulate", "-o", folder, "--armed", "--"], "130001",
                ["mixed", "0", "1000000000", "4", "1"],
                XTRACE_SIMGPU_LAUNCH_NS="%d" % (launch_s * 1e9)) as process:
            said = [run_command(command, folder) for command in ("start", "stop")]
            expect(not any(said), "a start and a stop, not %s" % said)
            time.sleep(launch_s + 0.4)  # only calls that begin from now on are known
            said = [run_command(command, folder) for command in commands]
            is_running = process.poll() is None
            state = kill_recorded(folder)
        expect(is_running and (fails or state == "stopped"), "a program that runs on, not " + state)
        expect(bool(said[0]) == fails and (fails or not any(said)),
               "%s with launches of %g s" % (said, launch_s))
        expect(not fails or "does not return" in said[0], "a reason, not %s" % said)


def test_old():
    """CUPTI of CUDA 11 is refused if the program uses libraries of a later CUDA."""
    for version, later, is_recorded in (("18", "", True), ("18", args.later, False),
                                        ("19", args.later, True)):
        with tempfile.TemporaryDirectory() as folder:
            done = run_recorded(os.path.join(folder, "trace"), [], ["plain", "1", "4", "2"],
                                {"XTRACE_SIMGPU_FAULT": "version:" + version, "LD_PRELOAD": later})
        expect_success(done, 8)
        expect(("32 kernels" in done.stderr) == is_recorded, "kernels, not " + done.stderr)
        expect(("because it uses libcudart.so.13" in done.stderr) != is_recorded,
               "a reason, not " + done.stderr)


def test_set_up():
    """Recording stops and starts during cuInit() and while contexts are made."""
    for version, set_up_ms, option in (("27", "500", "--armed"), ("130001", "500", "--armed"),
                                       ("130001", "500", "--armed=graphs"),
                                       ("130001", "1500", "--armed=graphs")):
        done, rows = record_windows([option], ["plain", "1", "4", "2"],
                                    XTRACE_SIMGPU_FAULT="version:" + version,
                                    XTRACE_SIMGPU_SET_UP_MS=set_up_ms)
        expect_success(done, 8)
        times = [time_ns for time_ns, _ in switches_of(rows)]
        expect(len(times) > 2 and times[2] - times[0] < 1e6 * int(set_up_ms),
               "a start and a stop during cuInit()")


def test_tool():
    """Another tool takes CUPTI during cuInit() and while a context is made."""
    library = os.path.join(os.path.dirname(args.xtrace), "..", "lib", "xtrace", "simgpu")
    for set_up_ms in ("100", "900"):
        done, _ = record([], ["tool", "1", "4", "2"], XTRACE_SIMGPU_SET_UP_MS=set_up_ms,
                         XTRACE_CUPTI=os.path.join(library, "libcupti.so"))
        expect_success(done, 8)


def test_frees():
    """Memory is recorded until CUPTI would crash. All calls and kernels are."""
    done, rows = record([], ["frees", "0", "5", "0"])
    expect_success(done, 2)
    expect(len(kernels(rows)[1]) == 2, "2 kernels")
    expect(sum(row["kind"] == "MEMORY" for row in rows) == 11, "5 pairs and an allocation")
    account = {row["name"]: row["value"] for row in rows if row["kind"] == "ACCOUNT"}
    expect(account["kinds.lost.memory"] == "1", "a kind that was given up")
    arguments = ["frees", "100", "50000", "0"]
    for done, _ in (record_windows(["--armed"], arguments), record(["--api", "all"], arguments),
                    record(["--api", "launch"], arguments)):
        expect_success(done, 2)


parser = argparse.ArgumentParser()
for option in ("xtrace", "dump", "program", "floor", "later"):
    parser.add_argument("--" + option, required=True)
parser.add_argument("part")
args = parser.parse_args()
globals()["test_" + args.part]()
