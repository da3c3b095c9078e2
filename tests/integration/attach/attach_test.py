#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace attach on the simulated GPU: programs that run without xtrace are attached."""

import argparse
import concurrent.futures
import ctypes
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TIME_MS = 1500  # of waits.c
KERNELS = 20
MAGIC = (0x7c5b1fd2a94e6083).to_bytes(8, "little")  # of stub.h
EINTR = 4
ETIMEDOUT = 110
YAMA = "/proc/sys/kernel/yama/ptrace_scope"


LIBC = ctypes.CDLL(None, use_errno=True)


def allow_tracers():
    """Under Yama's ptrace_scope 1, a process may be traced by its ancestors only."""
    LIBC.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, any


class Program:
    """A program on the simulated GPU. Ends with the `with` block."""

    def __init__(self, test, *command, prepare=lambda: None, **options):
        def prepare_all():
            allow_tracers()
            prepare()

        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("XTRACE_", "CUDA_INJECTION", "NVTX_INJECTION"))}
        environment["LD_LIBRARY_PATH"] = test.args.simgpu
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment,
                                        preexec_fn=prepare_all, **options)
        self.pid = self.process.pid
        self.said = None

    def expect(self, text):
        line = self.line()
        assert line == text, (line, self.process.poll())

    def line(self, timeout_s=20):
        assert select.select([self.process.stdout], [], [], timeout_s)[0], "no answer"
        return self.process.stdout.readline().rstrip("\n")

    def send(self, text="\n"):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def do(self, line):
        self.send(line + "\n")
        self.expect("done")

    def end(self, status=0):
        self.process.stdin.close()
        self.said = self.process.stderr.read()
        assert self.process.wait(20) == status, (self.process.returncode, self.said)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind or self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


class Test:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.data = os.path.join(folder, "data")

    def xtrace(self, *words, status=0, **options):
        done = subprocess.run([self.args.xtrace, *map(str, words)], capture_output=True, text=True,
                              timeout=60, cwd=self.folder, **options)
        assert done.returncode == status, "%s: status %d\n%s%s" % (
            words, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def attach(self, program, *words, **options):
        return self.xtrace("attach", "-o", self.data, *words, program.pid, **options)

    def service(self, threads=0, **options):
        program = Program(self, self.args.service, str(threads), **options)
        program.expect("ready")
        return program

    def waits(self, mode):
        program = Program(self, self.args.waits, mode)
        program.expect("ready")
        self.wait_until_blocked(program.pid)
        return program

    def wait_until_blocked(self, pid):
        for _ in range(1000):
            with open("/proc/%d/syscall" % pid, encoding="ascii") as file:
                if file.read().split()[0] not in ("running", "-1"):
                    return
            time.sleep(0.001)

    def counts(self, data=None):
        done = subprocess.run([self.args.xtrace, "merge", "--folded", "-", "--weight", "count",
                               data or self.data], capture_output=True, text=True)
        text = done.stdout
        assert done.returncode == 0, text + done.stderr
        rows = [line.rsplit(" ", 1) for line in text.splitlines() if ";" in line]
        assert not [path for path, _ in rows if "unattributed" in path], text
        return {path: int(count) for path, count in rows}

    def summary(self, data=None):
        return json.loads(self.xtrace("merge", "--quiet", "--summary", "-", data or self.data))

    def states(self, pid):
        rows = json.loads(self.xtrace("ps", "--json"))["processes"]
        return [row["state"] for row in rows if row["pid"] == pid]


# The result of a wait, its length in ms, and how often its handler ran.
WAITS = {
    "read": (1, None, 0),
    "accept": (None, None, 0),
    "futex": (0, None, 0),
    "futex_time": (-ETIMEDOUT, TIME_MS, 0),
    "poll": (1, None, 0),
    "poll_time": (0, TIME_MS, 0),
    "select": (0, TIME_MS, 0),
    "epoll": (1, None, 0),
    "nanosleep": (0, TIME_MS, 0),
    "clock_nanosleep": (0, TIME_MS, 0),
    "thread": (1, None, 0),
    # A handler that runs meanwhile ends the call, unless the kernel would have restarted it.
    "interrupted": (-EINTR, 0, 1),
    "restarted": (1, None, 1),
    "nanosleep_interrupted": (-EINTR, 0, 1),
}


class Waits(Test):
    """A call that waits returns as if nothing had happened, with all registers as they were."""

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(len(WAITS)) as pool:
            for done in [pool.submit(Wait(self.args, self.folder).run_mode, mode)
                         for mode in WAITS]:
                done.result()


class Wait(Test):
    def run_mode(self, mode):
        self.data = os.path.join(self.folder, mode)
        with self.waits(mode) as program:
            time.sleep(0.2)
            self.attach(program)
            self.check(program, mode)

    def check(self, program, mode):
        result, time_ms, handled = WAITS[mode]
        if time_ms is None:
            time.sleep(0.05)
            assert not select.select([program.process.stdout], [], [], 0)[0], program.line()
            program.send()
        line = program.line()
        words = line.split()
        got, took, errno = int(words[1]), float(words[3]), int(words[5])
        if result is None:
            assert got > 2, line
        else:
            assert got == result, (mode, line)
        if time_ms:
            assert time_ms <= took < time_ms + 400, (mode, line)
        assert errno == 4711 and int(words[7]) == handled, (mode, line)
        assert words[8:] == ["changed"], (mode, line)
        self.finish(program)

    def finish(self, program):
        """The program still uses CUDA, and xtrace records that."""
        program.send("\n\n")
        program.end()
        counts = self.counts()
        assert sum(counts.values()) == KERNELS, counts
        assert "attached" in self.summary()["trust"]["reasons"][-1]


class Repeated(Test):
    """epoll_wait() with a time may wait for it twice. A small stack is refused."""

    def run(self):
        with self.waits("epoll_time") as program:
            time.sleep(0.2)
            self.attach(program)
            words = program.line().split()
            assert words[1] == "0" and TIME_MS <= float(words[3]) < 2 * TIME_MS + 200, words
            program.send("\n\n")
            program.end()
        with self.waits("thread_small") as program:
            text = self.attach(program)  # its main thread waits in pthread_join()
            assert "recording" in text, text
            program.send()
            assert program.line().split()[8:] == ["changed"]
            program.send("\n\n")
            program.end()


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
            assert "attached" in self.xtrace("report", "--text", self.data)
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
            with self.service(1) as second:  # joins the trace
                self.attach(second, "--armed")
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
            self.attach(program, "--armed")
            program.end()
        shutil.rmtree(self.data)
        self.filtered()
        self.unwritable()
        if os.geteuid() == 0:
            self.another_user()
            self.another_place()
        elif os.path.exists(YAMA):
            self.yama()

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

    def filtered(self):
        """A filter that allows everything is a filter, too."""
        code = ("import ctypes, struct, sys; b = ctypes.create_string_buffer(struct.pack('HBBI', 6, "
                "0, 0, 0x7fff0000)); f = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 1, "
                "ctypes.addressof(b))); l = ctypes.CDLL(None); assert not l.prctl(38, 1, 0, 0, 0); "
                "assert not l.prctl(22, 2, f); print('ready', flush=True); sys.stdin.read()")
        with Program(self, sys.executable, "-c", code) as program:
            program.expect("ready")
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
            # The code of the first attempt has run, so it stays.
            assert self.stubs(program.pid) == 2
            program.end()
        assert sum(self.counts().values()) == 1
        # The trace that was there comes back.
        with self.service(prepare=limit) as program:
            assert "cannot create a log" in self.attach(program, status=2)
            program.end()
        assert sum(self.counts().values()) == 1
        assert sorted(name for name in os.listdir(self.folder) if "data" in name) == ["data"]
        shutil.rmtree(self.data)

    def stubs(self, pid):
        """How many stubs are at the ends of code segments."""
        count = 0
        with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, \
             open("/proc/%d/mem" % pid, "rb") as memory:
            for line in maps:
                if " r-xp " in line and "/" in line:
                    memory.seek(int(line.split("-")[1].split()[0], 16) - 4096)
                    count += memory.read(4096).count(MAGIC)
        return count

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
            self.refuse(program.pid, "runs as user 65534", "sudo -u")

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
        for part in (Waits, Kills, Ends, Together) * 20:
            with tempfile.TemporaryDirectory() as folder:
                part(self.args, folder).run()


PARTS = {"waits": Waits, "repeated": Repeated, "service": Service, "python": Python,
         "kills": Kills, "ends": Ends, "together": Together, "many": Many,
         "many_more": ManyMore, "soak": Soak, "refusals": Refusals}


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "service", "waits", "fault", "static", "simgpu"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("part", choices=PARTS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        PARTS[args.part](args, folder).run()


if __name__ == "__main__":
    main()
