# SPDX-License-Identifier: Apache-2.0
"""Synthetic profiles of a program that runs some call paths in each step."""

import json
import random

DAY = 86400 * 10**9
STEPS = 50
COUNT = 4  # launches of a path in each step


def profile(seed, day, paths=20, factors=None, everything=1.0, names=None, noise=0.01, **facts):
    """A profile. `factors` slows down paths by number, `names` renames functions by number."""
    generator = random.Random(seed)
    texts = ["main"]
    texts += [(names or {}).get(i, f"layer_{i}") for i in range(paths)]
    texts += [f"[GPU_Kernel]kernel_{i}" for i in range(paths)]
    nodes, rows, total = [0, 0], [], 0.0
    for i in range(paths):
        nodes += [1, 1 + i, len(nodes) // 2 + 1, 1 + paths + i]
        value = ((1000 + 10 * i) * generator.gauss(1, noise) * (factors or {}).get(i, 1)
                 * everything)
        total += value
        rows.append([len(nodes) // 2, *cells(value, COUNT)])
    launches = COUNT * paths
    process = {"name": "train", "command": "train --fast", "host": "ci", "driver": "13000",
               "cupti": "130001", "start_realtime_ns": (20000 + day) * DAY + seed,
               "iterations": "nvtx", "iteration_name": "step", "found_count": STEPS,
               "warmup_count": 1, "used_count": STEPS - 1}
    process.update({name: value for name, value in facts.items() if name in process})
    document = {
        "format": "xtrace-profile", "version": 2, "simulated_gpu": False,
        "processes": [process],
        "devices": [{"name": facts.get("gpu", "NVIDIA H100"), "uuid": "1"}],
        "trust": {"word": facts.get("trust", "complete"), "warnings": []},
        "totals": [["gpu-time", *cells(total, launches)],
                   ["wall", *cells(1.2 * total * generator.gauss(1, noise), 1)],
                   ["launches", *cells(launches, launches)]],
        "paths": rows, "names": texts, "nodes": nodes}
    for level in ("idle", "copies", "bytes", "memory", "ranges", "spans", "kernels", "apis",
                  "calls"):
        document[level] = []
    return json.dumps(document)


def cells(value, count):
    """The columns after the id: the whole run, one step, and relative errors."""
    return [value * STEPS, count * STEPS, value, count, 0.001, 0.001, 0, 0.001, 0.001, 1]
