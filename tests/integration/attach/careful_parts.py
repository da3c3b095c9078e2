# SPDX-License-Identifier: Apache-2.0
"""Tests that xtrace attach does not harm a process in rare situations."""

import concurrent.futures
import os
import resource
import shutil
import signal
import subprocess
import time

from programs import LIBC, MAGIC, Program, Test
from wait_parts import Wait

LIMIT_MS = 1500  # of threads.c
KERNEL = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


class Places(Test):
    """The stub is written only where nothing else is, and never over another stub."""

    def run(self):
        with self.service() as program:
            before = self.occupy(program.pid)
            self.attach(program)
            assert [self.read(program.pid, at, len(bytes)) for at, bytes in before] == \
                [bytes for _, bytes in before]
            program.do("launch")
            program.end()
        assert self.counts()
        shutil.rmtree(self.data)
        # Names that only begin like those of the C library's files.
        names = [os.path.join(self.folder, name) for name in
                 ("libpthreadpool.so", "libpthreads.so", "libdlfcn.so", "libdlm.so")]
        for name in names:
            shutil.copy(self.args.fault, name)
        with self.service(preload=":".join(names)) as program:
            self.attach(program)
            program.end()
        self.hold()

    def occupy(self, pid):
        """Puts stubs of another version, which no thread runs, into the C library's code."""
        text = MAGIC + bytes(24) + 64 * b"\xcc"
        found = []
        with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, \
             open("/proc/%d/mem" % pid, "r+b", buffering=0) as memory:
            for line in maps:
                if " r-xp " in line and "libc.so.6" in line:
                    end = int(line.split("-")[1].split()[0], 16)
                    memory.seek(end - 4096)
                    used = len(memory.read(4096).rstrip(b"\0"))
                    for at in range(end - 4096 + (used + 31) // 16 * 16, end - 2048, 512):
                        memory.seek(at)
                        memory.write(text)
                        found.append((at, text))
        assert found
        return found

    def read(self, pid, at, count):
        with open("/proc/%d/mem" % pid, "rb") as memory:
            memory.seek(at)
            return memory.read(count)

    def hold(self):
        """While another tracer that has no id here holds the main thread, nothing is written."""
        command = ["unshare", "-p", "-f", "--mount-proc"]
        if os.geteuid() or subprocess.run([*command, "true"], capture_output=True).returncode:
            return
        shutil.rmtree(self.data)
        with Program(self, *command, self.args.service, "3") as program:
            program.expect("ready")
            with open("/proc/%d/task/%d/children" % (program.pid, program.pid),
                      encoding="ascii") as file:
                pid = int(file.read())
            assert not LIBC.ptrace(0x4206, pid, None, None)  # PTRACE_SEIZE
            attach = subprocess.Popen(["nsenter", "-t", str(pid), "-p", "-m", "-r", self.args.xtrace,
                                       "attach", "-o", self.data, "1"], stderr=subprocess.PIPE)
            time.sleep(0.7)
            stubs = self.stubs(pid)
            LIBC.ptrace(0x4207, pid, None, None)  # PTRACE_INTERRUPT
            os.waitpid(pid, 0)
            LIBC.ptrace(17, pid, None, None)  # PTRACE_DETACH
            said = attach.communicate(timeout=20)[1]
            assert attach.returncode == 0 and stubs == 0, (stubs, said)
            assert self.stubs(pid) == 1
            program.do("launch")
            program.end()
        assert self.counts()


class Threads(Test):
    """Threads that must not be borrowed are refused. Better ones are chosen first."""

    def run(self):
        tests = [lambda test: test.refuse("filtered", "other seccomp filters"),
                 lambda test: test.refuse("files", "has open files of its own"),
                 lambda test: test.refuse("user", "runs as another user than the main thread"),
                 lambda test: test.refuse("root", "has another root directory"),
                 lambda test: test.refuse("mounts", "is in another mount namespace"),
                 lambda test: test.refuse("small", "too little stack left"),
                 lambda test: test.refuse("inside", "too little stack left"),
                 Threads.priority, Threads.crowd, Threads.limit, Threads.default_stack,
                 Threads.interrupted, Threads.end_command, Threads.stuck]
        if KERNEL >= (6, 4):
            tests.append(lambda test: test.refuse("dispatching", "handles its system calls itself"))
        with concurrent.futures.ThreadPoolExecutor(len(tests)) as pool:
            for done in [pool.submit(self.run_one, i, test) for i, test in enumerate(tests)]:
                done.result()

    def run_one(self, i, test):
        folder = os.path.join(self.folder, "test%d" % i)
        os.mkdir(folder)
        test(Threads(self.args, folder))

    def refuse(self, mode, text):
        program = self.threads(mode)
        if not program:
            return
        with program:
            said = self.attach(program, status=2, env=self.fault(program, CLOCK=10))
            assert text in said and "thread %d" % program.pid in said, said
            program.send("\n")
            assert program.line() == "result 0 ms 0 whole 1"
            assert not os.path.exists(self.data)
            program.end()

    def priority(self):
        """The threads of xtrace do not inherit the schedule of the borrowed one."""
        with self.threads("priority") as program:
            before = os.listdir("/proc/%d/task" % program.pid)
            self.attach(program)
            own = [int(tid) for tid in os.listdir("/proc/%d/task" % program.pid)
                   if tid not in before]
            assert own
            for tid in own:
                assert os.sched_getaffinity(tid) == os.sched_getaffinity(program.pid)
                assert os.sched_getscheduler(tid) == os.SCHED_OTHER
                if os.geteuid() == 0:
                    usual = os.getpriority(os.PRIO_PROCESS, program.pid)
                    assert os.getpriority(os.PRIO_PROCESS, tid) == usual
            program.end()

    def crowd(self):
        """Six threads look good until they are stopped. The seventh is good."""
        with self.threads("crowd") as program:
            self.attach(program)
            program.send("\n")
            program.line()
            program.end()
        assert self.counts()

    def default_stack(self):
        """The worker does not depend on the program's default size, or its static TLS."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 18, 1 << 18))
        for program in (self.threads("default"),
                        self.service(preload=self.args.large_tls, prepare=limit)):
            with program:
                self.attach(program, "--cpu")
                program.send("launch\n")
                assert program.line()
                program.end()
            assert self.counts()
            shutil.rmtree(self.data)

    def interrupted(self):
        """A signal stops a thread in an allocator just before another one is borrowed."""
        with self.threads("interrupted") as program:
            said = self.attach(program, status=2, env=self.fault(
                program, REQUEST=0x4206, SIGNAL=int(signal.SIGUSR2), CLOCK=10))  # PTRACE_SEIZE
            assert "is in a signal handler, and is in pvalloc()" in said, said
            program.send("release\n")
            program.line()
            self.attach(program)
            program.end()

    def end_command(self):
        """Ctrl-C while no thread can be borrowed leaves the directories as they were."""
        os.mkdir(self.data)
        with self.threads("small") as program:
            command = subprocess.Popen(
                [self.args.xtrace, "attach", "-o", self.data, str(program.pid)],
                stderr=subprocess.PIPE, text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            while not os.listdir(self.data):
                time.sleep(0.01)
            command.send_signal(signal.SIGINT)
            said = command.communicate(timeout=20)[1]
            assert command.returncode == -signal.SIGINT, (command.returncode, said)
            assert "interrupted; process %d is unchanged" % program.pid in said, said
            assert os.listdir(self.folder) == ["data"] and not os.listdir(self.data)
            program.send("\n")
            assert program.line() == "result 0 ms 0 whole 1"
            program.end()

    def stuck(self):
        """One thread does not stop, as while the kernel waits for a file server."""
        with self.service(2) as program:
            self.attach(program, env=self.fault(program, DROP_REQUEST=0x4207))  # PTRACE_INTERRUPT
            program.do("launch")
            program.end()
        assert self.counts()

    def limit(self):
        """A socket with a time limit would wait again, so the other thread is chosen."""
        with self.threads("limit") as program:
            time.sleep(0.8)
            self.attach(program)
            time.sleep(0.9)
            program.send("\n")
            words = program.line().split()
            assert words[1] == "-11" and LIMIT_MS <= float(words[3]) < LIMIT_MS + 400, words
            program.end()


class Late(Test):
    """The library starts late, or not at all: its directory stays as long as it may start."""

    def run(self):
        with self.threads("loader") as program:
            before = self.tids(program)
            said = self.attach(program, status=2, env=self.fault(program, CLOCK=60))
            self.check_mask(program, before)
            assert "did not start" in said and "given up" in said, said
            assert not os.path.exists(self.data)
            program.send("release\n")
            time.sleep(0.5)
            assert not os.path.exists(self.data) and self.states(program.pid) == []
            self.attach(program)
            program.end()
        shutil.rmtree(self.data)
        with self.service() as program:
            said = self.attach(program, status=2,
                               env=self.fault(program, CLOCK=60, REQUEST=17,  # PTRACE_DETACH
                                              SIGNAL=int(signal.SIGSTOP)))
            assert "may still do so" in said and os.path.exists(self.data), said
            os.kill(program.pid, signal.SIGCONT)
            for _ in range(1000):
                if self.states(program.pid) == ["armed"]:
                    break
                time.sleep(0.01)
            self.xtrace("start", program.pid)
            program.do("launch")
            program.end()
        assert self.counts()


    def tids(self, program):
        return set(os.listdir("/proc/%d/task" % program.pid))

    def check_mask(self, program, before):
        """The worker blocks signals, but none that the kernel raises for an instruction."""
        worker, = self.tids(program) - before
        with open("/proc/%d/task/%s/status" % (program.pid, worker), encoding="ascii") as file:
            words = file.read().split()
        mask = int(words[words.index("SigBlk:") + 1], 16)
        faults = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP,
                  signal.SIGSYS)
        assert mask >> signal.SIGTERM - 1 & 1, hex(mask)
        assert not [number for number in faults if mask >> number - 1 & 1], hex(mask)


class Signals(Wait):
    """Signals and exec() that come between the choice of a thread and its stop."""

    def run(self):
        interrupt, seize, detach = 0x4207, 0x4206, 17  # PTRACE_*
        with self.waits("epoll") as program:
            # Ignored, but a traced thread gets it.
            self.attach(program, env=self.fault(program, REQUEST=interrupt,
                                                SIGNAL=int(signal.SIGURG)))
            self.check(program, "epoll")
        shutil.rmtree(self.data)
        with self.waits("interrupted") as program:
            self.attach(program, status=-signal.SIGKILL,
                        env=self.fault(program, REQUEST=interrupt, SIGNAL=int(signal.SIGUSR1),
                                       KILL_REQUEST=detach))
            assert program.line().split()[7] == "1"  # its handler runs
            program.send("\n\n")
            program.end()
        shutil.rmtree(self.data)
        self.interrupt_command()
        self.stop_command()
        with self.threads("executes") as program:
            said = self.attach(program, status=2,
                               env=self.fault(program, REQUEST=seize, SIGNAL=int(signal.SIGUSR1)))
            assert "has executed another program" in said, said
            program.expect("ready")
            program.send("\n")
            assert program.line() == "result 0 ms 0 whole 1"
            program.end()

    def interrupt_command(self):
        """Ctrl-C at each moment: the last line says what the process carries."""
        for request, delay_ms in ((17, 0), *((0, ms) for ms in range(3, 60, 7))):
            with self.service() as program:
                command = subprocess.Popen(
                    [self.args.xtrace, "attach", "-o", self.data, str(program.pid)],
                    env={**os.environ, "LD_PRELOAD": self.args.fault, "FAULT_SIGNAL": "2",
                         "FAULT_REQUEST": str(request)}, stderr=subprocess.PIPE, text=True,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                if not request:
                    time.sleep(delay_ms / 1000)
                    command.send_signal(signal.SIGINT)
                said = command.communicate(timeout=20)[1]
                states = self.states(program.pid)
                if states in (["armed"], ["stopped"]):
                    assert "carries xtrace now, but does not record" in said, said
                elif states:
                    assert states == ["recording"] and not command.returncode, (states, said)
                else:
                    assert command.returncode == -signal.SIGINT, said
                    assert not said or "interrupted; process" in said, said
                    assert not os.path.exists(self.data)
                program.do("launch")
                program.end()
            shutil.rmtree(self.data, ignore_errors=True)

    def stop_command(self):
        """Ctrl-Z takes effect when the borrowed thread continues."""
        with self.service() as program:
            environment = {**os.environ, "LD_PRELOAD": self.args.fault,
                           "FAULT_REQUEST": "13",  # PTRACE_SETREGS
                           "FAULT_SIGNAL": str(int(signal.SIGTSTP))}
            command = subprocess.Popen(
                [self.args.xtrace, "attach", "-o", self.data, str(program.pid)],
                env=environment, stderr=subprocess.PIPE,
                preexec_fn=lambda: os.setpgid(0, 0))  # or the kernel discards the signal
            try:
                assert os.WIFSTOPPED(os.waitpid(command.pid, os.WUNTRACED)[1])
                program.do("launch")
            finally:
                os.kill(command.pid, signal.SIGCONT)
            said = command.communicate(timeout=20)[1]
            assert command.returncode == 0, said
            program.end()
