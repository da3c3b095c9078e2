#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Controls services in containers, from outside and from inside, on the simulated GPU.

A container is a process in its own PID, mount, network and IPC namespaces, and one of two also in
its own user namespace. Both share a trace directory, in which both have process id 1.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

SKIPPED = 77
SPACES = ["--pid", "--fork", "--mount", "--mount-proc", "--net", "--ipc"]
# A new network namespace has its loopback interface down.
LOOPBACK_UP = """
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sh", b"lo", 1).ljust(40, b"\\0"))
"""


def descendants(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        children = [int(word) for word in file.read().split()]
    return children + [found for child in children for found in descendants(child)]


def own_ids(pid):
    """The process id in each PID namespace, from the outermost."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return [int(word) for word in re.search(r"^NSpid:(.*)$", file.read(), re.M)[1].split()]


class Container:
    """A service. Sees the shared directory at its own path."""

    def __init__(self, test, spaces):
        self.test = test
        run = 'mount --bind "$0" "$1" && shift && exec "$@"'
        command = ["unshare", *spaces, "sh", "-c", run, test.shared, test.inside, test.args.service, "0"]
        self.process = subprocess.Popen(command, env=test.environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        self.pid, = [pid for pid in descendants(self.process.pid) if own_ids(pid)[-1] == 1]

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", line

    def xtrace(self, *words):
        return self.test.xtrace(*words, prefix=["nsenter", "--target", str(self.pid), "--all"])

    def end(self):
        self.process.stdin.close()
        said = self.process.stderr.read()
        assert self.process.wait(30) == 0 and not said, said


class Test:
    def __init__(self, args, folder):
        self.args = args
        self.shared, self.inside = os.path.join(folder, "shared"), os.path.join(folder, "inside")
        os.mkdir(self.shared)
        os.mkdir(self.inside)
        text = self.xtrace("env", "--format", "docker", "--simulate", "--armed", "-o", self.inside)
        self.environment = dict(os.environ, **dict(line.split("=", 1) for line in text.splitlines()
                                                   if "=" in line))

    def xtrace(self, *words, prefix=()):
        done = subprocess.run([*prefix, self.args.xtrace, *words], capture_output=True, text=True, timeout=40)
        assert done.returncode == 0, "%s: status %d\n%s%s" % (
            [*prefix, *words], done.returncode, done.stdout, done.stderr)
        return done.stdout

    def states(self, *words, container=None):
        rows = json.loads((container or self).xtrace("ps", "--json", *words))["processes"]
        return {row["pid"]: row["state"] for row in rows}

    def run(self):
        containers = [Container(self, SPACES), Container(self, [*SPACES, "--user", "--map-root-user"])]
        pids = [container.pid for container in containers]
        logs = sorted(name for name in os.listdir(self.shared) if name.endswith(".xtr"))
        assert len(logs) == 2 and logs[0].endswith(".1-2.xtr") and logs[1].endswith(".1.xtr"), logs
        assert self.states(self.shared) == dict.fromkeys(pids, "armed"), self.states(self.shared)
        states = self.states()
        assert {pid: states.get(pid) for pid in pids} == dict.fromkeys(pids, "armed"), states
        self.control_from_outside(containers)
        for container in containers:
            self.control_from_inside(container, containers)
        for container in containers:
            container.end()
        self.check_logs(logs)

    def control_from_outside(self, containers):
        one, other = containers
        self.xtrace("start", str(one.pid))
        assert self.states(self.shared) == {one.pid: "recording", other.pid: "armed"}
        self.xtrace("stop", str(one.pid))
        self.xtrace("start", self.shared)
        for container in containers:
            os.kill(container.pid, 0)
            container.do("launch")
        self.check_top(self.xtrace("top", "--once", "--json", self.shared), [one.pid, other.pid])
        self.check_metrics([self.args.xtrace, "serve", "--metrics", "0", self.shared], 2)
        for path in self.xtrace("snapshot", self.shared).split():
            assert os.path.dirname(path) == os.path.join(self.shared, "snapshots"), path
        path = self.xtrace("snapshot", str(one.pid)).strip()
        # The path as the process sees it.
        assert os.path.dirname(path) == os.path.join(self.inside, "snapshots"), path
        assert len(os.listdir(os.path.join(self.shared, "snapshots"))) == 3
        self.xtrace("stop", self.shared)
        assert self.states(self.shared) == dict.fromkeys([one.pid, other.pid], "stopped")

    def control_from_inside(self, container, containers):
        """It sees itself as process 1, and the log of the other without its process."""
        assert self.states(container=container) == {1: "stopped"}
        assert set(self.states(self.inside, container=container)) == {1, None}
        container.xtrace("start", "1")
        container.do("launch")
        container.xtrace("snapshot", "1")
        if container is containers[0]:
            self.check_top(container.xtrace("top", "--once", "--json"), [1])
        self.check_metrics(["nsenter", "--target", str(container.pid), "--all", sys.executable, "-c",
                            LOOPBACK_UP + "import os, sys\nos.execv(sys.argv[1], sys.argv[1:])",
                            self.args.xtrace, "serve", "--metrics", "0"], 1, container.pid)
        container.xtrace("stop", "1")
        assert self.states(str(self.shared)) == dict.fromkeys([one.pid for one in containers], "stopped")

    def check_top(self, text, pids):
        rows = json.loads(text)["processes"]
        assert sorted(row["pid"] for row in rows) == sorted(pids), text

    def check_metrics(self, command, count, inside=None):
        """Each process has its own series, though the process ids are equal."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                timer = threading.Timer(20, process.kill)
                timer.start()
                url = process.stdout.readline().strip()
                deadline = time.monotonic() + 10
                while not re.search(r"^xtrace_processes %d$" % count, text := self.fetch(url, inside), re.M):
                    assert time.monotonic() < deadline, text
                    time.sleep(0.05)
            finally:
                timer.cancel()
                process.kill()
        logs = re.findall(r'^xtrace_log_bytes\{.*log="([^"]+)"', text, re.M)
        assert len(set(logs)) == count == len(logs), text

    def fetch(self, url, inside):
        if inside is None:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        code = "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
        done = subprocess.run(["nsenter", "--target", str(inside), "--net", sys.executable, "-c", code, url],
                              capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def check_logs(self, logs):
        """Each has one launch from outside and one from inside."""
        for name in logs:
            text = self.xtrace("merge", "--folded", "-", "--weight", "count", os.path.join(self.shared, name))
            assert sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()) == 2, text
        for name in os.listdir(os.path.join(self.shared, "snapshots")):
            self.xtrace("merge", "--quiet", "--text", "-", os.path.join(self.shared, "snapshots", name))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--xtrace", required=True)
    parser.add_argument("--service", required=True)
    args = parser.parse_args()
    tried = subprocess.run(["unshare", *SPACES, "--user", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs",
                            "/tmp"], capture_output=True, text=True)
    if os.geteuid() or tried.returncode:
        print("cannot create namespaces: %s" % (tried.stderr.strip() or "not root"))
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="xtrace-spaces.") as folder:
        Test(args, folder).run()


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(str(error) or "failed")
