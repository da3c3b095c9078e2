# SPDX-License-Identifier: Apache-2.0
"""Programs of environment_test.py: environment_program.py CASE [ARGUMENT]..."""
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time


def start_cuda():
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0


def compute(seconds):
    """Takes at least this time of the processor, too: a busy machine gives less of it."""
    end, end_cpu = time.monotonic() + seconds, time.thread_time() + seconds
    while time.monotonic() < end or time.thread_time() < end_cpu:
        sum(range(1000))


def parent_work(seconds):
    compute(seconds)


def child_work(seconds):
    compute(seconds)


def before_cuda(seconds):
    compute(seconds)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def sees():
    """Returns the traces of the sampler that the program can see."""
    signals, children = [], []
    signal.signal(signal.SIGCHLD, lambda *_: signals.append(1))
    start_cuda()
    before = open_files()
    compute(0.1)
    try:
        children.append(os.waitpid(-1, os.WNOHANG)[0])
    except ChildProcessError:
        pass
    owned = [os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd")
             if os.path.exists("/proc/self/fd/" + name)]
    return {"children": children, "signals": len(signals),
            "files": sum("socket" in name for name in owned) + open_files() - before}


def forks():
    start_cuda()
    child = os.fork()
    if not child:
        child_work(0.6)
        os._exit(0)
    parent_work(1)
    os.waitpid(child, 0)
    return {"pid": os.getpid(), "child": child}


def subreaper():
    """Orphans become its children."""
    assert not ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    start_cuda()


def pinned():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start_cuda()
    parent_work(1.5)


def child_first():
    """The child starts CUDA before its parent does."""
    child = os.fork()
    if not child:
        start_cuda()
        child_work(0.8)
        os._exit(0)
    time.sleep(0.3)
    start_cuda()
    parent_work(0.3)
    os.waitpid(child, 0)
    return {"pid": os.getpid(), "child": child}


def daemon():
    """A sampled child becomes an orphan, and then starts CUDA."""
    start_cuda()
    ends = os.pipe()
    middle = os.fork()
    if not middle:
        child = os.fork()
        if child:
            time.sleep(0.2)
            os._exit(0)
        os.write(ends[1], b"%d" % os.getpid())
        time.sleep(0.4)
        os.execv(sys.executable, [sys.executable, __file__, "forked"])
    os.waitpid(middle, 0)
    parent_work(1.2)
    return {"pid": os.getpid(), "child": int(os.read(ends[0], 20))}


def late():
    before_cuda(1)
    start_cuda()
    begin = time.monotonic()
    parent_work(1)
    return {"after_s": time.monotonic() - begin}


def executes():
    start_cuda()
    child = subprocess.Popen([sys.executable, __file__, "forked"], stdout=subprocess.DEVNULL)
    parent_work(1)
    child.wait()
    return {"pid": os.getpid(), "child": child.pid}


def forked():
    start_cuda()
    child_work(0.8)


def long():
    start_cuda()
    parent_work(3)


def sleeps():
    start_cuda()
    time.sleep(3)


SECCOMP_RET_ALLOW, SECCOMP_RET_EPERM = 0x7FFF0000, 0x00050001
PROCESS_VM_READV, PERF_EVENT_OPEN = 310, 298


def forbids(*command):
    """Runs a command without these two system calls of x86-64, see seccomp(2)."""
    load, equal, ret = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS and so on
    steps = [(load, 0, 0, 0), (equal, 2, 0, PROCESS_VM_READV), (equal, 1, 0, PERF_EVENT_OPEN),
             (ret, 0, 0, SECCOMP_RET_ALLOW), (ret, 0, 0, SECCOMP_RET_EPERM)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    assert not libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0), os.strerror(ctypes.get_errno())
    os.execv(command[0], command)


if __name__ == "__main__":
    result = globals()[sys.argv[1]](*sys.argv[2:])
    if result:
        print(json.dumps(result))
