# SPDX-License-Identifier: Apache-2.0
"""Programs that tests of xtrace attach start, and commands that they run."""

import ctypes
import json
import os
import select
import struct
import subprocess
import time

MAGIC = (0x7c5b1fd2a94e6083).to_bytes(8, "little")  # of stub.h


LIBC = ctypes.CDLL(None, use_errno=True)


def allow_tracers():
    """Under Yama's ptrace_scope 1, a process may be traced by its ancestors only."""
    LIBC.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, any


def add_filter():
    """A seccomp filter that allows everything."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))
    assert not LIBC.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    assert not LIBC.prctl(22, 2, program)  # PR_SET_SECCOMP, a filter


class Program:
    """A program on the simulated GPU. Ends with the `with` block."""

    def __init__(self, test, *command, prepare=lambda: None, preload="", variables=None,
                 **options):
        def prepare_all():
            allow_tracers()
            prepare()

        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("XTRACE_", "CUDA_INJECTION", "NVTX_INJECTION"))}
        environment["LD_LIBRARY_PATH"] = test.args.simgpu
        environment["LD_PRELOAD"] = preload
        environment.update(variables or {})
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

    def threads(self, mode):
        program = Program(self, self.args.threads, mode)
        line = program.line()
        if line == "unknown":  # the kernel is too old
            program.process.kill()
            return None
        assert line == "ready", line
        return program

    def fault(self, program, **variables):
        return {**os.environ, "LD_PRELOAD": self.args.fault, "FAULT_PROCESS": str(program.pid),
                **{"FAULT_" + name: str(value) for name, value in variables.items()}}

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
