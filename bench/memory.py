#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the memory of the tracer during a fast launch loop on the simulated GPU.

Three values have bounds:
- The peak that the tracer reports (tracer.memory_bytes of the log's account): 32 MiB, and 256 KiB
  per thread.
- The process's memory minus that of a run without a tracer: the same, plus the simulated CUPTI's.
- The growth of the process from the second quarter of the run to the last. It excludes the crash
  buffer, whose memory depends on how often the writer runs.

Losses are counted and must add up. Exit status: 0 within the bounds, 1 not, 2 usage.
"""

import argparse
import glob
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

KIB_PROCESS = 32 << 10
KIB_THREAD = 256
# The simulated CUPTI has a list of 14 KiB for each buffer that waits for its worker. malloc has an
# arena for each thread. Both grow with the load of the machine.
KIB_SIMULATOR = 8 << 10
KIB_SIMULATOR_THREAD = 2 << 10
KIB_GROWTH = 3 << 10
GROWTH_LAUNCHES = 20_000_000  # shorter runs end before memory is stable
BATCH = 250_000


MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ .*")
PSS = re.compile(r"^Pss:\s+(\d+) kB")


def pss_kib(pid):
    """KiB of the process, with and without the crash buffer. None after its end."""
    kib = {True: 0, False: 0}
    is_spool = False
    try:
        with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
            for line in file:
                if MAPPING.match(line):
                    is_spool = ".spool" in line
                elif found := PSS.match(line):
                    kib[is_spool] += int(found[1])
    except OSError:
        return None
    return (sum(kib.values()), kib[False]) if kib[False] else None


LOG_HEADER_BYTES = 64
CHUNK_HEADER = struct.Struct("<IHHIIIIII")
ACCOUNT = 2


def keep_accounts(path):
    """Keeps only the accounts of a log, because reading all of it is slow."""
    with open(path, "rb") as file:
        kept = [file.read(LOG_HEADER_BYTES)]
        while len(header := file.read(CHUNK_HEADER.size)) == CHUNK_HEADER.size:
            _, kind, _, stored_bytes, *_ = CHUNK_HEADER.unpack(header)
            if kind == ACCOUNT:
                kept += [header, file.read(stored_bytes)]
            else:
                file.seek(stored_bytes, os.SEEK_CUR)
    with open(path, "wb") as file:
        file.writelines(kept)


class Run:
    """One run of the launch loop: memory over time, and the log's account."""

    def __init__(self, options, threads, launches, traced):
        self.build = options.build
        self.threads = threads
        simulator = os.path.join(self.build, "lib", "xtrace", "simgpu")
        self.environment = dict(
            os.environ,
            LD_LIBRARY_PATH=simulator,
            XTRACE_CUPTI=os.path.join(simulator, "libcupti.so"),
            XTRACE_SIMGPU_KERNEL_NS="200:700",
        )
        batches = max(1, launches // threads // BATCH - 3)  # plus three warm-up batches
        self.command = [
            os.path.join(self.build, "bin", "bench", "bench_launches"),
            "--threads", str(threads), "--batches", str(batches), "--launches", str(BATCH),
            "--depth", "29",
        ]
        self.interval_s = options.interval
        self.samples = []  # KiB of the process
        self.beside_spool = []  # KiB without the crash buffer
        self.account = {}
        if traced:
            with tempfile.TemporaryDirectory(prefix="xtrace-memory-", dir=options.directory) as data:
                self.environment["CUDA_INJECTION64_PATH"] = os.path.join(
                    self.build, "lib", "libxtrace_inject.so")
                self.environment["XTRACE_DATA"] = data
                self.run()
                self.read_account(options.dump, glob.glob(os.path.join(data, "*.xtr")))
        else:
            self.run()

    def run(self):
        begin_s = time.monotonic()
        with subprocess.Popen(self.command, env=self.environment, stdout=subprocess.PIPE,
                              text=True) as child:
            while child.poll() is None:
                kib = pss_kib(child.pid)
                if kib:
                    self.samples.append(kib[0])
                    self.beside_spool.append(kib[1])
                time.sleep(self.interval_s)
            said = child.stdout.read()
        if child.returncode or not self.samples:
            sys.exit(f"memory: {' '.join(self.command)}: exit status {child.returncode}")
        self.wall_s = time.monotonic() - begin_s
        self.launches = json.loads(said.splitlines()[-1])["launches"]

    def read_account(self, dump, logs):
        for log in logs:
            keep_accounts(log)
        said = subprocess.run([dump, "--format", "json", "--kind", "ACCOUNT", *logs],
                              stdout=subprocess.PIPE, text=True, check=False).stdout
        for row in map(json.loads, said.splitlines()):
            if "value" in row:
                self.account[row["name"]] = row["value"]

    def quarter(self, number):
        samples = self.beside_spool
        count = len(samples)
        return samples[count * number // 4:max(count * (number + 1) // 4, 1)] or samples

    def bound_kib(self):
        """Includes the main thread if it calls CUDA."""
        return KIB_PROCESS + KIB_THREAD * max(self.threads, self.account["threads.seen"])

    def growth_kib(self):
        return statistics.median(self.quarter(3)) - statistics.median(self.quarter(1))

    def lost(self):
        return {name: value for name, value in self.account.items()
                if value and re.search(r"\.lost|\.invalid|\.dropped|\.discarded", name)}


def complaints(run, bare):
    """Violated bounds, one line each."""
    account = run.account
    bound_kib = run.bound_kib()
    simulator_kib = KIB_SIMULATOR + KIB_SIMULATOR_THREAD * run.threads
    lost_calls = sum(value for name, value in run.lost().items() if name.startswith("calls."))
    if account["tracer.memory_bytes"] > bound_kib << 10:
        yield f"the tracer used {account['tracer.memory_bytes'] >> 10} KiB"
    if max(run.samples) - max(bare.samples) > bound_kib + simulator_kib:
        yield f"the process used {max(run.samples) - max(bare.samples)} KiB more than without a tracer"
    if run.launches >= GROWTH_LAUNCHES and run.growth_kib() > KIB_GROWTH:
        yield f"the process grew by {run.growth_kib()} KiB"
    if account["calls.seen"] < run.launches:
        yield f"{run.launches - account['calls.seen']} launches were not recorded"
    if account["calls.seen"] != account["calls.written"] + lost_calls:
        yield "calls seen differ from calls written plus calls lost"
    if account["kernels.written"] != run.launches and not run.lost():
        yield f"{run.launches - account['kernels.written']} kernels are missing and not counted as lost"


def parse_options():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(here, "..", "build"), help="the build tree")
    parser.add_argument("--dump", default=os.path.join(here, "..", "tests", "tools", "xtrace-dump"),
                        help="the reader of logs")
    parser.add_argument("--launches", type=int, default=100_000_000, help="of each run (100,000,000)")
    parser.add_argument("--threads", type=int, action="append", help="number of threads; may be repeated (1 and 8)")
    parser.add_argument("--interval", type=float, default=0.1, help="interval of samples in seconds (0.1)")
    parser.add_argument("--directory", help="folder for temporary logs")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.threads = options.threads or [1, 8]
    return options


def main():
    options = parse_options()
    bad = False
    print("threads     launches  wall s  tracer MiB   bound  process MiB: least  median    most"
          "  growth  without  waited s  lost")
    for threads in options.threads:
        bare = Run(options, threads, min(options.launches, 4_000_000), traced=False)
        run = Run(options, threads, options.launches, traced=True)
        account = run.account
        waited_s = (account["threads.waited_ns"] + account["buffers.waited_ns"]) / 1e9 / threads
        print(f"{threads:7} {run.launches:12,} {run.wall_s:7.1f}"
              f" {account['tracer.memory_bytes'] / 2**20:11.1f}"
              f" {run.bound_kib() / 1024:7.1f}"
              f" {min(run.samples) / 1024:19.1f} {statistics.median(run.samples) / 1024:7.1f}"
              f" {max(run.samples) / 1024:7.1f} {run.growth_kib() / 1024:7.1f}"
              f" {max(bare.samples) / 1024:8.1f} {waited_s:9.2f}  {run.lost() or 0}", flush=True)
        for line in complaints(run, bare):
            print(f"    NOT WITHIN BOUNDS: {line}")
            bad = True
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
