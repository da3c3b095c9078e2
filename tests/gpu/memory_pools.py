#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frees memory in each way that CUDA offers, bare and recorded, on a real GPU.

CUPTI ends a process in some of these calls if it records memory, as CONDITIONAL_GRAPHS.md in
docs/internals describes. Each case runs in a process of its own: bare, recorded, recorded with each
--cupti, and attached to before the free. The exit status must be the same. With --alone LIBCUPTI,
the cases run with the kind MEMORY2 of that library, without xtrace, and only their exit statuses
are printed.

Exit status: 0 no differences, 1 differences, 2 usage, 77 no GPU.
"""

import argparse
import concurrent.futures
import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import time

from compare_runs import gpu_names
from gpu_results import SKIPPED, finish

BYTES, FD_HANDLE, PINNED, DEVICE, MEMORY2, GLOBAL_CAPTURE = 1 << 20, 1, 1, 1, 49, 0
WAIT_S, LIMIT_S, EXPORT_BYTES = 2.5, 60, 64


class PoolProperties(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int * 2),
                ("others", ctypes.c_byte * 80)]


class Gpu:
    """The driver API in one process."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.stream, self.other_stream = self.new_stream(), self.new_stream()

    def call(self, name, *arguments):
        error = getattr(self.driver, name)(*arguments)
        if error:
            raise SystemExit("%s: error %d" % (name, error))

    def new_stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream

    def alloc(self):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(BYTES))
        return address

    def alloc_async(self, pool=None):
        address, size = ctypes.c_uint64(), ctypes.c_size_t(BYTES)
        if pool:
            self.call("cuMemAllocFromPoolAsync", ctypes.byref(address), size, pool, self.stream)
        else:
            self.call("cuMemAllocAsync", ctypes.byref(address), size, self.stream)
        return address

    def free_async(self, address, stream=None):
        self.call("cuMemFreeAsync", address, stream or self.stream)

    def settle(self):
        self.call("cuCtxSynchronize")

    def new_pool(self, handles=0):
        pool, properties = ctypes.c_void_p(), PoolProperties(PINNED, handles)
        properties.location[0] = DEVICE
        self.call("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(properties))
        return pool

    def captured(self, work):
        """Launches a graph of the captured work."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, GLOBAL_CAPTURE)
        result = work()
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph,
                  ctypes.c_ulonglong(0))
        self.call("cuGraphLaunch", executable, self.stream)
        self.settle()
        return result


def export(number):
    """The other process of the case "imported": allocates memory and hands it over."""
    gpu = Gpu()
    pool = gpu.new_pool(FD_HANDLE)
    address = gpu.alloc_async(pool)
    gpu.settle()
    descriptor, data = ctypes.c_int(), ctypes.create_string_buffer(EXPORT_BYTES)
    gpu.call("cuMemPoolExportToShareableHandle", ctypes.byref(descriptor), pool, FD_HANDLE,
             ctypes.c_ulonglong(0))
    gpu.call("cuMemPoolExportPointer", data, address)
    with socket.socket(fileno=number) as channel:
        socket.send_fds(channel, [data.raw], [descriptor.value])
        channel.recv(1)


def imported(gpu):
    here, there = socket.socketpair()
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("CUDA_INJECTION64_PATH", "LD_PRELOAD")}
    command = [sys.executable, os.path.abspath(__file__), "--export", str(there.fileno())]
    # It ends with this process, because its end of the channel closes.
    subprocess.Popen(command, pass_fds=[there.fileno()], env=environment)
    there.close()
    data, descriptors, _, _ = socket.recv_fds(here, EXPORT_BYTES, 1)
    pool, address = ctypes.c_void_p(), ctypes.c_uint64()
    gpu.call("cuMemPoolImportFromShareableHandle", ctypes.byref(pool),
             ctypes.c_void_p(descriptors[0]), FD_HANDLE, ctypes.c_ulonglong(0))
    gpu.call("cuMemPoolImportPointer", ctypes.byref(address), pool, data)
    gpu.channel = here
    return address


def of_destroyed_pool(gpu):
    pool = gpu.new_pool()
    address = gpu.alloc_async(pool)
    gpu.call("cuMemPoolDestroy", pool)
    return address


def free_sync(gpu, address):
    gpu.settle()
    gpu.call("cuMemFree_v2", address)


def free_elsewhere(gpu, address):
    gpu.settle()
    gpu.free_async(address, gpu.other_stream)


# How memory is made, and how it is freed.
CASES = {
    "none": (lambda gpu: ctypes.c_uint64(0), Gpu.free_async),
    "ordinary": (Gpu.alloc, Gpu.free_async),
    "ordinary, sync": (Gpu.alloc, free_sync),
    "pool": (Gpu.alloc_async, Gpu.free_async),
    "pool, sync": (Gpu.alloc_async, free_sync),
    "pool, other stream": (Gpu.alloc_async, free_elsewhere),
    "own pool": (lambda gpu: gpu.alloc_async(gpu.new_pool()), Gpu.free_async),
    "destroyed pool": (of_destroyed_pool, Gpu.free_async),
    "imported": (imported, Gpu.free_async),
    "imported, sync": (imported, free_sync),
    "graph": (lambda gpu: gpu.captured(gpu.alloc_async), Gpu.free_async),
    "within a graph": (lambda gpu: gpu.captured(lambda: gpu.free_async(gpu.alloc_async())),
                       lambda gpu, nothing: None),
}


def record_memory(path):
    """Enables the kind MEMORY2 of CUPTI, which then asks for buffers. Returns what must live on."""
    cupti = ctypes.CDLL(path)
    buffers = []

    @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                      ctypes.POINTER(ctypes.c_size_t))
    def requested(buffer, size, records):
        buffers.append(ctypes.create_string_buffer(BYTES))
        buffer[0] = ctypes.addressof(buffers[-1])
        size[0], records[0] = BYTES, 0

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t,
                      ctypes.c_size_t)
    def completed(context, stream, buffer, size, valid):
        pass
    if cupti.cuptiActivityRegisterCallbacks(requested, completed) or \
            cupti.cuptiActivityEnable(MEMORY2):
        raise SystemExit("%s cannot record memory" % path)
    return cupti, requested, completed, buffers


def run_case(name, waits, alone):
    make, release = CASES[name]
    recorder = record_memory(alone) if alone else None
    gpu = Gpu()
    address = make(gpu)
    gpu.settle()
    print("ready", flush=True)
    if waits:
        time.sleep(WAIT_S)
    release(gpu, address)
    gpu.settle()
    print("ok", flush=True)
    sys.stdout.flush()
    del recorder
    os._exit(0)


class Runs:
    def __init__(self, options, scratch):
        self.options, self.scratch, self.results, self.problems = options, scratch, {}, []

    def run(self, case, mode):
        """Returns the exit status of a case."""
        own = [sys.executable, os.path.abspath(__file__), "--case", case]
        trace = tempfile.mkdtemp(dir=self.scratch)
        record = [self.options.xtrace, "record", "-o", trace, "--", *own]
        environment = dict(os.environ)
        if mode == "attach":
            return self.attach(own + ["--wait"], trace)
        if mode == "alone":
            own += ["--alone", self.options.alone]
        elif mode not in ("bare", "record"):
            environment["XTRACE_CUPTI"] = mode
        done = subprocess.run(own if mode in ("bare", "alone") else record, env=environment,
                              capture_output=True, timeout=LIMIT_S, check=False)
        return 128 - done.returncode if done.returncode < 0 else done.returncode

    def attach(self, command, trace):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            process.stdout.readline()
            attached = subprocess.run([self.options.xtrace, "attach", "-o", trace, "--duration",
                                       "%gs" % (2 * WAIT_S), str(process.pid)],
                                      capture_output=True, text=True, timeout=LIMIT_S, check=False)
            process.communicate(timeout=LIMIT_S)
        if attached.returncode:
            self.problems.append("attach: " + attached.stderr.strip()[-300:])
        return 128 - process.returncode if process.returncode < 0 else process.returncode

    def examine(self, case):
        modes = ["bare", "alone"] if self.options.alone else [
            "bare", "record", "attach", *self.options.cupti]
        statuses = {mode: self.run(case, mode) for mode in modes}
        self.results[case] = statuses
        print("%-20s %s" % (case, ", ".join(
            "%s: %s" % (os.path.basename(mode), status) for mode, status in statuses.items())),
            flush=True)
        for mode, status in statuses.items():
            if mode != "alone" and status != statuses["bare"]:
                self.problems.append("%s, %s: status %d, bare %d" % (
                    case, mode, status, statuses["bare"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xtrace", help="the command")
    parser.add_argument("--cupti", action="append", default=[], help="also with this libcupti")
    parser.add_argument("--alone", metavar="LIBCUPTI", help="with CUPTI and without xtrace")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    parser.add_argument("--jobs", type=int, default=4, help="cases at once (4)")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--wait", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--export", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.export is not None:
        return export(options.export)
    if options.case:
        return run_case(options.case, options.wait, options.alone)
    if not options.alone and not options.xtrace:
        parser.error("--xtrace or --alone is required")
    if not gpu_names():
        print("no GPU")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="memory_pools") as scratch:
        runs = Runs(options, scratch)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(runs.examine, CASES))
    return finish(options.output, runs.results, runs.problems)


if __name__ == "__main__":
    sys.exit(main())
