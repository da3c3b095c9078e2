#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests and measures a model server under load while xtrace starts, stops and takes snapshots.

    tests/gpu/serving.py BIN [-o RESULTS] [--only SCENARIO]... [--rounds N] [--seconds N]

BIN is the folder of xtrace. --simulated uses the simulated GPU instead of PyTorch.

| scenario | what happens under load |
| --- | --- |
| bare | nothing: the server runs without xtrace |
| armed | nothing |
| recording | everything is recorded |
| cycles | xtrace start and stop, one after the other |
| flight | a flight recorder, snapshots, and a slow request that triggers one |
| attached | a server that runs bare is attached in the middle |
| killed | the server is killed while it is recorded, and starts again in the same directory |

Each round runs all scenarios, each with a server of its own, in alternating order. Prints the
latencies of requests. Every request that the clients counted must be in the log with its range and
its kernels. Exit status: 0 success, 1 a check failed, 77 no PyTorch or GPU.
"""

import argparse
import bisect
import collections
import http.client
import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from gpu_results import finish, gpu_name

CLIENTS = 4
PAUSE_S = 0.002  # of a client between two requests
REQUESTS_MAX = 1000000
SLOW_MS, TRIGGER_MS = 900, 600
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model_server.py")
SIMULATED_KERNELS = 24  # of each request


class Failure(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


# ---- load

class Load:
    """Clients that send requests one after the other, each on its own connection."""

    def __init__(self, port, seconds):
        self.port, self.end = port, time.monotonic() + seconds
        self.latencies, self.counts, self.broken = [], collections.Counter(), 0
        self.so_far = [0] * CLIENTS
        self.lock, self.done = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.client, args=(number,)) for number in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def client(self, number):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        latencies, counts, broken = [], collections.Counter(), 0
        try:
            while not self.done.is_set() and len(latencies) < REQUESTS_MAX:
                kind = ("eager", "graph")[(len(latencies) + number) % 2]
                began = time.perf_counter()
                ask(connection, kind)
                latencies.append((time.perf_counter() - began) * 1e3)
                counts[kind] += 1
                self.so_far[number] += 1
                time.sleep(PAUSE_S)
        except (OSError, http.client.HTTPException, Failure):
            broken = 1
        finally:
            connection.close()
        with self.lock:
            self.latencies += latencies
            self.counts += counts
            self.broken += broken

    def finish(self):
        """Returns when the time is over."""
        self.done.wait(max(0, self.end - time.monotonic()))
        self.done.set()
        for thread in self.threads:
            thread.join()


def ask(connection, path):
    connection.request("GET", "/" + path)
    response = connection.getresponse()
    response.read()
    expect(response.status == 200, "/%s: status %d" % (path, response.status))


# ---- servers

class Server:
    """A model server. `prefix` is the command before it, such as xtrace record."""

    def __init__(self, args, environment, prefix=()):
        self.said = ""
        command = [*prefix, sys.executable, SERVER, "--backend", "simulated" if args.simulated else "torch"]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise Failure("the server did not start: %s" % self.process.stderr.read())
        ready = json.loads(line)
        self.port, self.pid = ready["port"], ready["pid"]

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        ask(connection, path)
        connection.close()

    def end(self, status=0):
        """Returns the server's own counts."""
        self.process.stdin.close()
        self.said = self.process.stderr.read()
        counts = self.process.stdout.read()
        expect(self.process.wait(60) == status, "status %d: %s" % (self.process.returncode, self.said))
        return json.loads(counts) if counts else None


def base_environment(args):
    environment = dict(os.environ)
    if args.simulated:
        environment["XTRACE_SIMGPU_KERNEL_NS"] = "20000:40000"
        environment["LD_LIBRARY_PATH"] = os.path.join(args.bin, "../lib/xtrace/simgpu")
    return environment


def xtrace(args, *words, statuses=(0,)):
    done = subprocess.run([args.xtrace, *words], capture_output=True, text=True, timeout=120)
    expect(done.returncode in statuses, "xtrace %s: status %d: %s" % (
        " ".join(words), done.returncode, done.stderr))
    return done.stdout


def ps(args, data):
    return json.loads(xtrace(args, "ps", "--json", data))["processes"]


# ---- what a log has

class Log:
    """The requests of a log or directory, with their kernels."""

    def __init__(self, args, path, is_complete=True):
        with tempfile.TemporaryDirectory(prefix="xtrace-serving.") as folder:
            database = os.path.join(folder, "run.db")
            # After a kill, the last kernels may lack their times.
            xtrace(args, "merge", "--sqlite", database, path,
                   statuses=(0,) if is_complete else (0, 1))
            self.read(sqlite3.connect(database))
        if is_complete:
            expect(self.trust.startswith("complete"), "trust: %s" % self.trust)
            expect(not self.losses, "lost: %s" % self.losses)
        expect(not self.unattributed, "%d pieces of GPU work have no call" % self.unattributed)

    def read(self, database):
        meta = dict(database.execute("SELECT key, value FROM meta"))
        self.trust = meta["trust"]
        self.losses = database.execute("SELECT name, count FROM loss WHERE count > 0").fetchall()
        kernels, paths = collections.Counter(), {}
        self.unattributed = 0
        for call, path in database.execute(
                "SELECT c.id, p.text FROM work w LEFT JOIN api_call c ON c.correlation = w.correlation "
                "AND c.process_id = w.process_id LEFT JOIN path p ON p.id = w.path_id "
                "WHERE w.kind = 'kernel'"):
            if call is None or not path:
                self.unattributed += 1
            kernels[call] += 1
            paths.setdefault(call, path)
        starts, calls = collections.defaultdict(list), collections.defaultdict(list)
        for thread, start, call in database.execute(
                "SELECT thread_id, start_ns, id FROM api_call ORDER BY start_ns"):
            starts[thread].append(start)
            calls[thread].append(call)
        self.kernel_count = sum(kernels.values())
        self.requests = []  # (start, duration in ns or None, kernels, paths)
        for thread, start, duration in database.execute(
                "SELECT r.thread_id, r.start_ns, r.duration_ns FROM nvtx_range r JOIN name n "
                "ON n.id = r.name_id WHERE n.text = 'request' ORDER BY r.start_ns"):
            first = bisect.bisect_left(starts[thread], start)
            last = bisect.bisect_right(starts[thread], start + (duration or 0))
            inside = calls[thread][first:last]
            self.requests.append((start, duration, sum(kernels[call] for call in inside),
                                  [paths[call] for call in inside if call in paths]))
        database.close()

    def check_all(self, args, count):
        """Each of the `count` requests is there once, with the kernels that a request has."""
        expect(len(self.requests) == count, "%d requests, but %d ranges" % (count, len(self.requests)))
        self.check_kernels(args, self.requests)

    def check_kernels(self, args, rows):
        wanted = self.wanted(args)
        wrong = [row for row in rows if row[2] != wanted[kind_of(row)]]
        expect(not wrong, "%d of %d requests do not have %s kernels, but for example %d" % (
            len(wrong), len(rows), wanted, wrong[0][2] if wrong else 0))

    def wanted(self, args):
        """Kernels of a request by kind. PyTorch chooses them by the machine, so the most frequent
        number must be that of all."""
        if args.simulated:
            return {"eager": SIMULATED_KERNELS, "graph": SIMULATED_KERNELS}
        counts = {"eager": collections.Counter(), "graph": collections.Counter()}
        for row in self.requests:
            counts[kind_of(row)][row[2]] += 1
        found = {kind: count.most_common(1)[0][0] for kind, count in counts.items() if count}
        expect(found and min(found.values()) >= 12, "kernels of a request: %s" % found)
        return {"eager": 0, "graph": 0, **found}


def kind_of(row):
    """Kernels of a graph have the path of its creation or of its launch."""
    return "graph" if any("capture" in path or "replay_graph" in path for path in row[3]) else "eager"


# ---- scenarios

class Scenario:
    """Runs a server under load. `mode`: the options of xtrace record, or None for no tracer."""

    mode = None

    def __init__(self, args, folder):
        self.args, self.data, self.notes = args, os.path.join(folder, "data"), {}
        os.mkdir(folder)

    def run(self):
        """Returns the latencies in ms."""
        prefix = () if self.mode is None else (
            self.args.xtrace, "record", *(["--simulate"] if self.args.simulated else []),
            "-o", self.data, *self.mode, "--")
        server = Server(self.args, base_environment(self.args), prefix)
        for path in ("eager", "graph"):
            server.ask(path)  # the first of each kind is slow
        load = Load(server.port, self.args.seconds)
        try:
            self.during(server, load)
        finally:
            load.finish()
        counts = server.end()
        expect(not load.broken, "%d clients lost their connection" % load.broken)
        expect(counts["eager"] + counts["graph"] == sum(load.counts.values()) + 2,
               "the server counted %s, the clients %s" % (counts, dict(load.counts)))
        if self.mode is not None:
            expect(re.search(r"\b0 lost", server.said), "lost: %s" % server.said)
        self.check(server, sum(counts.values()))
        return load.latencies

    def during(self, server, load):
        """Runs while the clients send requests."""

    def check(self, server, count):
        """The server has answered `count` requests."""


class Bare(Scenario):
    """Without a tracer."""


class Armed(Scenario):
    mode = ("--armed",)

    def check(self, server, count):
        expect("no kernel launch was recorded" in server.said, server.said)


class Recording(Scenario):
    mode = ()

    def check(self, server, count):
        Log(self.args, self.data).check_all(self.args, count)


class Cycles(Scenario):
    """A range that is open at a start is not recorded, and one that is open at a stop ends there."""

    mode = ("--armed",)

    def during(self, server, load):
        self.cycles, times = 0, {"start": [], "stop": []}
        while not self.cycles or time.monotonic() < load.end - 0.1:
            for word, wait in (("start", 0.05), ("stop", 0.02)):
                began = time.monotonic()
                xtrace(self.args, word, str(server.pid))
                times[word].append((time.monotonic() - began) * 1e3)
                time.sleep(wait)
            self.cycles += 1
        self.notes = {"cycles": self.cycles}
        self.notes.update({"%s_ms" % word: [round(statistics.median(times[word]), 1), round(max(times[word]), 1)]
                           for word in times})

    def check(self, server, count):
        log = Log(self.args, self.data)
        wanted = log.wanted(self.args)
        extra = [row[2] - wanted[kind_of(row)] for row in log.requests]
        cut = sum(count < 0 for count in extra)
        whole = len(log.requests) - cut
        expect(max(extra, default=0) <= 0, "a request has more than its kernels")
        # A client that waits for the model has a range without kernels at a stop.
        expect(cut <= CLIENTS * self.cycles, "%d requests lack kernels in %d cycles" % (cut, self.cycles))
        expect(whole, "no whole request in %d cycles" % self.cycles)
        self.notes["recorded"] = "%d of %d requests" % (whole, count)


class Flight(Scenario):
    # On a busy machine, other requests may be slow, too.
    mode = ("--flight-recorder", "30s", "--snapshot-on", "range:request>%dms" % TRIGGER_MS,
            "--snapshot-interval", "1ms")

    def during(self, server, load):
        self.on_request = []
        time.sleep(min(0.2, self.args.seconds / 4))
        while not self.on_request or time.monotonic() < load.end:
            self.on_request += xtrace(self.args, "snapshot", str(server.pid)).split("\n")[:-1]
            time.sleep(min(1, self.args.seconds / 4))
        # After the load, because the other clients would wait for it.
        load.finish()
        before = self.snapshots()
        server.ask("slow?ms=%d" % SLOW_MS)
        self.triggered = self.await_other_than(before)

    def snapshots(self):
        folder = os.path.join(self.data, "snapshots")
        return {os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".xtr")}

    def await_other_than(self, before):
        deadline = time.monotonic() + 10
        while not self.snapshots() - before:
            expect(time.monotonic() < deadline, "a slow request took no snapshot")
            time.sleep(0.02)
        return min(self.snapshots() - before)

    def check(self, server, count):
        Log(self.args, self.log_of(self.data)).check_all(self.args, count)
        log = Log(self.args, self.triggered)
        log.check_all(self.args, count)  # the last request was the slow one
        slow = log.requests[-1]
        expect(slow[1] > TRIGGER_MS * 1e6, "the slow request took %d ns" % slow[1])
        others = [path for path in slow[3] if "slow_forward" not in path]
        expect(slow[3] and not others, "a kernel of the slow request has the path %s" % others)
        for path in self.on_request:
            expect(Log(self.args, path).requests, "%s has no request" % path)
        self.notes["snapshots"] = len(self.on_request) + 1

    @staticmethod
    def log_of(data):
        name, = [name for name in os.listdir(data) if name.endswith(".xtr")]
        return os.path.join(data, name)


class Attached(Scenario):
    """Ranges are missing, because NVTX was loaded before."""

    def during(self, server, load):
        time.sleep(self.args.seconds / 3)
        before = sum(load.so_far)
        began = time.monotonic()
        xtrace(self.args, "attach", "-o", self.data, str(server.pid))
        self.notes = {"attach_ms": round((time.monotonic() - began) * 1e3, 1)}
        after = sum(load.so_far)
        load.finish()
        total = sum(load.so_far)
        self.at_least, self.at_most = total - after - CLIENTS, total - before + CLIENTS

    def check(self, server, count):
        log = Log(self.args, self.data)
        self.notes["recorded"] = "%d kernels of %d to %d requests" % (log.kernel_count,
                                                                      self.at_least, self.at_most)
        expect(self.at_least > 0, "the load ended before the attach")
        of_request = SIMULATED_KERNELS if self.args.simulated else 12
        expect(log.kernel_count >= self.at_least * of_request, self.notes["recorded"])
        if self.args.simulated:
            expect(log.kernel_count <= self.at_most * of_request, self.notes["recorded"])


class Killed(Scenario):
    """A supervisor sets the variables and starts the server again. Its latencies are not counted."""

    def environment(self):
        text = xtrace(self.args, "env", "--format", "docker", "-o", self.data,
                      *(["--simulate"] if self.args.simulated else []))
        return dict(base_environment(self.args),
                    **dict(line.split("=", 1) for line in text.splitlines() if "=" in line))

    def run(self):
        environment = self.environment()
        server = Server(self.args, environment)
        load = Load(server.port, self.args.seconds)
        time.sleep(self.args.seconds / 2)
        os.kill(server.pid, signal.SIGKILL)
        load.done.set()
        load.finish()
        server.end(-signal.SIGKILL)
        again = Server(self.args, environment)
        again.ask("eager")
        rows = ps(self.args, self.data)
        expect([(row["pid"], row["state"]) for row in rows] == [(again.pid, "recording")],
               "xtrace ps shows %s" % rows)
        again.end()
        self.check_killed(server, load)
        Log(self.args, self.path_of(again)).check_all(self.args, 1)
        return []

    def path_of(self, server):
        name, = [name for name in os.listdir(self.data) if name.endswith(".%d.xtr" % server.pid)]
        return os.path.join(self.data, name)

    def check_killed(self, server, load):
        log = Log(self.args, self.path_of(server), is_complete=False)
        answered = sum(load.counts.values())
        expect(answered <= len(log.requests) <= answered + CLIENTS,
               "%d requests were answered, the log has %d" % (answered, len(log.requests)))
        # Kernels of the last 0.5 s may have no times yet.
        last = max((row[0] for row in log.requests), default=0)
        log.check_kernels(self.args, [row for row in log.requests if row[0] < last - 6e8])
        self.notes["killed"] = "%d answered, %d in the log" % (answered, len(log.requests))


SCENARIOS = {"bare": Bare, "armed": Armed, "recording": Recording, "cycles": Cycles, "flight": Flight,
             "attached": Attached, "killed": Killed}


# ---- results

def percentiles(values):
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.9, 0.99)] + [ordered[-1]]


def print_table(rounds):
    """rounds: for each scenario, the latencies of each round."""
    print("%-10s %9s  %8s %8s %8s %8s   %s" % ("latency", "requests", "p50 ms", "p90 ms", "p99 ms", "max ms",
                                              "to bare: median of rounds, p50 p99"))
    results = {}
    for name, runs in rounds.items():
        if not any(runs):
            continue
        row = percentiles([value for run in runs for value in run])
        ratios = [[percentiles(run)[i] / percentiles(bare)[i] for run, bare in zip(runs, rounds.get("bare", []))]
                  for i in (0, 2)]
        ratios = [round(statistics.median(part), 3) for part in ratios if part]
        results[name] = {"requests": sum(map(len, runs)), "ms": [round(value, 3) for value in row], "to_bare": ratios}
        print("%-10s %9d  %8.3f %8.3f %8.3f %8.3f   %s" % (
            name, results[name]["requests"], *row, " ".join("%.3f" % ratio for ratio in ratios)))
    return results


def run_rounds(args, folder):
    names = [name for name in SCENARIOS if not args.only or name in args.only]
    rounds, notes, problems = {name: [] for name in names}, [], []
    for number in range(args.rounds):
        for name in names if number % 2 else reversed(names):
            began = time.monotonic()
            scenario = SCENARIOS[name](args, os.path.join(folder, "%s%d" % (name, number)))
            try:
                rounds[name].append(scenario.run())
            except Failure as failure:
                problems.append("%s: %s" % (name, failure))
                rounds[name].append([])
            notes.append({name: dict(scenario.notes, seconds=round(time.monotonic() - began))})
            print(json.dumps(notes[-1]), flush=True)
    return rounds, notes, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("bin", help="the folder of xtrace")
    parser.add_argument("-o", "--output", help="also write the results to this file (JSON)")
    parser.add_argument("--only", action="append", choices=SCENARIOS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8, help="of load in each scenario")
    parser.add_argument("--simulated", action="store_true", help="use the simulated GPU, without PyTorch")
    args = parser.parse_args()
    args.xtrace = os.path.join(args.bin, "xtrace")
    results = {"gpu": "simulated" if args.simulated else gpu_name()}
    with tempfile.TemporaryDirectory(prefix="xtrace-serving.") as folder:
        rounds, results["notes"], problems = run_rounds(args, folder)
    results["latency"] = print_table(rounds)
    finish(args.output, results, problems)


if __name__ == "__main__":
    main()
