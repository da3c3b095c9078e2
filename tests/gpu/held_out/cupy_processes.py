# SPDX-License-Identifier: Apache-2.0
"""Threads with streams of their own, host functions, and memory that a second process opens."""

import multiprocessing
import threading

import cupy


def add_one(handle, count):
    """Runs in another process."""
    address = cupy.cuda.runtime.ipcOpenMemHandle(handle)
    memory = cupy.cuda.UnownedMemory(address, count * 4, None)
    array = cupy.ndarray((count,), dtype=cupy.float32, memptr=cupy.cuda.MemoryPointer(memory, 0))
    array += 1
    cupy.cuda.Device().synchronize()
    cupy.cuda.runtime.ipcCloseMemHandle(address)


def work(results, number):
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = cupy.full(1 << 12, number, dtype=cupy.float32)
        for _ in range(200):
            x = cupy.sqrt(x * x + 1)
        stream.synchronize()
        results[number] = round(float(x[0]), 1)


def main():
    results = [None] * 8
    threads = [threading.Thread(target=work, args=(results, n)) for n in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("threads", results)
    called = []
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for number in range(10):
            cupy.zeros(1000)
            stream.launch_host_func(called.append, number)
    stream.synchronize()
    print("host functions", called)
    count = 1 << 16
    address = cupy.cuda.runtime.malloc(count * 4)
    memory = cupy.cuda.UnownedMemory(address, count * 4, None)
    shared = cupy.ndarray((count,), dtype=cupy.float32, memptr=cupy.cuda.MemoryPointer(memory, 0))
    shared.fill(1)
    cupy.cuda.Device().synchronize()
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=add_one,
                                args=(cupy.cuda.runtime.ipcGetMemHandle(address), count))
                for _ in range(2)]
    for child in children:
        child.start()
        child.join()
    print("shared memory", float(shared.mean()), [child.exitcode for child in children])


if __name__ == "__main__":
    main()
