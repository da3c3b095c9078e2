# SPDX-License-Identifier: Apache-2.0
"""Makes random recordings: of programs on the simulated GPU, with faults and lost records, and of
jobs with several ranks.
"""

import os
import pathlib
import random
import subprocess

SCENARIOS = ("none", "slow_loader", "slow_kernel", "gc_pause", "slow_link", "moving",
             "mismatch_operation", "mismatch_bytes", "hang", "missing", "duplicated", "damaged",
             "two_jobs", "late_start", "no_payload", "graphs", "slow_cpu", "launch_bound",
             "contended", "unequal", "blocking_graphs")
FAULTS = ("", "", "", "zero_times:7", "reversed_times:5", "drop_records:6")


def record(args, chance, seed, folder):
    """A program of which the parts and their order are random."""
    choose = chance.choice
    environment = dict(
        os.environ, LD_LIBRARY_PATH=args.simgpu, XTRACE_DATA=folder,
        XTRACE_CUPTI=os.path.join(args.simgpu, "libcupti.so"),
        CUDA_INJECTION64_PATH=args.inject, NVTX_INJECTION64_PATH=args.inject,
        XTRACE_API=choose(("all", "work", "launch")), XTRACE_GRAPH_DETAIL=choose(("graph", "node")),
        XTRACE_SIMGPU_SEED=str(seed), XTRACE_SIMGPU_DEVICES=str(chance.randint(1, 3)),
        XTRACE_SIMGPU_KERNEL_NS=choose(("500:30000", "1:2000", "100:200000")),
        XTRACE_SIMGPU_FAULT=choose(FAULTS))
    subprocess.run([args.random_program, str(seed), os.devnull, *choose(((), ("flat",)))],
                   env=environment, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def make(args, seed, folder):
    """Returns the paths of the logs. The same seed gives the same program."""
    chance = random.Random(seed)
    if seed % 3 == 0:
        subprocess.run([args.make_ranks, chance.choice(SCENARIOS), str(seed), folder,
                        str(chance.randint(2, 5)), str(chance.randint(3, 12))],
                       check=True, stdout=subprocess.DEVNULL)
    else:
        record(args, chance, seed, folder)
    return sorted(map(str, pathlib.Path(folder).rglob("*.xtr")))
