#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the flight recorder and snapshots, on the simulated GPU."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

import control_test
from control_test import Service

SECOND = 10 ** 9


class Test(control_test.Test):
    def check(self, log):
        """The log is complete, to both readers."""
        done = subprocess.run([sys.executable, "-B", self.args.dump, "--check", log],
                              capture_output=True, text=True)
        assert done.returncode == 0 and ", closed" in done.stdout, done.stdout + done.stderr
        text = self.xtrace("merge", "--quiet", "--text", "-", "--all", log)
        assert "trust: complete" in text, text
        assert "+ lost 0;" in text, text
        return text

    def rows(self, log, kind, is_open=False):
        """is_open: the log is being written, so its last part may be incomplete."""
        done = subprocess.run([sys.executable, "-B", self.args.dump, "--format", "json", "--kind",
                               kind, log], capture_output=True, text=True)
        assert not done.returncode or (is_open and done.returncode == 1), done
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return [row for row in rows if row.get("record") == "row" and row["kind"] == kind]

    def trigger(self, log):
        meta = {row["key"]: row["value"] for row in self.rows(log, "META")}
        return meta.get("snapshot.trigger")

    def snapshots(self, service):
        folder = os.path.join(service.data, "snapshots")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(os.path.join(folder, name) for name in names)

    def log(self, service):
        name, = [name for name in os.listdir(service.data) if name.endswith(".xtr")]
        return os.path.join(service.data, name)

    def await_snapshots(self, service, count):
        deadline = time.monotonic() + 10
        while len([path for path in self.snapshots(service) if path.endswith(".xtr")]) < count:
            assert time.monotonic() < deadline, "%s, not %d" % (self.snapshots(service), count)
            time.sleep(0.02)

    def counters(self, log):
        return {row["name"]: row["value"] for row in self.rows(log, "ACCOUNT")}


class Newest(Test):
    """A time: the log has at most twice as much, and every event of that time."""

    def run(self):
        times = []
        with Service(self, "--flight-recorder", "1s") as service:
            log, sizes = self.log(service), []
            while len(times) < 400:
                began = time.monotonic_ns()
                service.do("launch")
                times.append((began, time.monotonic_ns()))
                sizes.append(os.path.getsize(log))
                time.sleep(0.01)
                if len(times) == 300:
                    said = self.xtrace("snapshot", service.pid)
                    middle, = self.snapshots(service)
                    assert middle in said, said
                    self.check_newest(middle, times)
            assert max(sizes[300:]) < 1.2 * max(sizes[:300]), sizes
            service.end()
        self.check_newest(log, times)
        assert " 0 lost" in service.said, service.said
        self.check(middle)
        # Launches whose kernels were dropped do not appear.
        text = self.xtrace("merge", "--quiet", "--text", "-", "--all", service.data)
        assert "without a recorded kernel" not in text, text
        # The log and its snapshot are not added up.
        assert sum(self.counts(service).values()) == len(self.rows(log, "KERNEL"))

    def check_newest(self, log, times):
        text = self.check(log)
        newest = r"\nrecorded +the newest \d+\.\d+ s, from \d+\.\d+ s on \(flight recorder\)"
        asked = r"; snapshot at \d+\.\d+ s, on request\n" if "snapshot" in log else r"\n"
        assert re.search(newest + asked, text), text
        starts = [row["start_ns"] for row in self.rows(log, "KERNEL")]
        end = times[-1][1]
        wanted = [span for span in times if span[0] > end - SECOND]
        missing = [span for span in wanted if not any(span[0] <= s <= span[1] for s in starts)]
        assert len(wanted) > 3 and not missing, (len(wanted), missing)
        assert min(starts) > end - 3.5 * SECOND, (end - min(starts)) / SECOND
        assert self.trigger(log) == ("request" if "snapshot" in log else None)


class Size(Test):
    """A size: threads launch all the time, and snapshots lose nothing."""

    def run(self):
        with Service(self, "--flight-recorder", "512K", threads=4) as service:
            log = self.log(service)
            service.do("alloc", "alloc")
            for number in range(1, 6):
                time.sleep(0.3)
                self.xtrace("snapshot", service.data)
                assert len(self.snapshots(service)) == number
                assert os.path.getsize(log) <= 1.05 * (512 << 10)
            self.check_memory(service, log)
            self.xtrace("stop", service.pid)
            self.xtrace("snapshot", service.pid)
            self.xtrace("start", service.pid)
            service.end()
        for path in [*self.snapshots(service), log]:
            self.check(path)
        assert " 0 lost" in service.said, service.said
        # A new recording replaces the trace with its snapshots.
        for kept in (True, False):
            with Service(self) as service:
                service.do("launch")
            assert os.path.isdir(service.data + ".old/snapshots") == kept
        assert not self.snapshots(service)

    def check_memory(self, service, log):
        """The log lacks the allocations, but says how much there was."""
        assert not self.rows(log, "MEMORY", is_open=True)
        for expected in (2 << 20, 1 << 20):
            top = json.loads(self.xtrace("top", "--json", "--interval", "10ms", service.data))
            assert top["processes"][0]["allocated_bytes"] == expected, (top, expected)
            if expected == 2 << 20:
                service.do("free")
                time.sleep(0.5)


class Triggers(Test):
    """Each trigger takes one snapshot with its name, and keeps to its limits."""

    def run(self):
        every = ("--snapshot-interval", "1ms", "--flight-recorder", "30s")
        with Service(self, *every, "--snapshot-on", "range:a,step>100ms",
                     "--snapshot-on", "error,oom") as service:
            service.do("push a,step", "pop", "push other", "launch")
            time.sleep(0.12)
            service.do("pop", "launch")
            assert not self.snapshots(service)
            service.do("push a,step")
            time.sleep(0.12)
            service.do("launch", "pop")
            self.await_snapshots(service, 1)
            service.do("launch", "fail")
            self.await_snapshots(service, 2)
            service.do("launch", "oom", "launch")
            self.await_snapshots(service, 3)
            service.end()
        found = [self.trigger(path) for path in self.snapshots(service)]
        assert found == ["range:a,step>100ms", "error", "oom"], found
        for path, trigger in zip(self.snapshots(service), found):
            text = self.check(path)
            assert re.search(r"\nrecorded +snapshot at .*s, triggered by %s\n" % trigger, text), text
            assert path in service.said, service.said
        self.check_limits()
        self.check_hang()

    def check_limits(self):
        with Service(self, "--snapshot-on", "error", name="interval") as service:
            service.do("fail")
            self.await_snapshots(service, 1)
            service.do("fail", "fail")
            time.sleep(0.3)
            service.end()
        assert len(self.snapshots(service)) == 1
        counters = self.counters(self.log(service))
        assert (counters["snapshots.automatic"], counters["snapshots.triggers"]) == (1, 3), counters
        with Service(self, "--snapshot-on", "error", "--snapshot-interval", "1ms",
                     "--snapshot-max", "2", name="count") as service:
            for number in (1, 2, 2):
                service.do("fail")
                self.await_snapshots(service, number)
                time.sleep(0.1)
            service.end()
        assert len(self.snapshots(service)) == 2

    def check_hang(self):
        os.environ["XTRACE_SIMGPU_KERNEL_NS"] = "1500000000:1500000000"
        with Service(self, "--snapshot-on", "hang>500ms", name="hang") as service:
            service.do("launch")
            self.await_snapshots(service, 1)
            service.end()
        path, = self.snapshots(service)
        assert self.trigger(path) == "hang>500ms"
        self.check(path)


class Unusual(Test):
    """Triggers that compare with the median, and allocations that are retried."""

    def run(self):
        every = ("--snapshot-interval", "1ms", "--flight-recorder", "30s")
        with Service(self, *every, "--snapshot-on", "range:step>20x", name="ranges") as service:
            self.ranges(service, 15)
            self.ranges(service, 1, 0.2)  # there is no median yet
            self.ranges(service, 8)
            time.sleep(0.3)  # between ranges
            assert not self.snapshots(service)
            self.ranges(service, 1, 0.3)
            self.await_snapshots(service, 1)
            service.end()
        self.check_triggers(service, "range:step>20x")
        with Service(self, *every, "--snapshot-on", "iteration>50x,iteration>200ms",
                     name="launches") as service:
            service.do("steps 500 1")
            # A pause of recording is no long iteration.
            self.xtrace("stop", service.pid)
            time.sleep(0.3)
            self.xtrace("start", service.pid)
            service.do("steps 1 1")
            time.sleep(0.3)
            assert not self.snapshots(service)
            service.do("steps 2 100", "steps 1 1")
            self.await_snapshots(service, 1)
            service.do("steps 2 250", "steps 1 1")
            self.await_snapshots(service, 2)
            service.end()
        first, second = [self.trigger(path) for path in self.snapshots(service)]
        assert first == "iteration>50x" and second in ("iteration>50x", "iteration>200ms")
        self.check_retry(every)

    def check_triggers(self, service, *wanted):
        found = [self.trigger(path) for path in self.snapshots(service)]
        assert found == list(wanted), found
        for path in self.snapshots(service):
            self.check(path)

    def ranges(self, service, count, seconds=0.005):
        for _ in range(count):
            service.do("push step", "launch")
            time.sleep(seconds)
            service.do("pop")

    def check_retry(self, every):
        with Service(self, *every, "--api", "all", "--snapshot-on", "error,oom",
                     name="retry") as service:
            service.do("launch", "retry", "launch", "query", "launch")
            time.sleep(1.3)
            assert not self.snapshots(service)
            # The program continues without memory, or waits.
            service.do("oom", "launch")
            self.await_snapshots(service, 1)
            service.do("retry", "oom")
            self.await_snapshots(service, 2)
            service.do("fail")
            self.await_snapshots(service, 3)
            service.end()
        self.check_triggers(service, "oom", "oom", "error")


class Faults(Test):
    """Full disk, a deleted directory, and a kill during a snapshot."""

    def run(self):
        fault = os.path.join(self.folder, "fault")
        os.environ.update(XT_DISK_FAULT=fault, LD_PRELOAD=self.args.disk_fault)
        with Service(self, "--flight-recorder", "30s", threads=2, name="full") as service:
            with open(fault, "w", encoding="ascii") as file:
                file.write("full")
            said = self.xtrace("snapshot", service.pid, status=2)
            assert "No space left on device" in said, said
            assert not self.snapshots(service)
            os.unlink(fault)
            self.xtrace("snapshot", service.pid)
            shutil.rmtree(service.data)
            said = self.xtrace("snapshot", service.pid, status=2)
            assert "was deleted" in said, said
            service.end()
        with Service(self, "--snapshot-on", "error", name="gone") as service:
            os.rename(service.data, service.data + ".moved")
            service.do("fail")
            time.sleep(0.5)
            os.rename(service.data + ".moved", service.data)
            service.end()
        assert "cannot write a snapshot (error): No such file" in service.said, service.said
        assert not self.snapshots(service)
        self.check_kill(fault)

    def check_kill(self, fault):
        with Service(self, threads=2, name="killed") as service:
            with open(fault, "w", encoding="ascii"):
                pass
            command = subprocess.Popen([self.args.xtrace, "snapshot", service.pid],
                                       stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 10
            while not self.snapshots(service):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            draft, = self.snapshots(service)
            assert draft.endswith(".new")
            os.kill(int(service.pid), signal.SIGKILL)
            service.end(128 + signal.SIGKILL)
            said = command.communicate()[1]
            assert "it has ended" in said and command.returncode == 2, (said, command.returncode)
        assert not self.snapshots(service)
        assert sum(self.counts(service, status=1).values()) > 0


PARTS = {part.__name__.lower(): part for part in (Newest, Size, Triggers, Unusual, Faults)}

if __name__ == "__main__":
    try:
        control_test.main(PARTS, "disk_fault")
    except AssertionError as error:
        sys.exit(str(error) or traceback.format_exc())
