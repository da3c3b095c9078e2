#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark suites of xtrace and prints their tables. tools/bench.sh starts it."""

import argparse
import json
import os
import sys

import cpu
import gpu
import paired
from places import Places, add_xtrace_option


def parse_options():
    parser = argparse.ArgumentParser(prog="bench.sh", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", choices=("cpu", "gpu", "paired", []),
                        help="cpu, gpu or paired (default: all that can run)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="only rows whose name contains TEXT; may be repeated")
    parser.add_argument("--launches", type=int, default=10_000_000,
                        help="size of the largest merged log, up to 100,000,000 (10,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="maximum rounds of the GPU suite (5)")
    parser.add_argument("--seconds", type=float, default=450,
                        help="stop starting runs of the GPU suite after this time (450)")
    parser.add_argument("--quick", action="store_true", help="only check that everything runs; results are meaningless")
    parser.add_argument("--simulate", action="store_true", help="run the suites gpu and paired on the simulated GPU")
    parser.add_argument("--nsys", metavar="PATH", help="use this nsys instead of the first one found")
    add_xtrace_option(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="all figures, as JSON")
    options = parser.parse_args()
    options.wanted = lambda *names: not options.only or any(
        text.lower() in name.lower() for text in options.only for name in names
    )
    return options


def say(text):
    print(text, flush=True)


def write_json(path, content):
    if not path:
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")


def has_gpu():
    return any(os.path.exists(path) for path in ("/dev/nvidia0", "/dev/dxg"))


def main():
    options = parse_options()
    places = Places(options.xtrace)
    if not os.access(places.xtrace, os.X_OK):
        sys.exit(f"bench: cannot find {places.xtrace}: build first, or use --xtrace PATH")
    content = {}
    if "cpu" in options.suites or not options.suites:
        suite = cpu.Suite(places, options, say)
        suite.run()
        content["cpu"] = suite.as_json()
    if options.simulate:
        places.environment = places.simulated()
    if "gpu" in options.suites or not options.suites and (options.simulate or has_gpu()):
        places.nsys = gpu.find_nsys(options.nsys)
        suite = gpu.Suite(places, options, say)
        try:
            suite.run()
        except KeyboardInterrupt:
            say("interrupted: what there is")
        for line in suite.lines():
            say(line)
        content["gpu"] = suite.as_json()
    if "paired" in options.suites or not options.suites and (options.simulate or has_gpu()):
        suite = paired.Suite(places, options, say)
        suite.run()
        for line in suite.lines():
            say(line)
        content["paired"] = suite.as_json()
    write_json(options.output, content)


if __name__ == "__main__":
    main()
