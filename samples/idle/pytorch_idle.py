#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs that leave the GPU idle. Usage: pytorch_idle.py --case NAME [--good]

Each has one cause on the CPU, and a good variant without it. A comment "cause NAME" marks the line
that xtrace must name. Record all except startup and compile with --capture-range cudaProfilerApi,
which leaves out the warm-up. In bad variants, most gaps are STEP_S - KERNEL_S long.
"""

import argparse
import hashlib
import multiprocessing
import os
import tempfile
import threading
import time

STEP_S = 0.06
KERNEL_S = 0.012
WORKERS = 4
STARTUP_S = 6
SMALL_OPS = 300
STATE_BYTES = 128 << 20
CHECKPOINT_STEPS = 10

torch = None  # imported by use_torch()
AFTER_FORK = "spawn"  # CUDA does not work in a forked child


class Training:
    """Runs about KERNEL_S of matrix products in each step."""

    def __init__(self, seconds, device):
        self.seconds, self.device = seconds, device
        size = 2048 if device == "cuda" else 128
        self.weight = torch.randn(size, size, device=device)
        self.output = torch.empty_like(self.weight)
        self.products = 1
        self.products = max(1, round(KERNEL_S / self.time_of_step()))

    def time_of_step(self):
        for count in (20, 100):
            self.synchronize()
            begin = time.perf_counter()
            for _ in range(count):
                self.launch()
            self.synchronize()
        return (time.perf_counter() - begin) / count

    def synchronize(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def launch(self):
        for _ in range(self.products):
            torch.mm(self.weight, self.weight, out=self.output)

    def run(self, prepare):
        """Calls prepare(step) and launches, until the time is over. At most 4 steps are queued."""
        queued = []
        self.synchronize()
        if self.device == "cuda":
            torch.cuda.profiler.start()
        end, step = time.monotonic() + self.seconds, 0
        while time.monotonic() < end:
            prepare(step)
            self.launch()
            step += 1
            if self.device == "cuda":
                event = torch.cuda.Event(blocking=True)
                event.record()
                queued.append(event)
            if len(queued) > 4:
                queued.pop(0).synchronize()
        self.synchronize()
        if self.device == "cuda":
            torch.cuda.profiler.stop()


def use_torch(options):
    """Imports PyTorch and makes the model. Programs that fork must do so before."""
    global torch
    torch = __import__("torch")
    return Training(options.seconds, options.device)


def spin(seconds):
    """Runs Python code for so long, whatever the speed of the machine is."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        total += sum(range(200))
    return total


def in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    return thread


class Samples:
    """An endless data set."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return float(index)


class Collate:
    def __init__(self, seconds):
        self.seconds = seconds

    def collate(self, samples):
        spin(self.seconds)  # cause slow_collate
        return torch.tensor(samples)

    def __call__(self, samples):
        global torch
        torch = torch or __import__("torch")
        return self.collate(samples)


def slow_collate(options):
    """Worker processes prepare batches too slowly."""
    training = use_torch(options)
    seconds = KERNEL_S / 6 if options.good else WORKERS * STEP_S
    loader = iter(torch.utils.data.DataLoader(
        Samples(), batch_size=32, num_workers=WORKERS, collate_fn=Collate(seconds),
        prefetch_factor=4, persistent_workers=False))
    batch = next(loader).to(options.device)  # wait for the start of the workers

    def load(_):
        batch.copy_(next(loader), non_blocking=True)
    training.run(load)


def tokenize(numbers):
    return sorted(numbers)  # cause gil


def numbers_for(seconds):
    """Numbers that take about so long to sort."""
    numbers = [hash(str(i)) for i in range(20000)]
    begin = time.perf_counter()
    sorted(numbers)
    took = time.perf_counter() - begin
    return numbers * max(1, int(seconds / took))


def tokenize_until(is_over):
    numbers = numbers_for(STEP_S)
    while not is_over.is_set():
        tokenize(numbers)


def gil(options):
    """Another thread keeps the interpreter lock in long C calls. Good: another process does.

    Each step has a call that releases the lock, as file access and many operators do.
    """
    training = use_torch(options)
    context = multiprocessing.get_context(AFTER_FORK)
    is_over = context.Event() if options.good else threading.Event()
    start = context.Process if options.good else threading.Thread
    other = start(target=tokenize_until, args=(is_over,))
    other.start()
    training.run(lambda step: time.sleep(0.001))
    is_over.set()
    other.join()


def write_results(file, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        file.write(bytes(65536))
        os.fsync(file.fileno())  # cause io
        file.seek(0)


def io(options):
    """Writes the results of each step and waits for the disk. Good: another thread does."""
    training = use_torch(options)
    with tempfile.TemporaryFile(dir=".", buffering=0) as file:
        if not options.good:
            training.run(lambda step: write_results(file, STEP_S))
            return
        writer = in_thread(write_results, file, options.seconds)
        training.run(lambda step: None)
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


def lock(options):
    """Another thread computes with a lock that each step needs. Good: it computes without."""
    training = use_torch(options)
    statistics = Statistics(not options.good)
    training.run(lambda step: statistics.step())
    statistics.end()


def poll():
    time.sleep(STEP_S)  # cause sleep


def sleep(options):
    """Sleeps between steps. Good: does not."""
    use_torch(options).run(lambda step: options.good or poll())


def fill_fresh_buffers(seconds):
    import numpy
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        numpy.ones(4 << 20)  # cause page_faults


def page_faults(options):
    """Each step fills memory that the kernel has to provide first. Good: fills one buffer again."""
    import numpy
    training = use_torch(options)
    buffer = numpy.empty(128 << 10)
    training.run(lambda step: buffer.fill(1) if options.good else fill_fresh_buffers(STEP_S))


def write_state(path, snapshot, copied):
    """Only the write needs time. It needs no interpreter lock."""
    copied.synchronize()
    with open(path, "wb", buffering=0) as file:
        file.write(memoryview(snapshot.numpy()))
        os.fsync(file.fileno())


def save(state, path):
    torch.save(state, path)  # cause checkpoint


def checkpoint(options):
    """Every few steps, saves the state. Good: copies it to pinned memory, and a thread writes it."""
    training = use_torch(options)
    state = torch.zeros(STATE_BYTES // 4, device=options.device)
    is_cuda = options.device == "cuda"
    snapshot = torch.empty(state.shape, pin_memory=is_cuda)
    snapshot.copy_(state)
    threads = []

    def save_sometimes(step):
        if step % CHECKPOINT_STEPS != CHECKPOINT_STEPS - 1:
            return
        if not options.good:
            save({"weight": state}, path)
        elif is_cuda and not any(thread.is_alive() for thread in threads):
            snapshot.copy_(state, non_blocking=True)
            copied = torch.cuda.Event(blocking=True)
            copied.record()
            threads.append(in_thread(write_state, path, snapshot, copied))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = os.path.join(folder, "state")
        training.run(save_sometimes)
        for thread in threads:
            thread.join()


def load_dataset(seconds):
    spin(seconds)  # cause startup


def startup(options):
    """Loads all data before the first kernel. Good: loads what the first step needs."""
    load_dataset(0.001 if options.good else STARTUP_S)
    use_torch(options).run(lambda step: None)


def log_metrics(file, seconds):
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
        print("weight", count, "mean 0.0 deviation 1.0", file=file, flush=True)  # cause logging


def logging(options):
    """Prints a line for each weight in each step. Good: prints one line for each step."""
    training = use_torch(options)
    with tempfile.TemporaryFile("w", dir=".") as file:
        training.run(lambda step: log_metrics(file, 0.0001 if options.good else STEP_S))


def small_operators(x):
    y = x
    for i in range(SMALL_OPS):
        y = y + len("layer.%d.%s" % (i, "weight" if i % 2 else "bias"))  # cause python_overhead
    return y


def python_overhead(options):
    """Python launches many small kernels one by one. Good: each takes longer than its launch."""
    training = use_torch(options)
    elements = 1 << 25 if options.good and options.device == "cuda" else 1 << 12
    x = torch.randn(elements, device=options.device)
    small_operators(x)
    training.launch = lambda: small_operators(x)
    training.run(lambda step: None)


def call_model(model, x):
    return model(x)  # cause compile


def compiled(options):
    """torch.compile compiles the model after the first kernel. Good: runs it as it is."""
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        training = use_torch(options)
        model = torch.nn.Sequential(*[torch.nn.Sequential(
            torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512))
            for _ in range(4)]).to(options.device)
        x = torch.randn(64, 512, device=options.device)
        call_model(model if options.good else torch.compile(model), x)
        training.run(lambda step: None)


CASES = {"slow_collate": slow_collate, "gil": gil, "io": io, "lock": lock, "sleep": sleep,
         "page_faults": page_faults, "checkpoint": checkpoint, "startup": startup,
         "logging": logging, "python_overhead": python_overhead, "compile": compiled}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", required=True, choices=CASES)
    parser.add_argument("--good", action="store_true", help="run the variant without the cause")
    parser.add_argument("--seconds", type=float, default=5, help="time of all steps (5)")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to try the program (cuda)")
    options = parser.parse_args()
    CASES[options.case](options)


if __name__ == "__main__":
    main()
