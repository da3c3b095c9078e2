#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests armed processes and xtrace start, stop and ps, on the simulated GPU."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time


class Service:
    """A traced service. Ends with the `with` block."""

    def __init__(self, test, *options, threads=0, name="data"):
        self.test, self.data = test, os.path.join(test.folder, name)
        command = [test.args.xtrace, "record", "--simulate", "-o", self.data, *options, "--",
                   test.args.service, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        with open("/proc/%d/task/%d/children" % ((self.process.pid,) * 2), encoding="ascii") as file:
            self.pid = file.read().split()[0]
        self.said = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
            os.kill(int(self.pid), signal.SIGKILL)
        elif self.said is None:
            self.end()

    def do(self, *lines):
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n", line

    def end(self, status=0):
        self.process.stdin.close()
        self.said = self.process.stderr.read()
        self.process.stdout.read()
        assert self.process.wait(30) == status, self.said
        return self.said

    def status(self):
        return self.test.ps(self.data)[0]


class Test:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def xtrace(self, *words, status=0):
        done = subprocess.run([self.args.xtrace, *words], capture_output=True, text=True,
                              timeout=40, cwd=self.folder)
        assert done.returncode == status, "%s: status %d\n%s%s" % (
            words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def ps(self, *directories):
        return json.loads(self.xtrace("ps", "--json", *directories))["processes"]

    def dump(self, service, *words):
        log, = [name for name in os.listdir(service.data) if name.endswith(".xtr")]
        done = subprocess.run([sys.executable, "-B", self.args.dump, *words,
                               os.path.join(service.data, log)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def counts(self, service, status=0):
        """Pieces of GPU work by call path. None may be without a call."""
        text = self.xtrace("merge", "--folded", "-", "--weight", "count", service.data,
                           status=status)
        rows = [line.rsplit(" ", 1) for line in text.splitlines() if ";" in line]
        assert not [path for path, _ in rows if "unattributed" in path], text
        return {path: int(count) for path, count in rows}

    def check_complete(self, service):
        assert " 0 lost" in service.said, service.said
        text = self.xtrace("merge", "--quiet", "--text", "-", service.data)
        assert "trust: complete" in text, text
        assert "start-up" not in text, text


class Cycles(Test):
    """Armed, and started and stopped many times while threads launch, by two controllers."""

    def run(self):
        with Service(self, "--armed", threads=4) as service:
            state = service.status()
            assert (state["state"], state["launches"]) == ("armed", 0), state
            log = os.path.join(service.data, os.listdir(service.data)[0])
            time.sleep(1.2)
            before = os.path.getsize(log)
            time.sleep(1.2)
            assert os.path.getsize(log) - before < 100, "the log of an armed process grows"
            for _ in range(15):
                self.xtrace("start", service.pid)
                time.sleep(0.01)
                self.xtrace("stop", service.pid)
            launches = service.status()["launches"]
            assert launches > 0
            # The log of a stopped process is complete.
            text = self.xtrace("merge", "--quiet", "--text", "-", service.data)
            assert "trust: complete" in text, text
            assert "closed" in self.dump(service, "--check")
            time.sleep(0.1)
            assert service.status()["launches"] == launches
            # One of two controllers may find that the other's request came in between.
            controllers = [threading.Thread(target=self.loop, args=(service,)) for _ in range(2)]
            for controller in controllers:
                controller.start()
            for controller in controllers:
                controller.join()
            self.xtrace("start", service.data)
            time.sleep(0.2)
            state = service.status()
            assert state["state"] == "recording" and state["gpus"] == [0], state
            assert state["launches_per_second"] > 0 and state["lost"] == 0, state
            assert "recording" in self.xtrace("ps") and service.pid in self.xtrace("ps")
            service.end()
        assert sum(self.counts(service).values()) > launches
        self.check_complete(service)
        assert self.ps(service.data) == []

    def loop(self, service):
        for words in (["start", service.pid], ["stop", service.data]) * 10:
            done = subprocess.run([self.args.xtrace, *words], capture_output=True, text=True)
            assert done.returncode == 0 or "another request" in done.stderr, done.stderr


class Ranges(Test):
    """Ranges that are open when recording starts or stops."""

    def run(self):
        with Service(self, "--armed") as service:
            # The program pushed "before CUDA" before it initialised CUDA.
            service.do("pop", "push outer", "push gone", "start")
            self.xtrace("start", str(service.process.pid))  # xtrace record
            service.do("launch", "pop", "end", "push kept", "start", "launch")
            self.xtrace("stop", service.pid)
            service.do("launch", "pop", "end", "push unseen", "launch")
            self.xtrace("start", service.pid)
            service.do("pop", "launch", "push again", "launch", "pop", "pop")
            service.end()
        paths = self.counts(service)
        assert sum(paths.values()) == 4, paths
        inside = {name: sum(count for path, count in paths.items() if "[NVTX %s]" % name in path)
                  for name in ("before CUDA", "outer", "gone", "kept", "started", "unseen", "again")}
        assert inside == {"before CUDA": 0, "outer": 0, "gone": 0, "kept": 1, "started": 1, "unseen": 0,
                          "again": 1}, paths
        self.check_complete(service)


class Graphs(Test):
    """Graphs made before the first start have the path of their creation only with
    --armed=graphs. Those made after a stop always have it.
    """

    def run(self):
        for option, known in (("--armed", 2), ("--armed=graphs", 4)):
            with Service(self, option, name=option) as service:
                service.do("capture")
                self.xtrace("start", service.pid)
                service.do("replay")
                self.xtrace("stop", service.pid)
                service.do("replay", "capture")
                self.xtrace("start", service.pid)
                service.do("replay")
                service.end()
            paths = self.counts(service)
            made = sum(count for path, count in paths.items() if "make_graph" in path)
            assert (sum(paths.values()), made) == (4, known), (option, paths)
            self.check_complete(service)


class Times(Test):
    """--delay and --duration; the tracer stops by itself if the command is killed."""

    def run(self):
        with Service(self, "--armed", threads=2) as service:
            began = time.monotonic()
            text = self.xtrace("start", "--delay", "300ms", "--duration", "0.5s", service.pid)
            took = time.monotonic() - began
            assert 0.8 <= took < 3 and "recording stopped" in text, (took, text)
            assert service.status()["state"] == "stopped"
            switches = [int(line.split("time_ns=")[1].split()[0])
                        for line in self.dump(service, "--kind", "SWITCH").splitlines()
                        if line.startswith("SWITCH")]
            assert len(switches) == 3 and 0.5e9 <= switches[2] - switches[1] < 1e9, switches
            command = subprocess.Popen([self.args.xtrace, "start", "--duration", "0.7s",
                                        service.pid], stderr=subprocess.DEVNULL)
            self.wait_for(service, "recording")
            command.kill()
            command.wait()
            self.wait_for(service, "stopped")
            command = subprocess.Popen([self.args.xtrace, "start", "--duration", "100s",
                                        service.pid], stderr=subprocess.DEVNULL)
            self.wait_for(service, "recording")
            command.send_signal(signal.SIGINT)
            assert command.wait(10) == 0
            assert service.status()["state"] == "stopped"
            service.end()
        self.check_complete(service)

    def wait_for(self, service, state):
        deadline = time.monotonic() + 10
        while service.status()["state"] != state:
            assert time.monotonic() < deadline, service.status()
            time.sleep(0.02)


class Refusals(Test):
    """Processes that cannot be controlled, with the reason."""

    def run(self):
        with Service(self, "--paused", name="paused") as service:
            assert service.status()["state"] == "paused"
            self.xtrace("resume", service.pid)
            service.do("launch")
            self.xtrace("pause", service.pid)
            assert service.status()["state"] == "paused"
            service.end()
        assert sum(self.counts(service).values()) == 1
        for words, text in ((["start", "999999999"], "there is no process 999999999"),
                            (["start", str(os.getpid())], "does not carry xtrace"),
                            (["stop", "nowhere"], "No such file or directory"),
                            (["stop", service.data], "all have ended"),
                            (["stop", "--all", "1"], "choose one of"),
                            (["start", "--duration", "soon", "1"], "must be a time"),
                            (["start", "--duration", "60d"], "must be a time"),
                            (["start", "--delay", "9999999s", "1"], "to 49 days"),
                            (["start", "--duration", "0", "1"], "from 1ms"),
                            (["start", "4294967298"], "there is no process"),
                            (["record", "--armed", "--paused", "true"], "choose one of"),
                            (["record", "--armed=all", "true"], "--armed=graphs")):
            said = self.xtrace(*words, status=2)
            assert text in said, (words, said)
        with Service(self, "--armed", name="stopped") as service:
            os.kill(int(service.pid), signal.SIGSTOP)
            while b") T" not in open("/proc/%s/stat" % service.pid, "rb").read():
                time.sleep(0.01)
            said = self.xtrace("start", service.data, status=2)
            assert "stopped by a signal" in said, said
            os.kill(int(service.pid), signal.SIGCONT)
            # A child has its parent's maps, but is not traced.
            service.do("fork")
            rows = [row["pid"] for row in self.ps() if row["log"].startswith(service.data + "/")]
            assert rows == [int(service.pid)], rows
            self.xtrace("start", service.data)
            os.rename(service.data, service.data + ".moved")
            os.mkdir(service.data)
            self.xtrace("stop", service.pid)
            os.rmdir(service.data)
            os.rename(service.data + ".moved", service.data)
            for name in os.listdir(service.data):
                if name.endswith(".spool"):
                    os.unlink(os.path.join(service.data, name))
            said = self.xtrace("start", service.pid, status=2)
            assert "was deleted" in said, said


class Late(Test):
    """Before CUDA starts, 'start' waits. Before recording starts, there is no snapshot."""

    def run(self):
        data = os.path.join(self.folder, "late")
        command = [self.args.xtrace, "record", "--simulate", "--armed", "-o", data, "--",
                   "sh", "-c", 'echo waits; read go; exec "$0" 0', self.args.service]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as recorder:
            assert recorder.stdout.readline() == "waits\n"
            for target in (data, str(recorder.pid)):
                waiting = self.start(target)
                waiting.send_signal(signal.SIGINT)
                assert waiting.wait(10) == -signal.SIGINT, target
            said = self.xtrace("start", "--wait", "10ms", data, status=2)
            assert "has started CUDA yet" in said, said
            waiting = self.start("--wait", "50s", data)
            recorder.stdin.write("go\n")
            recorder.stdin.flush()
            assert recorder.stdout.readline() == "ready\n"
            said = waiting.communicate(timeout=50)[1]
            assert waiting.returncode == 0 and "is recording" in said, said
            recorder.stdin.write("launch\n")
            recorder.stdin.flush()
            assert recorder.stdout.readline() == "done\n"
            said = recorder.communicate(timeout=50)[1]
            assert recorder.returncode == 0 and "1 launch" in said, said
        with Service(self, "--armed") as service:
            said = self.xtrace("snapshot", service.pid, status=2)
            assert "nothing has been recorded yet" in said, said
            assert not os.path.exists(os.path.join(service.data, "snapshots"))

    def start(self, *words):
        command = subprocess.Popen([self.args.xtrace, "start", *words], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = command.stderr.readline()
        assert "starts CUDA" in said, said
        return command


class Full(Test):
    """A log that has reached --max-size cannot be started again."""

    def run(self):
        with Service(self, "--armed", "--max-size", "256K", threads=8) as service:
            self.xtrace("start", service.pid)
            deadline = time.monotonic() + 20
            while service.status()["state"] != "full":
                assert time.monotonic() < deadline, service.status()
                time.sleep(0.05)
            self.xtrace("stop", service.pid, status=2)
            said = self.xtrace("start", service.pid, status=2)
            assert "has reached --max-size" in said, said
            assert service.status()["problem"] == "the log has reached --max-size"
            self.check_shown(service)
            service.end()
        text = self.xtrace("report", "--text", "--all", service.data, status=1)
        assert re.search(r"\nrecorded +only until \S+ \S+, when the log reached --max-size\n",
                         text), text

    def check_shown(self, service):
        """What is lost is counted; what a full log does not tell is not shown as 0."""
        lost = service.status()["lost"]
        top = json.loads(self.xtrace("top", "--json", "--interval", "300ms", service.data))
        process, = top["processes"]
        assert lost > 0 and process["lost"] >= lost, (lost, process)
        assert process["busy_ratio"] is None, process
        assert set(process["idle_ratios"].values()) == {None}, process
        text = self.xtrace("top", "--once", "--interval", "300ms", service.data)
        assert re.search(r" full +\S+ +- +- +\S+ \S+ +[\d,]+ +- ", text), text
        assert "GPU idle %: -\n" in text, text


class Killed(Test):
    """A process that is killed while stopped, and while recording, is recovered."""

    def run(self):
        for state in ("stopped", "recording"):
            with Service(self, "--armed", threads=2, name=state) as service:
                self.xtrace("start", service.pid)
                time.sleep(0.1)
                if state == "stopped":
                    self.xtrace("stop", service.pid)
                os.kill(int(service.pid), signal.SIGKILL)
                service.end(128 + signal.SIGKILL)
            assert self.ps(service.data) == []
            # The last kernels had no times yet.
            assert sum(self.counts(service, status=int(state == "recording")).values()) > 0
            if state == "stopped":
                assert " 0 lost" in service.said, service.said


PARTS = {part.__name__.lower(): part for part in (Cycles, Ranges, Graphs, Times, Refusals, Late, Full,
                                              Killed)}


def main(parts, *arguments):
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "dump", "service", *arguments):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("part", choices=parts)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-control.") as folder:
        parts[args.part](args, folder).run()


if __name__ == "__main__":
    try:
        main(PARTS)
    except AssertionError as error:
        sys.exit(str(error))
