#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of recording in several builds of xtrace, on one machine.

Each build runs the same programs in turn, round after round, pinned to the same processors. Within
a process, recording is switched off and on batch by batch, as by "bench.sh paired": while it is
off, CUPTI makes its records and calls the callbacks all the same. So the difference is what the
tracer adds to a launch above CUPTI. Builds are compared within a round.
"""

import argparse
import os
import statistics
import tempfile
import time

import children
import paired
import tables
from places import Places, add_xtrace_option

FRAMES_BELOW_LOOP = 6  # of bench_launches, without --depth
RECORDER = os.path.join("lib", "libxtrace_inject.so")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs="+", metavar="NAME=DIR", help=f"a build: DIR/{RECORDER}")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the launch loop (20)")
    parser.add_argument("--torch-rounds", type=int, default=4, help="rounds of PyTorch (4)")
    parser.add_argument("--frames", type=int, default=20, help="frames of the launch loop (20)")
    parser.add_argument("--seconds", type=float, default=280,
                        help="start no round after this time (280)")
    parser.add_argument("--cpus", default="2-3", help="processors to run on, as for taskset (2-3)")
    parser.add_argument("--simulate", action="store_true", help="use the simulated GPU")
    add_xtrace_option(parser)
    return parser.parse_args()


class Comparison:
    def __init__(self, options):
        self.options = options
        self.places = Places(options.xtrace)
        self.builds = dict(build.split("=", 1) for build in options.builds)
        self.end_s = time.monotonic() + options.seconds
        self.launches = None  # of a PyTorch run while recording is on
        if options.simulate:
            self.places.environment = self.places.simulated()

    def loop(self):
        return paired.Program(
            f"launch loop, {self.options.frames} frames",
            lambda places: [places.program("bench_launches"), "--depth",
                            str(self.options.frames - FRAMES_BELOW_LOOP), "--batches", "200",
                            "--paired"],
            paired.launch_ns, 60)

    def torch(self):
        return paired.Program(
            "PyTorch step, native + Python",
            lambda places: ["python3", places.script("torch_step.py"), "--samples",
                            places.samples, "--batches", "400", "--steps", "2", "--paired"],
            paired.step_ns, 120, needs_torch=True)

    def run_one(self, program, build):
        """Nanoseconds per launch: without recording, and added by it."""
        with tempfile.TemporaryDirectory(prefix="xtrace-builds-") as directory:
            recorder = os.path.abspath(os.path.join(build, RECORDER))
            environment = {
                **self.places.environment,
                "CUDA_INJECTION64_PATH": recorder,
                "NVTX_INJECTION64_PATH": recorder,
                "XTRACE_CAPTURE_RANGE": "cudaProfilerApi",
                "XTRACE_DATA": directory,
                **({} if program.needs_torch else {"XTRACE_PYTHON": "off"}),
            }
            command = ["taskset", "-c", self.options.cpus, *program.command(self.places)]
            done = children.run(command, program.limit_s, environment, directory)
            if program.needs_torch and not self.launches:
                self.launches = paired.Suite.launches(self, directory)
            values = program.figures(done.report(), self.launches)
        off, on = values[0::2], values[1::2]
        return statistics.median(off), statistics.median(b - a for a, b in zip(off, on))

    def rounds(self, program, count):
        """For each complete round, the results by build."""
        results = []
        names = list(self.builds)
        while len(results) < count and time.monotonic() < self.end_s:
            turn = len(results) % len(names)
            try:
                results.append({name: self.run_one(program, self.builds[name])
                                for name in names[turn:] + names[:turn]})
            except children.Failed as failure:
                print(f"{program.name}: {failure}", flush=True)
                break
        return results

    def show(self, program, count):
        results = self.rounds(program, count)
        if not results:
            return
        base = next(iter(self.builds))
        table = [[f"{program.name}, ns per launch", "without recording", "added",
                  "quartiles of rounds", f"added, to {base}", "rounds"]]
        for name in self.builds:
            added = [result[name][1] for result in results]
            quartiles = statistics.quantiles(added, n=4) if len(added) > 1 else [added[0]] * 3
            table.append([
                name,
                tables.with_spread([result[name][0] for result in results]),
                tables.with_spread(added),
                f"{quartiles[0]:.0f} to {quartiles[2]:.0f}",
                tables.with_spread([result[name][1] - result[base][1] for result in results]),
                str(len(results)),
            ])
        print("\n".join(tables.table(table)), flush=True)

    def run(self):
        self.show(self.loop(), self.options.rounds)
        if paired.Suite.finds_torch(self):
            self.show(self.torch(), self.options.torch_rounds)


if __name__ == "__main__":
    Comparison(parse_options()).run()
