#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests and measures how running services are recorded, on a real GPU with PyTorch.

    tests/gpu/service.py BIN [-o RESULTS] [--only PART]... [--pairs N]    # BIN: folder of xtrace

| part | what it does |
| --- | --- |
| cycles | 200 times start and stop while three threads launch: what is lost, how long it takes |
| graphs | graphs made while armed: their replays have the path of their creation with =graphs |
| modules | start and stop in a process that has loaded 1,000 CUDA modules |
| recorder | a flight recorder for 20 s: triggers, snapshots, size of the log |
| attach | attach a process that runs bare, record and stop: what is recorded, what it costs |
| cost | steps and replays of alternating processes: bare, armed, after start and stop |

Prints the results. Exit status: 0 success, 1 a check failed, 77 no PyTorch or GPU.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from gpu_results import finish, gpu_name

CYCLES = 200
MODULES = 1000
LIMITS = {"start_ms": 100, "stop_ms": 1000, "gap_ms": 5, "armed_percent": 0.5,
          "attach_gap_ms": 100, "attach_percent": 35}
ADDS = 20  # kernels of each kind in a step of the part attach


# ---- the programs

def say(**values):
    print(json.dumps(values), flush=True)


def rss_kib():
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])


def launching_loop(torch, ended, gaps, size):
    """Launches one kernel after the other. Notes gaps between launches as (start, length)."""
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.zeros(size, device="cuda")
        last, count = time.monotonic(), 0
        while not ended.is_set():
            x.add_(1.0)
            now = time.monotonic()
            if now - last > 0.001:
                gaps.append((last, now - last))
            count += 1
            if count % 50 == 0:
                torch.cuda.current_stream().synchronize()
                now = time.monotonic()
            last = now


def program_cycles():
    import torch
    ended, gaps = threading.Event(), []
    x = torch.zeros(1 << 12, device="cuda")
    graph = torch.cuda.CUDAGraph()
    for _ in range(3):
        x.mul_(1.0)
    with torch.cuda.graph(graph):
        for _ in range(20):
            x.add_(1.0)
    threads = [threading.Thread(target=launching_loop, args=(torch, ended, gaps, size))
               for size in (1 << 10, 1 << 14)]
    for thread in threads:
        thread.start()
    say(ready=True)
    for line in sys.stdin:
        if line.strip() == "memory":
            say(rss_kib=rss_kib())
        elif line.strip() == "gaps":
            say(gaps=gaps)
        elif line.strip() == "replay":
            for _ in range(50):
                graph.replay()
            torch.cuda.synchronize()
            say(replayed=50)
        else:
            break
    ended.set()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()


def capture_here(torch, graph, x):
    with torch.cuda.graph(graph):
        for _ in range(20):
            x.add_(1.0)


def program_graphs():
    import torch
    x = torch.zeros(1 << 12, device="cuda")
    x.add_(1.0)
    graph = torch.cuda.CUDAGraph()
    capture_here(torch, graph, x)
    say(ready=True)
    sys.stdin.readline()
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    say(replayed=100)
    sys.stdin.readline()


def program_modules():
    import ctypes
    import torch
    x = torch.zeros(1 << 10, device="cuda")
    driver, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
    text = (".version 7.0\n.target sm_70\n.address_size 64\n"
            ".visible .entry kernel_%d() { ret; }\n")
    for number in range(MODULES):
        if driver.cuModuleLoadData(ctypes.byref(module), (text % number).encode()) or \
           driver.cuModuleGetFunction(ctypes.byref(function), module, b"kernel_%d" % number) or \
           driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None):
            raise SystemExit("cannot load a module")
    torch.cuda.synchronize()
    ended, gaps = threading.Event(), []
    thread = threading.Thread(target=launching_loop, args=(torch, ended, gaps, 1 << 10))
    thread.start()
    say(ready=True)
    for _ in sys.stdin:
        say(gaps=gaps, end=float(x[0]))
    ended.set()
    thread.join()


def eager_step(x):
    for _ in range(ADDS):
        x.add_(1.0)


def graph_step(graph):
    graph.replay()


def program_attach():
    import torch
    x = torch.zeros(1 << 12, device="cuda")
    eager_step(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(ADDS):
            x.mul_(1.0)
    torch.cuda.synchronize()
    ended, steps = threading.Event(), []

    def answer():
        for _ in sys.stdin:
            say(steps=list(steps))
        ended.set()

    threading.Thread(target=answer).start()
    say(ready=True)
    while not ended.is_set():
        start = time.monotonic()
        eager_step(x)
        graph_step(graph)
        torch.cuda.synchronize()
        steps.append((start, time.monotonic() - start))


def program_cost():
    import torch
    torch.manual_seed(1)
    layers = [torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
              for _ in range(4)]
    model = torch.nn.Sequential(*layers).cuda()
    data = torch.randn(8, 512, 1024, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    small = torch.zeros(1 << 10, device="cuda")
    graph = torch.cuda.CUDAGraph()
    small.add_(1.0)
    with torch.cuda.graph(graph):
        for _ in range(200):
            small.add_(1.0)

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()

    def replay():
        graph.replay()
        torch.cuda.synchronize()

    def median_of(function, count):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e3

    for _ in range(20):
        step()
    say(ready=True)
    sys.stdin.readline()
    say(step_ms=median_of(step, 100), replay_ms=median_of(replay, 8000))
    sys.stdin.readline()


def adds(x):
    x.add_(1.0)


def program_recorder():
    import torch
    x = torch.zeros(1 << 16, device="cuda")

    def launch(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            adds(x)
            torch.cuda.synchronize()

    launch(1)
    say(ready=True)
    for line in sys.stdin:
        if line.strip() == "slow":
            torch.cuda.nvtx.range_push("request")
            launch(0.3)
            torch.cuda.nvtx.range_pop()
        elif line.strip() == "hang":
            torch.cuda._sleep(3 * 10 ** 9)  # about 1.7 s
            torch.cuda.synchronize()
        elif line.strip() == "oom":
            try:
                torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
            except RuntimeError:
                pass
        launch(2.5)
        say(done=line.strip())


# ---- controlling them

class Program:
    """A program of this file that waits for lines on stdin and answers with JSON."""

    last = None

    def __init__(self, args, name, mode, folder):
        command = [sys.executable, os.path.abspath(__file__), "--program", name]
        if mode is not None:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            command = [args.xtrace, "record", "-o", folder, *mode, "--", *command]
        self.data = folder
        Program.last = self
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.answer()
        self.pid = self.process.pid
        if mode is not None:
            with open("/proc/%d/task/%d/children" % (self.pid, self.pid), encoding="ascii") as file:
                self.pid = int(file.read().split()[0])

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure("the program ended: %s" % self.process.stderr.read())
        return json.loads(line)

    def ask(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        said = self.process.stderr.read()
        self.process.stdout.read()
        if self.process.wait(60):
            raise Failure("status %d: %s" % (self.process.returncode, said))
        return said


class Failure(Exception):
    pass


def why_ended():
    """Returns the messages of the last program if it has ended by itself."""
    process = Program.last.process
    time.sleep(1)
    return "" if process.poll() is None else "; the program ended with status %d: %s" % (
        process.returncode, process.stderr.read())


class Part:
    def __init__(self, args):
        self.args, self.problems, self.results = args, [], {}

    def expect(self, condition, text):
        if not condition:
            self.problems.append(text)

    def control(self, *words):
        done = subprocess.run([self.args.xtrace, *words], capture_output=True, text=True)
        if done.returncode:
            raise Failure("xtrace %s: %s" % (" ".join(words), done.stderr))

    def counts(self, data):
        """Work by call path, and what the log says about losses."""
        done = subprocess.run([self.args.merge, data, "--quiet", "--folded", "-", "--weight",
                               "count", "--summary", os.path.join(data, "summary.json")],
                              capture_output=True, text=True)
        with open(os.path.join(data, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        if done.returncode:
            self.problems.append("incomplete trace: %s%s" % (
                done.stderr, "; ".join(summary["trust"]["lines"])))
        rows = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        return [(path, int(count)) for path, count in rows], summary


class Cycles(Part):
    def run(self, folder):
        program = Program(self.args, "cycles", ["--armed"], folder)
        pid, times = str(program.pid), {"start": [], "stop": []}
        windows, memory = [], []
        for cycle in range(CYCLES):
            began = time.monotonic()
            self.control("start", pid)
            times["start"].append(time.monotonic() - began)
            if cycle % 10 == 0:
                program.ask("replay")
            time.sleep(0.02)
            middle = time.monotonic()
            self.control("stop", pid)
            times["stop"].append(time.monotonic() - middle)
            windows.append((began, time.monotonic()))
            if cycle in (9, CYCLES // 2 - 1, CYCLES - 1):  # rings grow at first
                memory.append(program.ask("memory")["rss_kib"])
        gaps = program.ask("gaps")["gaps"]
        said = program.end()
        self.check(folder, times, windows, gaps, memory, said)

    def check(self, folder, times, windows, gaps, memory, said):
        rows, summary = self.counts(folder)
        unattributed = sum(count for path, count in rows if "[unattributed]" in path)
        inside = [length for start, length in gaps
                  if any(a <= start + length and start <= b for a, b in windows[1:])]
        outside = [length for start, length in gaps
                   if not any(a <= start + length and start <= b for a, b in windows)]
        result = {
            "cycles": CYCLES, "work": sum(count for _, count in rows),
            "unattributed": unattributed, "lost": re.findall(r"(\S+) lost", said),
            "complete": summary.get("headline", {}).get("trust"),
            "first_start_ms": times["start"][0] * 1e3,
            "start_ms": [statistics.median(times["start"]) * 1e3, max(times["start"][1:]) * 1e3],
            "stop_ms": [statistics.median(times["stop"]) * 1e3, max(times["stop"]) * 1e3],
            "gap_ms_in_windows": max(inside or [0]) * 1e3,
            "gap_ms_elsewhere": max(outside or [0]) * 1e3,
            "rss_growth_kib": [b - a for a, b in zip(memory, memory[1:])],
        }
        self.results = result
        self.expect(not unattributed, "%d pieces of GPU work have no call" % unattributed)
        self.expect(result["lost"] == ["0"], "lost: %s" % said)
        self.expect(result["gap_ms_in_windows"] <= LIMITS["gap_ms"],
                    "launches waited for start or stop")
        self.expect(result["start_ms"][1] <= LIMITS["start_ms"], "a start took too long")
        self.expect(result["stop_ms"][1] <= LIMITS["stop_ms"], "a stop took too long")


class Graphs(Part):
    def run(self, folder):
        for name, mode, expected in (("plain", "--armed", False),
                                     ("graphs", "--armed=graphs", True)):
            data = os.path.join(folder, name)
            program = Program(self.args, "graphs", [mode], data)
            self.control("start", str(program.pid))
            program.ask("")
            self.control("stop", str(program.pid))
            program.end()
            rows, _ = self.counts(data)
            kernels = sum(count for path, count in rows if "[GPU_Kernel]" in path)
            created = sum(count for path, count in rows
                          if "[GPU_Kernel]" in path and "capture_here" in path)
            self.results[name] = {"kernels": kernels, "with the path of their creation": created}
            self.expect(kernels == 2000, "%s: %d kernels, not 2000" % (mode, kernels))
            self.expect(created == (2000 if expected else 0),
                        "%s: %d kernels with the path of their creation" % (mode, created))


class Modules(Part):
    def run(self, folder):
        program = Program(self.args, "modules", ["--armed"], folder)
        for name in ("first", "second"):
            began = time.monotonic()
            self.control("start", str(program.pid))
            middle = time.monotonic()
            time.sleep(0.1)
            before_stop = time.monotonic()
            self.control("stop", str(program.pid))
            ended = time.monotonic()
            gaps = [length for start, length in program.ask("gaps")["gaps"]
                    if began <= start + length and start <= ended]
            self.results[name] = {"start_ms": (middle - began) * 1e3,
                                  "stop_ms": (ended - before_stop) * 1e3,
                                  "gap_ms": max(gaps or [0]) * 1e3}
        program.end()
        self.counts(folder)
        self.expect(self.results["second"]["gap_ms"] <= LIMITS["gap_ms"],
                    "launches waited for start or stop")


class Recorder(Part):
    TRIGGERS = {"slow": "range:request>100ms", "hang": "hang>1s", "oom": "oom"}

    def run(self, folder):
        options = ["--flight-recorder", "2s", "--snapshot-interval", "100ms"]
        for trigger in self.TRIGGERS.values():
            options += ["--snapshot-on", trigger]
        program = Program(self.args, "recorder", options, folder)
        sizes = []
        for name in self.TRIGGERS:
            program.ask(name)
            sizes += [os.path.getsize(os.path.join(folder, log)) for log in os.listdir(folder)
                      if log.endswith(".xtr")]
        program.end()
        shots = os.path.join(folder, "snapshots")
        logs = [os.path.join(shots, log) for log in os.listdir(shots) if log.endswith(".xtr")] \
            if os.path.isdir(shots) else []
        found = set()
        for log in logs:
            text = subprocess.run([self.args.dump, "--kind", "META", log], capture_output=True,
                                  text=True).stdout
            found |= {name for name, trigger in self.TRIGGERS.items() if trigger in text}
        self.results = {"snapshots": len(logs), "triggers": sorted(found), "log_bytes": sizes}
        for name, trigger in self.TRIGGERS.items():
            self.expect(name in found, "%s took no snapshot" % trigger)


class Attach(Part):
    def run(self, folder):
        program = Program(self.args, "attach", None, folder)
        time.sleep(2)
        times = []
        for words, pause_s in ((("attach", "-o", folder), 3), (("stop",), 2)):
            times.append(time.monotonic())
            self.control(*words, str(program.pid))
            times.append(time.monotonic())
            time.sleep(pause_s)
        steps = program.ask("")["steps"]
        program.end()
        self.check(folder, steps, *times)

    def check(self, folder, steps, began, recording, stopping, ended):
        def median_ms(start, end):
            return statistics.median(n for at, n in steps if start <= at <= end - n) * 1e3

        rows, summary = self.counts(folder)
        kernels = {name: sum(n for path, n in rows if name in path and "[GPU_Kernel]" in path)
                   for name in ("eager_step", "graph_step")}
        unattributed = sum(count for path, count in rows if "[unattributed]" in path)
        inside = sum(recording <= at and at + length <= stopping for at, length in steps)
        touched = [length for at, length in steps if began <= at + length and at <= ended]
        bare_ms, stopped_ms = median_ms(0, began), median_ms(ended, math.inf)
        trust = summary["trust"]
        self.results = {
            "attach_ms": (recording - began) * 1e3, "stop_ms": (ended - stopping) * 1e3,
            "steps": [inside, len(touched)], "kernels": kernels, "unattributed": unattributed,
            "step_ms": {"bare": bare_ms, "recorded": median_ms(recording, stopping),
                        "stopped": stopped_ms},
            "longest_step_ms": max(touched) * 1e3, "trust": trust,
        }
        for name, count in kernels.items():
            self.expect(inside * ADDS <= count <= len(touched) * ADDS,
                        "%s: %d kernels, but %d to %d steps" % (name, count, inside, len(touched)))
        self.expect(inside, "no step was recorded")
        self.expect(not unattributed, "%d pieces of GPU work have no call" % unattributed)
        self.expect(trust["word"] == "complete" and "attached" in "".join(trust["reasons"]),
                    "trust: %s" % trust)
        self.expect(self.results["longest_step_ms"] <= LIMITS["attach_gap_ms"],
                    "a step waited for the attach, the start or the stop")
        self.expect(stopped_ms <= bare_ms * (1 + LIMITS["attach_percent"] / 100),
                    "steps are slower after the stop")


def interval(ratios):
    """Mean of paired ratios in percent, and the upper bound of the 95 % interval (one-sided)."""
    logs = [math.log(ratio) for ratio in ratios]
    if len(logs) < 2:
        return [0.0, math.inf]
    t = {1: 6.31, 2: 2.92, 3: 2.35, 4: 2.13, 5: 2.02, 6: 1.94, 7: 1.89, 8: 1.86, 9: 1.83,
         11: 1.80, 14: 1.76, 19: 1.73}
    freedom = max(f for f in t if f <= len(logs) - 1)
    error = statistics.stdev(logs) / math.sqrt(len(logs)) * t[freedom]
    mean = statistics.mean(logs)
    return [round(100 * math.expm1(mean), 3), round(100 * math.expm1(mean + error), 3)]


class Cost(Part):
    ARMS = {"bare": None, "armed": ["--armed"], "graphs": ["--armed=graphs"],
            "stopped": ["--armed"]}

    def once(self, arm, folder):
        program = Program(self.args, "cost", self.ARMS[arm], folder)
        if arm == "stopped":
            self.control("start", str(program.pid))
            time.sleep(0.2)
            self.control("stop", str(program.pid))
        answer = program.ask("")
        program.end()
        return answer

    def run(self, folder):
        values = {arm: {"step_ms": [], "replay_ms": []} for arm in self.ARMS}
        for pair in range(self.args.pairs):
            arms = list(self.ARMS) if self.args.all_arms else ["bare", "armed"]
            for arm in arms if pair % 2 else reversed(arms):
                answer = self.once(arm, os.path.join(folder, "%s%d" % (arm, pair)))
                print("%s %s" % (arm, answer), flush=True)
                for name, value in answer.items():
                    values[arm][name].append(value)
        for arm in arms:
            for name in ("step_ms", "replay_ms"):
                ratios = [a / b for a, b in zip(values[arm][name], values["bare"][name])]
                row = {"median": round(statistics.median(values[arm][name]), 4),
                       "processes": len(values[arm][name])}
                if arm != "bare":
                    row["percent"], row["bound"] = interval(ratios)
                self.results["%s %s" % (arm, name)] = row
        for name in ("step_ms", "replay_ms"):
            self.expect(self.results["armed " + name]["bound"] <= LIMITS["armed_percent"],
                        "armed: %s: the upper bound is above %.1f %%"
                        % (name, LIMITS["armed_percent"]))


PARTS = {part.__name__.lower(): part for part in Part.__subclasses__()}
PROGRAMS = {name: globals()["program_" + name] for name in PARTS}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", nargs="?", help="the folder of xtrace and xtrace-merge")
    parser.add_argument("-o", "--output", help="also write the results to this file (JSON)")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--all-arms", action="store_true",
                        help="also measure the cost after a stop, and with --armed=graphs")
    parser.add_argument("--program", choices=PROGRAMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.program:
        PROGRAMS[args.program]()
        return
    for name in ("xtrace", "xtrace-merge"):
        setattr(args, name.split("-")[-1], os.path.join(args.bin, name))
    args.dump = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/xtrace-dump")
    results, problems = {"gpu": gpu_name()}, []
    with tempfile.TemporaryDirectory(prefix="xtrace-service.") as folder:
        for name in args.only or PARTS:
            part = PARTS[name](args)
            try:
                part.run(os.path.join(folder, name))
            except Failure as failure:
                part.problems.append(str(failure) + why_ended())
            results[name] = part.results
            problems += ["%s: %s" % (name, problem) for problem in part.problems]
            print(json.dumps({name: part.results}, indent=1), flush=True)
    finish(args.output, results, problems)


if __name__ == "__main__":
    main()
