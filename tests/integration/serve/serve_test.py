#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace serve on the simulated GPU."""

import argparse
import concurrent.futures
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import openmetrics

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "control"))
from control_test import Service, Test  # noqa: E402

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


class Server:
    """xtrace serve on a free port. Ends with the `with` block."""

    def __init__(self, test, *arguments):
        self.process = subprocess.Popen([test.args.xtrace, "serve", "--metrics", "0", *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        cwd=test.folder)
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.stderr.read()
        self.port = urllib.parse.urlparse(self.url).port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.said = self.process.stderr.read()
        assert self.process.wait(20) == 0, self.said

    def fetch(self, method="GET", path="/metrics", headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def scrape(self):
        answer, content = self.fetch(headers={"Accept": OPENMETRICS})
        assert answer.status == 200, answer.status
        kind = answer.getheader("Content-Type")
        assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", kind
        return openmetrics.read(content.decode())

    @staticmethod
    def find(samples, name, **wanted):
        """The only sample with these labels, or None."""
        found = [value for sample, labels, value in samples
                 if sample == "xtrace_" + name and wanted.items() <= labels.items()]
        assert len(found) < 2, found
        return found[0] if found else None

    def value(self, name, **wanted):
        return self.find(self.scrape(), name, **wanted)

    def wait(self, expected, name, **wanted):
        """Returns all samples of the scrape that had the value."""
        deadline = time.monotonic() + 45
        while True:
            samples = self.scrape()
            value = self.find(samples, name, **wanted)
            if value == expected:
                return samples
            assert time.monotonic() < deadline, "%s is %s, not %s" % (name, value, expected)
            time.sleep(0.05)


class ServeTest(Test):
    def record(self, name, *command, options=()):
        return subprocess.run([self.args.xtrace, "record", "--simulate", "-o", name, *options,
                               "--", *command], cwd=self.folder, check=True, capture_output=True)

    def summary(self, name, status=0):
        self.xtrace("merge", "--quiet", "--summary", "summary.json", name, status=status)
        with open(os.path.join(self.folder, "summary.json"), encoding="utf-8") as file:
            return json.load(file)


class Counts(ServeTest):
    """Counters agree with the report, never go down, and start again with the next process."""

    def compare(self, samples, name):
        values = dict.fromkeys(("xtrace_copies_total", "xtrace_copied_bytes_total"), 0)
        for sample, _, value in samples:
            values[sample] = values.get(sample, 0) + value
        summary = self.summary(name)
        totals, copies = summary["totals"], summary["copies"]["rows"]
        assert values["xtrace_kernels_total"] == totals["kernel_count"], values
        assert values["xtrace_launches_total"] == totals["launch_count"], values
        assert values["xtrace_copies_total"] == sum(row["count"] for row in copies), values
        assert values["xtrace_copied_bytes_total"] == sum(row["bytes"] for row in copies), values
        busy_ns = round(values["xtrace_gpu_busy_seconds_total"] * 1e9)
        assert busy_ns == summary["headline"]["gpu_busy_ns"], values
        idle_ns = round(values["xtrace_gpu_idle_seconds_total"] * 1e9)
        wanted_ns = summary["headline"]["gpu_idle_ns"]
        # The process may have run on after its last work.
        assert wanted_ns <= idle_ns <= wanted_ns + 1.5e9, (idle_ns, wanted_ns)
        assert values["xtrace_lost_events_total"] == values["xtrace_damaged_chunks_total"] == 0
        assert values["xtrace_allocated_bytes"] == 0, "all memory was freed"
        assert values["xtrace_tracer_seconds_total"] > 0, values

    def check_dashboard(self, samples):
        """Grafana's queries name series that exist."""
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools",
                            "grafana", "xtrace.json")
        with open(path, encoding="ascii") as file:
            text = json.dumps(json.load(file)["panels"])
        names = set(re.findall(r"xtrace_\w+", text))
        assert len(names) > 5 and names <= {name for name, _, _ in samples}, names

    def check_paths(self, samples, name):
        """The call paths with most GPU time have the time that the report gives them, except for
        kernels that the log has before their call.
        """
        served = [(round(value * 1e9), labels["path"].split(";")[-3:])
                  for sample, labels, value in samples if sample == "xtrace_path_gpu_seconds_total"]
        self.xtrace("merge", "--folded", "paths.txt", name)
        with open(os.path.join(self.folder, "paths.txt"), encoding="utf-8") as file:
            rows = [line.rsplit(" ", 1) for line in file]
        expected = sorted(((int(ns), path.split(";")[-5:-2]) for path, ns in rows), reverse=True)
        assert [path for _, path in served] == [path for _, path in expected[:2]], (served,
                                                                                    expected)
        assert all(0.99 * wanted <= ns <= wanted for (ns, _), (wanted, _) in
                   zip(served, expected)), (served, expected)

    def run(self):
        # xtrace record may end later than --keep if the machine is busy, so look meanwhile.
        with Server(self, "--paths", "2", "--keep", "3s", "one", "two") as server, \
                concurrent.futures.ThreadPoolExecutor() as pool:
            assert server.value("processes") == 0
            for name in ("one", "two"):
                last = {}
                # Two threads, so that work of two streams overlaps.
                with Service(self, threads=2, name=os.path.join(self.folder, name)) as service:
                    server.wait(1, "state", pid=service.pid, state="recording")
                    for _ in range(4):
                        for sample, labels, value in server.scrape():
                            key = sample, tuple(labels.items())
                            assert not sample.endswith("_total") or value >= last.get(key, 0), key
                            last[key] = value
                        time.sleep(0.1)
                    assert server.value("kernels_total", pid=service.pid) > 0
                    pid = service.pid
                    ended = pool.submit(server.wait, 1, "state", pid=pid, state="ended")
                samples = ended.result()
                self.compare([row for row in samples if row[1].get("pid") == pid], name)
                server.wait(None, "state", pid=pid, state="ended")
            assert len(server.scrape()) == 1, "only xtrace_processes stays"
            recorded = pool.submit(self.record, "one", self.args.sample, "--tokens", "3000",
                                   "--dim", "64")
            samples = server.wait(1, "state", state="ended")
            recorded.result()
            self.compare(samples, "one")
            self.check_dashboard(samples)
            self.check_paths(samples, "one")
        assert "waiting for it" in server.said and len(server.said.splitlines()) == 2, server.said


class Long(ServeTest):
    """A kernel is in the log when it has ended. Until then, its time is not idle."""

    def run(self):
        os.environ["XTRACE_SIMGPU_KERNEL_NS"] = "2200000000:2200000000"
        with Server(self, "data") as server:
            with Service(self) as service:
                server.wait(1, "state", pid=service.pid, state="recording")
                service.do("launch")
                time.sleep(0.5)
                service.do("launch")
            samples = server.wait(1, "state", pid=service.pid, state="ended")
        values = {cause: value for name, labels, value in samples
                  for cause in (labels.get("cause", name),)}
        busy_ns = round(values["xtrace_gpu_busy_seconds_total"] * 1e9)
        assert busy_ns == self.summary("data")["headline"]["gpu_busy_ns"], values
        assert busy_ns >= 4.4e9 and values["nothing submitted"] < 1, values


class Compacted(ServeTest):
    """A log that is compacted again and again is counted completely."""

    def run(self):
        with Server(self, "data") as server:
            self.record("data", self.args.sample, "--tokens", "6000", "--dim", "64",
                        options=("--max-size", "1500K:newest"))
            server.wait(1, "state", state="ended")
            assert self.summary("data", status=1)["totals"]["kernel_count"] < 6000 * 72
            counts = server.value("kernels_total"), server.value("launches_total")
            assert counts == (6000 * 72, 6000 * 72), counts
            assert server.value("lost_events_total", reason="other") == 0
            assert server.value("lost_events_total", reason="size_limit") > 0


class Names(ServeTest):
    """Labels are escaped, and every command that xtrace can inspect is found."""

    def run(self):
        name = 'a "quoted" \\ na\nme \xff'
        program = os.path.join(self.folder.encode(), name.encode("latin-1"))
        shutil.copy(self.args.service, program)
        self.args.service = program
        with Service(self) as service, Server(self) as server:
            server.wait(1, "state", pid=service.pid)
            commands = {labels["command"] for _, labels, _ in server.scrape()
                        if labels.get("pid") == service.pid}
            assert commands == {'a "quoted" \\ na?me ?'}, commands


class Http(ServeTest):
    """Wrong requests, slow clients and many scrapes do no harm."""

    def check_answers(self, server):
        answer, text = server.fetch()
        assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
        assert b"EOF" not in text and b"UNIT" not in text, text
        assert b"# TYPE xtrace_kernels_total counter\n" in text, text
        answer, nothing = server.fetch("HEAD")
        assert answer.status == 200 and not nothing
        assert int(answer.getheader("Content-Length")) == len(text)
        for path in ("/", "/metrics/", "/metricsx", "//metrics", "/%2fmetrics", "*"):
            assert server.fetch(path=path)[0].status == 404, path
        assert server.fetch(path="/metrics?x=y")[0].status == 200
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"):
            assert server.fetch(method)[0].status >= 400, method
        for wrong in ({"method": "POST", "body": b"x" * 99999}, {"headers": {"X": "y" * 20000}}):
            try:
                assert server.fetch(**wrong)[0].status >= 400
            except OSError:
                pass  # closed before all was sent

    def check_hosts(self, server):
        """A name that another page made point here is refused."""
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1:%d" % server.port, "127.1.2.3", "[::1]:80", None):
            assert self.status(server, host) == b"200", host
        for host in ("example.com", "localhost.example.com:80", "127.0.0.1.example.com", "10.0.0.1",
                     "[::2]", "", "127.0.0.1@example.com"):
            assert self.status(server, host) == b"421", host

    def status(self, server, host):
        header = "" if host is None else "Host: %s\r\n" % host
        with self.send(server, ("GET /metrics HTTP/1.0\r\n%s\r\n" % header).encode()) as client:
            return client.recv(100).split()[1]

    def check_slow_clients(self, server):
        """Idle and old ones of many connections end, and so do those whose request never ends."""
        answered = self.send_kept(server)
        clients = [answered] + [self.send(server, b"GET") for _ in range(255)]
        idle = self.send_kept(server)
        clients += [self.send(server, b"GET") for _ in range(44)]
        assert idle.recv(1) == b"", "the idle connection is open"
        clients[1].settimeout(10)
        assert clients[1].recv(1) == b"", "the oldest connection is open"
        slow = {clients[-1], self.send_kept(server)}
        started = time.monotonic()
        while slow and time.monotonic() - started < 20:
            for client in list(slow):
                try:
                    client.sendall(b"G")
                except OSError:
                    slow.remove(client)
                    client.close()
                    assert time.monotonic() - started > 2
            time.sleep(0.2)
        assert not slow, "a slow connection is open"
        assert len(server.scrape()) > 10
        for client in clients:
            client.close()

    def send_kept(self, server):
        """A connection that has had an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=8)
        connection.request("GET", "/metrics")
        assert connection.getresponse().read()
        return connection.sock

    def send(self, server, data):
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(data)
        return client

    def run(self):
        with Server(self, "data") as server, Service(self, threads=1, name="data") as service:
            server.wait(1, "state", pid=service.pid)
            self.check_answers(server)
            self.check_hosts(server)
            self.check_slow_clients(server)
            request = b"GET /metrics HTTP/1.1\r\n"
            clients = [self.send(server, data) for data in 100 * [
                b"", b"GET", request, request + b"\r\n" + request + b"\r\n", b"\0\xff\r\n\r\n"]]
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                started = time.monotonic()
                scrapes = list(pool.map(lambda _: server.scrape(), range(60)))
                assert time.monotonic() - started < 10
            assert all(len(scrape) > 10 for scrape in scrapes)
            for client in clients:
                client.close()
            assert len(server.scrape()) > 10


class Prometheus(ServeTest):
    """Debian's Prometheus scrapes the server and answers queries."""

    def query(self, port, expression):
        url = "http://127.0.0.1:%d/api/v1/query?%s" % (
            port, urllib.parse.urlencode({"query": expression}))
        with urllib.request.urlopen(url, timeout=5) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]["result"]

    def wait_for_query(self, port, expression):
        deadline = time.monotonic() + 40
        while True:
            try:
                result = self.query(port, expression)
                if result:
                    return result
            except OSError:
                pass  # it is still starting
            assert time.monotonic() < deadline, "no answer to " + expression
            time.sleep(0.5)

    def check(self, server):
        text = server.fetch()[1]
        subprocess.run(["promtool", "check", "metrics"], input=text, check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with open(os.path.join(self.folder, "prometheus.yml"), "w", encoding="ascii") as file:
            file.write("scrape_configs:\n- job_name: xtrace\n  scrape_interval: 1s\n"
                       "  static_configs:\n  - targets: ['127.0.0.1:%d']\n" % server.port)
        prometheus = subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
             "--web.listen-address=127.0.0.1:%d" % port], cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            up, = self.wait_for_query(port, 'up{job="xtrace"} == 1')
            rate, = self.wait_for_query(port, "rate(xtrace_gpu_busy_seconds_total[5s]) > 0")
            launches, = self.wait_for_query(port, "rate(xtrace_launches_total[5s]) > 0")
            assert up and rate["metric"]["command"] == "control_service", rate
            busy = float(rate["value"][1])
            assert 0 < busy <= 1.05, busy
            print("Prometheus: GPU busy %.1f %%, %.0f launches/s"
                  % (100 * busy, float(launches["value"][1])))
        finally:
            prometheus.terminate()
            prometheus.wait(20)

    def run(self):
        if not shutil.which("prometheus") or not shutil.which("promtool"):
            print("skipped: prometheus is not installed")
            sys.exit(77)
        with Server(self, "data") as server, Service(self, threads=2, name="data"):
            self.check(server)


PARTS = {part.__name__.lower(): part for part in (Counts, Long, Compacted, Names, Http, Prometheus)}


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "service", "sample"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("part", choices=PARTS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-serve.") as folder:
        PARTS[args.part](args, folder).run()


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit("%s: %s" % (type(error).__name__, error) if not str(error) else str(error))
