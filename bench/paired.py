# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of recording within one process, which switches it off and on in turn.

While recording is off, CUPTI still makes its records and the tracer's callbacks still run, but
return after storing the call's id. The difference is what the tracer does at a call: the call
stack, two times and the record. Neighbouring batches vary less than separate processes.
"""

import glob
import os
import re
import statistics
import tempfile

import children
import tables
from children import Failed


class Program:
    def __init__(self, name, command, figures, limit_s, needs_torch=False):
        self.name = name
        self.command = command  # a function of the places that returns a list
        self.figures = figures  # of its report: values and launches of batches
        self.limit_s = limit_s
        self.needs_torch = needs_torch


def launch_ns(report, _):
    return report["issue_ns"]


def step_ns(report, launches_on):
    """Nanoseconds per launch, from batches of steps."""
    batches = report["step_ms"]
    steps_on = (len(batches) // 2) * report["steps_a_batch"]
    return [1e6 * step_ms / (launches_on / steps_on) for step_ms in batches]


PROGRAMS = (
    Program(
        "launch loop, 35 frames",
        lambda places: [places.program("bench_launches"), "--depth", "29", "--batches", "400",
                        "--paired"],
        launch_ns,
        60,
    ),
    Program(
        "4 threads, 35 frames",
        lambda places: [places.program("bench_launches"), "--depth", "29", "--batches", "200",
                        "--threads", "4", "--paired"],
        launch_ns,
        60,
    ),
    Program(
        "PyTorch step",
        lambda places: ["python3", places.script("torch_step.py"), "--samples", places.samples,
                        "--batches", "600", "--steps", "2", "--paired"],
        step_ns,
        120,
        needs_torch=True,
    ),
)

WAYS = (
    ("native stacks", {"XTRACE_PYTHON": "off"}, None),
    ("native + Python", {}, "PyTorch"),
    ("native stacks, --api all", {"XTRACE_PYTHON": "off", "XTRACE_API": "all"}, None),
)


class Suite:
    def __init__(self, places, options, say):
        self.places = places
        self.options = options
        self.say = say
        self.rows = []
        self.has_torch = not options.simulate and self.finds_torch()

    def finds_torch(self):
        test = "import torch; assert torch.cuda.is_available()"
        try:
            children.run(["python3", "-c", test], 90, self.places.environment)
        except Failed:
            return False
        return True

    def run(self):
        for program in PROGRAMS:
            for way, settings, only in WAYS:
                if only and only not in program.name or program.needs_torch and not self.has_torch:
                    continue
                if not self.options.wanted(program.name, way):
                    continue
                row = {"program": program.name, "way": way, "runs": []}
                self.rows.append(row)
                for _ in range(1 if self.options.quick else min(3, self.options.rounds)):
                    self.run_one(program, settings, row)

    def run_one(self, program, settings, row):
        with tempfile.TemporaryDirectory(prefix="xtrace-bench-") as directory:
            environment = {
                **self.places.environment,
                "CUDA_INJECTION64_PATH": self.places.injected,
                "NVTX_INJECTION64_PATH": self.places.injected,
                "XTRACE_CAPTURE_RANGE": "cudaProfilerApi",
                "XTRACE_DATA": directory,
                **settings,
            }
            try:
                done = children.run(program.command(self.places), program.limit_s, environment,
                                    directory)
                launches_on = self.launches(directory)
                if not launches_on:
                    raise Failed("nothing was recorded")
                values = program.figures(done.report(), launches_on)
            except Failed as failure:
                row["failure"] = str(failure)
                return
        off, on = values[0::2], values[1::2]
        added = [b - a for a, b in zip(off, on)]
        run = {
            "off": statistics.median(off),
            "on": statistics.median(on),
            "added": statistics.median(added),
            "added_quartiles": statistics.quantiles(added, n=4),
            "pairs": len(added),
        }
        row["runs"].append(run)
        self.say(f"  {row['program']}, {row['way']}: off {run['off']:.0f}, on {run['on']:.0f}, "
                 f"added {run['added']:.0f} ns a launch")

    def launches(self, directory):
        traces = glob.glob(os.path.join(directory, "*.xtr"))
        if not traces:
            raise Failed("left no trace")
        said = children.run([self.places.dump, "--calls-total", *traces], 60).said
        totals = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", said)}
        return totals.get("kernel_launch", 0) + totals.get("graph_launch", 0)

    def lines(self):
        table = [["", "off", "on", "added ns/launch", "quartiles of pairs", "pairs"]]
        for row in self.rows:
            runs = row["runs"]
            name = f"{row['program']}, {row['way']}"
            if not runs:
                table.append([name, "-", "-", row.get("failure", "-"), "-", "-"])
                continue
            middle = sorted(runs, key=lambda run: run["added"])[len(runs) // 2]
            table.append([
                name,
                tables.with_spread([run["off"] for run in runs]),
                tables.with_spread([run["on"] for run in runs]),
                tables.with_spread([run["added"] for run in runs]),
                "{:.0f} to {:.0f}".format(middle["added_quartiles"][0],
                                          middle["added_quartiles"][2]),
                str(sum(run["pairs"] for run in runs)),
            ])
        return ["", "Recording switched off and on in one process, ns a launch: "
                "median [least most] of runs", *tables.table(table)]

    def as_json(self):
        return self.rows
