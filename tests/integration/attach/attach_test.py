#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace attach on the simulated GPU: programs that run without xtrace are attached."""

import argparse
import fcntl
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from careful_parts import Late, Places, Signals, Threads
from programs import LIBC, Program, Test, add_filter
from wait_parts import Waits

YAMA = "/proc/sys/kernel/yama/ptrace_scope"


class Service(Test):
    """A service is attached while its threads launch, recorded, stopped and started again."""

    def run(self):
        with self.service(4) as program:
            program.do("capture")
            text = self.attach(program, "--duration", "300ms")
            assert "attached process %d" % program.pid in text and "recording stopped" in text, text
            assert self.states(program.pid) == ["stopped"]
            before = sum(self.counts().values())
            assert before > 0
            trust = self.summary()["trust"]
            assert trust["word"] == "complete", trust
            assert "NVTX ranges are missing" in trust["reasons"][0], trust
            assert "attached" in self.xtrace("report", "--text", "--all", self.data)
            program.do("replay")
            self.xtrace("start", program.pid)
            program.do("replay")
            program.do("launch")
            self.xtrace("stop", program.pid)
            text = self.attach(program, status=2)
            assert "carries xtrace already" in text and "xtrace start" in text, text
            counts = self.counts()
            assert sum(counts.values()) > before
            assert sum(count for path, count in counts.items() if "launch_from_main" in path) == 1
            assert not [path for path in counts if "make_graph" in path], counts
            long = {"LD_LIBRARY_PATH": self.args.simgpu + ":/nowhere" * 2000}
            with self.service(1, variables=long) as second:  # joins the trace
                self.attach(second, "--armed")
                second.do("launch")
                time.sleep(0.1)
                assert self.states(second.pid) == ["armed"]
                assert len([name for name in os.listdir(self.data) if name.endswith(".xtr")]) == 2
                second.end()
            program.end()
        assert program.said == "", program.said


PYTHON = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
image = b".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry kernel() { ret; }\\n"
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuModuleLoadData(ctypes.byref(module), image)
assert not cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"kernel")

def launch_in_python():
    assert not cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)

print("ready", flush=True)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    launch_in_python()
    time.sleep(0.001)
cuda.cuCtxSynchronize()
print("done", flush=True)
sys.stdin.read()
"""


class Python(Test):
    """A Python program, with Python frames and CPU samples."""

    def run(self):
        with Program(self, sys.executable, "-c", PYTHON) as program:
            program.expect("ready")
            self.attach(program, "--cpu", "--duration", "500ms")
            # The sampler still writes its log.
            trust = self.summary()["trust"]
            assert trust["word"] == "complete", trust
            program.expect("done")
            program.end()
        counts = self.counts()
        assert sum(count for path, count in counts.items() if "launch_in_python" in path) > 50, counts
        assert [name for name in os.listdir(self.data) if name.endswith(".cpu.xtr")]


class Kills(Test):
    """The command is killed before each of its system calls that touch the process."""

    def run(self):
        program, step, kills = self.service(2), 0, 0
        while True:
            step += 1
            done = subprocess.run(
                [self.args.xtrace, "attach", "-o", self.data, str(program.pid)],
                capture_output=True, text=True, timeout=30, cwd=self.folder,
                env={**os.environ, "LD_PRELOAD": self.args.fault, "FAULT_STEP": str(step)})
            program.do("launch")
            if done.returncode != -signal.SIGKILL:
                break
            kills += 1
            # After its registers were written, the process carries xtrace in the end.
            if self.is_attached_soon(program):
                self.xtrace("start", program.pid)
                program.do("launch")
                program.end()
                program = self.service(2)
        assert done.returncode == 0, done.stderr
        assert kills >= 10, kills
        program.do("launch")
        program.end()

    def is_attached_soon(self, program):
        for _ in range(10):
            with open("/proc/%d/maps" % program.pid, encoding="utf-8") as file:
                if "libxtrace_inject" in file.read():
                    while self.states(program.pid) != ["armed"]:
                        time.sleep(0.01)
                    return True
            time.sleep(0.01)
        return False


class Ends(Test):
    """The process is killed before each of these system calls."""

    def run(self):
        step, is_killed = 0, True
        while is_killed:
            step += 1
            with self.service(2) as program:
                began = time.monotonic()
                done = subprocess.run(
                    [self.args.xtrace, "attach", "-o", self.data, str(program.pid)],
                    capture_output=True, text=True, timeout=30, cwd=self.folder,
                    env={**os.environ, "LD_PRELOAD": self.args.fault, "FAULT_STEP": str(step),
                         "FAULT_PROCESS": str(program.pid)})
                is_killed = done.returncode != 0
                if is_killed:
                    assert done.returncode == 2 and "ended" in done.stderr, (step, done)
                    assert program.process.wait(10) == -signal.SIGKILL
                assert time.monotonic() - began < 7, step
        assert step > 10, step


class Together(Test):
    """One of several controllers attaches the process."""

    def run(self):
        with self.service(3) as program:
            commands = [subprocess.Popen(
                [self.args.xtrace, "attach", "-o", "%s%d" % (self.data, i), str(program.pid)],
                stderr=subprocess.PIPE, text=True) for i in range(4)]
            said = [command.communicate(timeout=60)[1] for command in commands]
            good = [i for i, command in enumerate(commands) if command.returncode == 0]
            assert len(good) == 1, said
            for i, text in enumerate(said):
                assert i in good or "another xtrace attach" in text or "already" in text, text
                assert os.path.exists("%s%d" % (self.data, i)) == (i in good), said
            program.do("launch")
            program.end()
        self.data += str(good[0])
        assert self.counts()


class Idle(Test):
    """A process that launches nothing was recorded, all the same."""

    def run(self):
        with self.service() as program:
            self.attach(program, "--duration", "200ms")
            text = self.xtrace("report", "--text", "--all", self.data)
            program.end()
        assert "launched nothing in that time" in text and "trust: complete" in text, text
        assert "ran          without CUDA activity for 2" in text, text
        shutil.rmtree(self.data)
        with self.service() as program:
            self.attach(program, "--armed")
            text = self.xtrace("report", "--text", "--all", self.data, status=1)
            program.end()
        assert "had not been started" in text and "trust: degraded" in text, text


class Again(Test):
    """An older trace moves to DIR.old."""

    def run(self):
        pids = []
        for _ in range(3):
            with self.service() as program:
                self.attach(program)
                program.do("launch")
                program.end()
            pids.append(program.pid)
            places = [self.logs(name) for name in ("data", "data.old", "data.previous")]
            assert places == [pids[-1:], pids[-2:-1], []], (pids, places)

    def logs(self, name):
        path = os.path.join(self.folder, name)
        names = os.listdir(path) if os.path.exists(path) else []
        return [int(log.split(".")[-2]) for log in names if log.endswith(".xtr")]


class Many(Test):
    """Many processes, one after the other."""

    count = 4

    def run(self):
        for i in range(self.count):
            self.data = os.path.join(self.folder, "data%d" % (i % 4))
            with self.service(i % 5) as program:
                self.attach(program)
                program.do("launch")
                program.end()
            assert sum(self.counts().values()) >= 1


class Refusals(Test):
    """Each obstacle is named, with a remedy, and the process continues."""

    def refuse(self, pid, *texts):
        began = time.monotonic()
        text = self.xtrace("attach", "-o", self.data, pid, status=2)
        assert all(part in text for part in texts), text
        assert time.monotonic() - began < 3
        assert not os.path.exists(self.data)

    def run(self):
        self.refuse(999999999, "no such process")
        self.refuse("x", "not the id")
        with Program(self, "sleep", "100") as program:
            while "libc.so" not in open("/proc/%d/maps" % program.pid, encoding="utf-8").read():
                time.sleep(0.01)  # the loader has just begun
            self.refuse(program.pid, "has not loaded CUDA", "xtrace record")
            os.kill(program.pid, signal.SIGSTOP)
            time.sleep(0.05)
            self.refuse(program.pid, "stopped by a signal", "kill -CONT")
        self.options()
        self.launcher()
        if os.access(self.args.static, os.X_OK):
            with Program(self, self.args.static) as program:
                time.sleep(0.05)
                self.refuse(program.pid, "static binary")
        with self.service() as program:
            tids = [int(tid) for tid in os.listdir("/proc/%d/task" % program.pid)]
            for tid in tids:
                if tid != program.pid:
                    self.refuse(tid, "thread of process %d" % program.pid)
            self.traced(program)
            self.locked(program)
            self.nowhere(program)
            self.unmappable(program)
            self.attach(program, "--armed")
            self.ended(program)
            program.end()
        with self.threads("headless") as program:
            time.sleep(0.05)
            self.refuse(program.pid, "its main thread has ended", "xtrace record")
            program.end()
        self.closed()
        self.intercepted()
        self.filtered()
        self.unwritable()
        if os.geteuid() == 0:
            self.another_user()
            self.protected()
            self.another_place()
            self.other_filters()
        elif os.path.exists(YAMA):
            self.yama()

    def options(self):
        rows = (
            (("--cpu", "99", "1"), "unexpected argument '99': write --cpu=99"),
            (("--armed", "graphs", "1"), "write --armed=graphs"),
            (("1", "2"), "unexpected argument '2' (see"),
            (("--duty", "1s/60s", "1"), "this option was removed"),
            (("-s", "1"), "cannot attach with --simulate"),
            (("-p", "1"), "cannot attach with --pid"),
            (("--duration", "0", "1"), "cannot use this --duration"),
            (("--snapshot-on", "error", "--snapshot-on", "range:a>5ms", "1"),
             "cannot use 'range:a>5ms' for --snapshot-on"),
        )
        for words, text in rows:
            said = self.xtrace("attach", *words, status=2)
            assert text in said, said

    def launcher(self):
        """The process that uses CUDA is a child of a child."""
        script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        with Program(self, sys.executable, "-c", script, "sh", "-c", '"$0" 0; true',
                     self.args.service) as program:
            program.expect("ready")
            text = self.attach(program, status=2)
            worker = int(text.split()[-1])
            assert "process %d below it has: xtrace attach" % worker in text, text
            self.xtrace("attach", "--armed", "-o", self.data, worker)
            text = self.attach(program, status=2)
            assert "below it has: xtrace start %d" % worker in text, text
            program.end()
        shutil.rmtree(self.data)

    def protected(self):
        """Root owns the files of a process that is not dumpable. Capabilities allow to attach."""
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if os.geteuid() or subprocess.run([*user, "true"], capture_output=True).returncode:
            return
        os.chmod(self.folder, 0o777)
        if subprocess.run([*user, "test", "-x", self.args.xtrace]).returncode:
            # setpriv starts it with capabilities that it then lacks.
            done = subprocess.run([*user, self.args.xtrace, "record", "-o", self.data, "true"],
                                  capture_output=True, text=True)
            assert done.returncode and "Permission denied" in done.stderr, done
            return
        os.makedirs(os.path.join(self.data, "files"))
        os.chmod(self.data, 0o700)
        done = subprocess.run([*user, self.args.xtrace, "record", "-o", self.data, "true"],
                              capture_output=True, text=True)
        assert "it exists and cannot be read: Permission denied" in done.stderr, done
        shutil.rmtree(self.data)
        with Program(self, *user, self.args.threads, "protected") as program:
            program.expect("ready")
            for capabilities, text in (
                    ("-all", "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, or let"),
                    ("+sys_ptrace", "cannot read /proc/%d/syscall: Permission" % program.pid)):
                done = subprocess.run(
                    [*user, "--inh-caps", capabilities, "--ambient-caps", capabilities,
                     self.args.xtrace, "attach", "-o", self.data, str(program.pid)],
                    capture_output=True, text=True, timeout=4)
                assert done.returncode == 2 and text in done.stderr, done
            program.send("\n")
            program.line()
            program.end()

    def ended(self, program):
        """The library cannot start twice."""
        shutil.rmtree(self.data)
        self.xtrace("start", program.pid, status=2)
        self.refuse(program.pid, "its recording has ended", "restart the program")

    def traced(self, program):
        assert not LIBC.ptrace(0x4206, program.pid, None, None)  # PTRACE_SEIZE
        try:
            self.refuse(program.pid, "traced by process %d" % os.getpid())
        finally:
            LIBC.ptrace(0x4207, program.pid, None, None)  # PTRACE_INTERRUPT
            os.waitpid(program.pid, 0)
            LIBC.ptrace(17, program.pid, None, None)  # PTRACE_DETACH
        program.do("launch")

    def locked(self, program):
        """The state while another xtrace attach works."""
        folder = os.open("/proc/%d" % program.pid, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.refuse(program.pid, "another xtrace attach")
        os.close(folder)

    def nowhere(self, program):
        text = self.xtrace("attach", "-o", "/nowhere/data", program.pid, status=2)
        assert "/nowhere" in text, text
        program.do("launch")

    def unmappable(self, program):
        resource.prlimit(program.pid, resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))
        self.refuse(program.pid, "cannot map memory")
        resource.prlimit(program.pid, resource.RLIMIT_AS,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        program.do("launch")

    def closed(self):
        """Files of xtrace would become standard error."""
        with self.service(prepare=lambda: os.close(2)) as program:
            self.refuse(program.pid, "standard error is closed", "/dev/null")
            program.end()

    def intercepted(self):
        """Sanitizers that must see each thread from its creation."""
        for name, text in (("__tsan_init", "sanitizer (__tsan_init)"),
                           ("pthread_create", "pthread_create() of its own")):
            program = os.path.join(os.path.dirname(self.args.threads), "attach_has_" + name)
            with Program(self, program) as program:
                program.expect("ready")
                self.refuse(program.pid, text, "xtrace record")
                program.end()

    def other_filters(self):
        """The same number of filters in another container."""
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
            return
        with Program(self, "unshare", "-m", self.args.service, "0",
                     prepare=add_filter) as program:
            program.expect("ready")
            text = self.attach(program, status=2, preexec_fn=add_filter)
            assert "filters of another container" in text, text
            program.end()
        with self.service(prepare=add_filter) as program:
            self.attach(program, preexec_fn=add_filter)
            program.end()
        shutil.rmtree(self.data)

    def filtered(self):
        """A filter that allows everything is a filter, too."""
        with self.service(prepare=add_filter) as program:
            self.refuse(program.pid, "seccomp filter", "xtrace record")
            program.end()

    def unwritable(self):
        """Like a full disk: the process cannot write the log. A later attempt succeeds."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        with self.service(prepare=limit) as program:
            self.refuse(program.pid, "cannot create a log", "File too large")
            program.do("launch")
            resource.prlimit(program.pid, resource.RLIMIT_FSIZE,
                             (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.attach(program)
            program.do("launch")
            # The second attempt runs the code of the first one.
            assert self.stubs(program.pid) == 1
            program.end()
        assert program.said == "", program.said
        assert sum(self.counts().values()) == 1
        # The trace that was there comes back.
        with self.service(prepare=limit) as program:
            said = self.attach(program, status=2, env={**os.environ, "XTRACE_MAX_SIZE": "x"})
            assert "cannot create a log" in said and "cannot use XTRACE_MAX_SIZE=x" in said, said
            program.end()
        assert program.said == "", program.said
        assert sum(self.counts().values()) == 1
        assert sorted(name for name in os.listdir(self.folder) if "data" in name) == ["data"]
        shutil.rmtree(self.data)

    def yama(self):
        with open(YAMA, encoding="ascii") as file:
            if int(file.read()) != 1:
                return
        forbid = lambda: LIBC.prctl(0x59616d61, 0, 0, 0, 0)
        with self.service(prepare=forbid) as program:
            self.refuse(program.pid, "ptrace_scope is 1", "sysctl")
            program.end()

    def another_user(self):
        with Program(self, "sleep", "100", user=65534) as program:
            time.sleep(0.05)
            name = pwd.getpwuid(65534).pw_name
            self.refuse(program.pid, "runs as user %s, and this xtrace as root" % name,
                        "'sudo -u %s xtrace attach %d'" % (name, program.pid),
                        "setpriv --reuid=65534 --regid=0 --clear-groups")

    def another_place(self):
        """In its mount namespace, the library is another file."""
        library = os.path.join(os.path.dirname(os.path.dirname(self.args.simgpu)),
                               "libxtrace_inject.so")
        script = "mount --bind /dev/null '%s' && exec '%s' 0" % (library, self.args.service)
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
            return
        with Program(self, "unshare", "-m", "sh", "-c", script) as program:
            program.expect("ready")
            self.refuse(program.pid, "mount namespace", "container")
            program.end()
        script = "mount -t tmpfs none '%s' && exec '%s' 0" % (self.folder, self.args.service)
        with Program(self, "unshare", "-m", "sh", "-c", script) as program:
            program.expect("ready")
            self.refuse(program.pid, "cannot write the trace", "-o")
            program.end()


class ManyMore(Many):
    """The same number, repeated more often."""

    count = 100


class Soak(Test):
    """The parts in which time matters, again and again."""

    def run(self):
        for part in (Waits, Kills, Ends, Together, Signals, Late) * 20:
            with tempfile.TemporaryDirectory() as folder:
                part(self.args, folder).run()


PARTS = {"waits": Waits, "service": Service, "python": Python,
         "kills": Kills, "ends": Ends, "together": Together, "again": Again, "idle": Idle, "many": Many,
         "threads": Threads, "late": Late, "places": Places, "signals": Signals, "many_more": ManyMore, "soak": Soak, "refusals": Refusals}


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "service", "waits", "threads", "fault", "large-tls", "static", "simgpu"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("part", choices=PARTS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        PARTS[args.part](args, folder).run()


if __name__ == "__main__":
    main()
