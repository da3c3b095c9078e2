#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input for running services: each time a clear message, and the service continues.

Runs on the simulated GPU. The parts user, setuid and disk need root, else they are skipped.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback

import control_test
import snapshot_test
from control_test import Service

SKIPPED = 77
NOBODY = 65534


class Test(snapshot_test.Test):
    def await_text(self, find, text):
        deadline = time.monotonic() + 10
        while text not in (found := find()):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def ps_text(self, *words):
        done = subprocess.run([self.args.xtrace, "ps", *words], capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    def need_root(self):
        if os.geteuid():
            print("only root can do this")
            sys.exit(SKIPPED)


class Deleted(Test):
    """A deleted trace directory: recording ends, the program does not, and every command says why."""

    def run(self):
        for option, threads in (("--api=all", 2), ("--armed", 0), ("--paused", 0)):
            with Service(self, option, threads=threads, name="gone") as service:
                shutil.rmtree(service.data)
                self.await_text(self.ps_text, "process %s records nothing, because its trace directory "
                                "was deleted" % service.pid)
                for word in ("start", "stop", "snapshot"):
                    for pid in (service.pid, str(service.process.pid)):
                        said = self.xtrace(word, pid, status=2)
                        assert "its trace directory was deleted" in said, said
                said = self.xtrace("stop", service.data, status=2)
                assert "No such file or directory" in said, said
                if threads:
                    self.await_end_of_writes(service)
                service.do("launch")
                service.end()
            assert service.said.count("was deleted") == 1, service.said
            # The others may end before the tracer looks.
            assert not threads or "recording ends: %s/" % service.data in service.said, service.said
        self.check_log_only()

    def await_end_of_writes(self, service):
        """The deleted log still takes space on disk, but stops growing."""
        folder = "/proc/%s/fd" % service.pid
        log, = [os.path.join(folder, name) for name in os.listdir(folder)
                if os.readlink(os.path.join(folder, name)).endswith(".xtr (deleted)")]
        deadline, sizes = time.monotonic() + 10, [-1]
        while len(sizes) < 4 or len(set(sizes[-3:])) > 1:
            assert time.monotonic() < deadline, "the log grows"
            sizes.append(os.stat(log).st_size)
            time.sleep(0.4)

    def check_log_only(self):
        """Only the log is deleted, so the process can be asked."""
        with Service(self, name="log") as service:
            os.unlink(self.log(service))
            self.await_text(lambda: json.dumps(self.status_of(service)), '"stopped"')
            said = self.xtrace("start", service.pid, status=2)
            assert "the log was deleted" in said, said
            service.do("launch")
            service.end()
        assert service.said.count("was deleted") == 1, service.said

    def status_of(self, service):
        rows = [row for row in self.ps() if row["pid"] == int(service.pid)]
        return rows[0] if rows else None


class Together(Test):
    """Commands at the same time: each ends with a clear message, and the service continues."""

    def run(self):
        with Service(self, "--armed", threads=2) as service:
            for words in (("start", "start"), ("start", "stop"), ("stop", "stop"), ("start", "snapshot"),
                          ("snapshot", "snapshot", "snapshot")):
                for _ in range(2):
                    self.at_once(service, words)
            self.xtrace("start", service.pid)
            assert service.status()["state"] == "recording"
            service.end()
        self.check_complete(service)
        for path in self.snapshots(service):
            self.check(path)

    def at_once(self, service, words):
        began = time.monotonic()
        commands = [subprocess.Popen([self.args.xtrace, word, service.pid], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True) for word in words]
        said = [command.communicate(timeout=30)[1] for command in commands]
        assert time.monotonic() - began < 10, words
        for command, text in zip(commands, said):
            assert command.returncode == 0 or "another request" in text, (words, text)
        assert 0 in [command.returncode for command in commands], (words, said)


class Constant(Test):
    """A trigger that always fires: it is counted, and takes as many snapshots as allowed."""

    def run(self):
        for limits, count in (((), 1), (("--snapshot-interval", "1ms", "--snapshot-max", "2"), 2)):
            with Service(self, "--flight-recorder", "30s", "--snapshot-on", "range:always>1us", *limits,
                         name=str(count)) as service:
                service.do("launch")
                ranges = self.push_for(service, 0.4 * count)
                self.await_snapshots(service, count)
                service.end()
            assert len(self.snapshots(service)) == count
            assert service.said.count("snapshot (range:always>1us)") == count, service.said
            counters = self.counters(self.log(service))
            assert counters["snapshots.automatic"] == count, counters
            assert counters["snapshots.triggers"] == ranges, (counters, ranges)
            for path in [*self.snapshots(service), self.log(service)]:
                self.check(path)


    def push_for(self, service, seconds):
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            service.do("push always", "pop")
            count += 1
        return count


class Static(Test):
    """A statically linked program, and one without CUDA."""

    def run(self):
        for program, status in (([self.args.static_program], 7), (["cat"], 0)):
            data = os.path.join(self.folder, "data")
            process = subprocess.Popen([self.args.xtrace, "record", "--simulate", "--armed", "-o", data,
                                        "--", *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            if status:
                assert process.stdout.readline() == "ready\n"
            for word in ("start", "stop", "snapshot"):
                wait = ["--wait", "10ms"] if word == "start" else []
                said = self.xtrace(word, *wait, str(process.pid), status=2)
                assert "does not carry xtrace, or has not started CUDA yet" in said, said
            said = process.communicate()[1]
            assert process.returncode == status, (process.returncode, said)
            assert "nothing was recorded" in said, said
            assert ("is a static program" in said) == (status != 0), said


class User(Test):
    """Another user can neither see nor control a service."""

    def run(self):
        self.need_root()
        os.chmod(self.folder, 0o755)
        copy = os.path.join(self.folder, "xtrace")
        shutil.copy(self.args.xtrace, copy)
        with Service(self, "--armed") as service:
            for words, text in ((["start", service.pid], "it belongs to another user"),
                                (["stop", service.pid], "it belongs to another user"),
                                (["snapshot", service.pid], "it belongs to another user"),
                                (["start", service.data], "Permission denied"),
                                (["ps", service.data], "Permission denied"),
                                (["start", "--all"], "no running process carries xtrace")):
                done = subprocess.run(as_nobody([copy, *words]), capture_output=True, text=True, timeout=20)
                assert done.returncode == 2 and text in done.stderr, (words, done.stderr)
            done = subprocess.run(as_nobody([copy, "ps"]), capture_output=True, text=True, timeout=20)
            assert service.pid not in done.stdout and "belong to other users" in done.stderr, done.stderr
            assert service.status()["state"] == "armed"
            service.do("launch")
            service.end()


def as_nobody(command):
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *command]


class Setuid(Test):
    """A service that changes its user. The user who started it controls it."""

    def run(self):
        self.need_root()
        os.chmod(self.folder, 0o755)
        self.check_control()
        self.check_flight_recorder()

    def check_control(self):
        with Service(self, "--armed", threads=2) as service:
            service.do("become %d" % NOBODY)
            self.xtrace("start", service.pid)
            assert service.status()["state"] == "recording"
            service.do("launch")
            # The folder of the snapshots belongs to root.
            said = self.xtrace("snapshot", service.pid, status=2)
            assert "Permission denied" in said, said
            self.xtrace("stop", service.data)
            assert service.status()["state"] == "stopped"
            self.xtrace("start", service.pid)
            service.end()
        self.check_complete(service)

    def check_flight_recorder(self):
        """It creates files, so the directory must belong to the later user."""
        with self.flight_recorder(0) as of_root, self.flight_recorder(NOBODY) as of_nobody:
            self.check_right_user(of_nobody)
            self.await_text(lambda: of_root.status()["state"], "full")
            for service in (of_root, of_nobody):
                service.do("launch")
                service.end()
        assert "recording stops" not in of_nobody.said and " 0 lost" in of_nobody.said, of_nobody.said
        self.check(self.log(of_nobody))
        assert "cannot remove the oldest events" in of_root.said, of_root.said
        assert "recording stops" in of_root.said, of_root.said

    def flight_recorder(self, owner):
        name = "flight%d" % owner
        data = os.path.join(self.folder, name)
        os.mkdir(data, 0o700)
        os.chown(data, owner, owner)
        service = Service(self, "--flight-recorder", "1s", threads=1, name=name)
        service.do("become %d" % NOBODY)
        return service

    def check_right_user(self, service):
        log = self.log(service)
        inode, deadline = os.stat(log).st_ino, time.monotonic() + 10
        while os.stat(log).st_ino == inode:
            assert time.monotonic() < deadline, "the log is never compacted"
            time.sleep(0.05)
        self.xtrace("snapshot", service.pid)
        path, = self.snapshots(service)
        assert os.stat(path).st_uid == os.stat(log).st_uid == NOBODY
        self.check(path)


class Disk(Test):
    """A full disk: a small file system is filled while the service records."""

    def run(self):
        self.need_root()
        data = os.path.join(self.folder, "data")
        os.mkdir(data)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "tmpfs", data], capture_output=True,
                              text=True)
        if done.returncode:
            print("cannot mount: %s" % done.stderr.strip())
            sys.exit(SKIPPED)
        try:
            self.fill(data)
        finally:
            subprocess.run(["umount", "--lazy", data], check=True)

    def fill(self, mounted):
        with Service(self, threads=2, name="data/trace") as service:
            filler = os.path.join(mounted, "filler")
            with open(filler, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(1 << 16))
                except OSError:
                    pass
            said = self.xtrace("snapshot", service.pid, status=2)
            assert "No space left on device" in said, said
            assert not self.snapshots(service)
            self.await_text(self.ps_text, "the log cannot be written: No space left on device")
            service.do("launch")
            os.unlink(filler)
            self.await_text(lambda: str("problem" in service.status()), "False")
            self.xtrace("snapshot", service.pid)
            service.end()
        assert service.said.count("cannot write the log") == 1, service.said
        assert "all events kept in memory are saved" in service.said, service.said
        # Events that did not fit into memory are lost and counted.
        done = subprocess.run([sys.executable, "-B", self.args.dump, "--check", self.log(service),
                               *self.snapshots(service)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


PARTS = {part.__name__.lower(): part for part in (Deleted, Together, Constant, Static, User, Setuid, Disk)}

if __name__ == "__main__":
    try:
        control_test.main(PARTS, "static_program")
    except AssertionError as error:
        sys.exit(str(error) or traceback.format_exc())
