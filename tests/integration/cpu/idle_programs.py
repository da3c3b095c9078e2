# SPDX-License-Identifier: Apache-2.0
"""Python programs that leave the GPU idle, on the simulated GPU. Usage: idle_programs.py CASE [--good]

samples/idle/pytorch_idle.py has the same cases for a real GPU. A comment "cause CASE" marks the
line that xtrace must name. In bad variants, most gaps are STEP_S - KERNEL_S long.
"""

import argparse
import hashlib
import multiprocessing
import os
import sys
import tempfile
import threading
import time

STEPS = 26
STEP_S = 0.036
KERNEL_S = 0.012
SMALL_KERNELS = 1000
SMALL_KERNEL_S = 0.0002
SMALL_KERNEL_GAP_S = 0.0006
WORKERS = 2
COMPILE_S = 0.4
STARTUP_S = 0.4

gpu = None  # the module, once main() has set the duration of kernels


def launch():
    gpu.check(gpu.released.cuLaunchKernel(gpu.function, 512, 1, 1, 128, 1, 1, 0, None, None, None))


def train(prepare):
    for step in range(STEPS):
        prepare(step)
        launch()


def spin(seconds):
    """Runs Python code for so long, whatever the speed of the machine is."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        total += sum(range(200))
    return total


def collate(seconds):
    spin(seconds)  # cause slow_collate


def data_worker(batches, seconds, part):
    """part: of the first batch, so that workers do not finish at the same time."""
    for number in range(STEPS // WORKERS):
        collate(seconds if number else seconds * part)
        batches.put(number)


def slow_collate(is_bad):
    """Worker processes prepare batches too slowly. The launching thread waits for a queue."""
    context = multiprocessing.get_context("fork")
    batches = context.Queue()
    seconds = WORKERS * STEP_S if is_bad else KERNEL_S / 4
    workers = [context.Process(target=data_worker, args=(batches, seconds, (i + 1) / WORKERS))
               for i in range(WORKERS)]
    for worker in workers:
        worker.start()
    use_gpu()  # CUDA does not work in a forked child

    def next_batch(_):
        batches.get()
    train(next_batch)
    for worker in workers:
        worker.join()


def tokenize(numbers):
    return sorted(numbers)  # cause gil


def numbers_for(seconds):
    """Numbers that take about so long to sort."""
    numbers = [hash(str(i)) for i in range(20000)]
    begin = time.perf_counter()
    sorted(numbers)
    took = time.perf_counter() - begin
    return numbers * max(1, int(seconds / took))


def tokenize_until(is_over, numbers):
    while not is_over.is_set():
        tokenize(numbers)


def gil(is_bad):
    """Another thread keeps the interpreter lock in long C calls. Good: another process does.

    Each step has a call that releases the lock, as file access and many operators do.
    """
    context = multiprocessing.get_context("fork")
    is_over = threading.Event() if is_bad else context.Event()
    start = threading.Thread if is_bad else context.Process
    other = start(target=tokenize_until, args=(is_over, numbers_for(STEP_S)))
    if is_bad:
        use_gpu()
    other.start()
    if not is_bad:
        use_gpu()
    train(lambda step: time.sleep(0.001))
    is_over.set()
    other.join()


def write_results(file, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        file.write(bytes(65536))
        os.fsync(file.fileno())  # cause io


def in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    return thread


def io(is_bad):
    """Writes the results of each step and waits for the disk. Good: another thread does."""
    use_gpu()
    with tempfile.TemporaryFile(dir=".", buffering=0) as file:
        if is_bad:
            train(lambda step: write_results(file, STEP_S))
        else:
            writer = in_thread(write_results, file, STEPS * KERNEL_S)
            train(lambda step: None)
            writer.join()


class Statistics:
    """A thread updates them after each step. Hashing needs no interpreter lock."""

    def __init__(self, is_bad):
        self.is_bad, self.lock, self.is_over = is_bad, threading.Lock(), False
        self.requested, self.started = threading.Semaphore(0), threading.Semaphore(0)
        self.data = bytes(1 << 20)
        self.thread = in_thread(self.serve)

    def update(self):
        end = time.monotonic() + STEP_S
        while time.monotonic() < end:
            hashlib.sha256(self.data)

    def serve(self):
        while self.requested.acquire() and not self.is_over:
            if self.is_bad:
                with self.lock:
                    self.started.release()
                    self.update()
            else:
                self.update()

    def read(self):
        with self.lock:  # cause lock
            return

    def step(self):
        self.requested.release()
        if self.is_bad:
            self.started.acquire()
        self.read()

    def end(self):
        self.is_over = True
        self.requested.release()
        self.thread.join()


def lock(is_bad):
    """Another thread computes with a lock that each step needs. Good: it computes without."""
    use_gpu()
    statistics = Statistics(is_bad)
    launch()
    train(lambda step: statistics.step())
    statistics.end()


def poll():
    time.sleep(STEP_S)  # cause sleep


def sleep(is_bad):
    """Sleeps between steps. Good: does not."""
    use_gpu()
    train(lambda step: is_bad and poll())


def fill_fresh_buffers(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        bytearray(b"x") * (32 << 20)  # cause page_faults


def page_faults(is_bad):
    """Each step fills memory that the kernel has to provide first. Good: fills one buffer again."""
    use_gpu()
    buffer, data = bytearray(1 << 20), bytes(1 << 20)

    def refill(step):
        if is_bad:
            fill_fresh_buffers(STEP_S)
        else:
            buffer[:] = data
    train(refill)


def save(file, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        file.seek(0)
        file.write(bytes(8 << 20))  # cause checkpoint
        os.fsync(file.fileno())  # cause checkpoint


def checkpoint(is_bad):
    """Every fourth step, writes the state and waits for the disk. Good: another thread does."""
    use_gpu()
    with tempfile.TemporaryFile(dir=".", buffering=0) as file:
        saver = None if is_bad else in_thread(save, file, STEPS * KERNEL_S)

        def save_sometimes(step):
            if is_bad and step % 4 == 3:
                save(file, 3 * STEP_S)
        train(save_sometimes)
        if saver:
            saver.join()


def load_dataset(seconds):
    spin(seconds)  # cause startup


def startup(is_bad):
    """Loads all data before the first kernel. Good: loads what the first step needs."""
    load_dataset(STARTUP_S if is_bad else 0.001)
    use_gpu()
    train(lambda step: None)


def log_metrics(file, seconds):
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
        print("weight", count, "mean 0.0 deviation 1.0", file=file, flush=True)  # cause logging


def logging(is_bad):
    """Prints a line for each weight in each step. Good: prints one line for each step."""
    use_gpu()
    with tempfile.TemporaryFile("w", dir=".") as file:
        train(lambda step: log_metrics(file, STEP_S if is_bad else 0.0001))


def python_overhead(is_bad):
    """Python code between many short kernels takes longer than the kernels. Good: it is short."""
    use_gpu()
    for _ in range(SMALL_KERNELS):
        if is_bad:
            spin(SMALL_KERNEL_GAP_S)  # cause python_overhead
        launch()


def compile_step(seconds):
    end = time.monotonic() + seconds
    source = "\n".join("x%d = [a * %d for a in range(%d) if a]" % (i, i, i) for i in range(500))
    while time.monotonic() < end:
        compile(source, "generated.py", "exec")  # cause compile


def compiled(is_bad):
    """Compiles the step after the first kernel. Good: compiles nothing."""
    use_gpu()
    launch()
    if is_bad:
        compile_step(COMPILE_S)
    train(lambda step: None)


CASES = {"slow_collate": slow_collate, "gil": gil, "io": io, "lock": lock, "sleep": sleep,
         "page_faults": page_faults, "checkpoint": checkpoint, "startup": startup,
         "logging": logging, "python_overhead": python_overhead, "compile": compiled}


def use_gpu():
    """Creates the context. The simulator reads the duration of kernels when it is loaded."""
    global gpu
    gpu = __import__("gpu")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--good", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
    ns = int(1e9 * (SMALL_KERNEL_S if options.case == "python_overhead" else KERNEL_S))
    os.environ["XTRACE_SIMGPU_KERNEL_NS"] = "%d:%d" % (ns, ns)
    CASES[options.case](not options.good)
    gpu.synchronize()


if __name__ == "__main__":
    main()
