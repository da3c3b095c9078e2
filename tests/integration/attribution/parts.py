# SPDX-License-Identifier: Apache-2.0
"""Checks parts of a run and the JSON summary.
- Consecutive time windows add up to the whole, line by line, and contain what began in them.
- --filter and --range keep the lines of the whole that they select.
- The summary has the right values for each API function.
"""

import collections
import copy
import json
import math
import random
import re
import struct

import evidence as facts
import model

# Weights that add up over time windows.
ADDED_UP = ("gpu-time", "count", "cpu-wait", "gpu-exclusive", "gpu-idle", "alloc-bytes")
# Weights whose range frames come from the call only, not from the creator of a graph node.
BY_CALL = ("cpu-wait", "alloc-bytes")
P99_ERROR = 1 / 128 + 1e-9  # relative to the middle of a bucket


def of_weight(lines):
    """Work of zero duration has lines of weight 0 in GPU time."""
    return {line: weight for line, weight in lines.items() if weight}


class Checker:
    """folded(*options) and summary() run xtrace-merge on the log."""

    def __init__(self, seen, reference, log_path, seed, folded, summary):
        self.seen, self.reference = seen, reference
        self.folded, self.summary = folded, summary
        self.chance = random.Random(seed)
        with open(log_path, "rb") as log:
            self.origin_ns = struct.unpack_from("<Q", log.read(32), 24)[0]

    def wanted(self, weight):
        return of_weight(self.reference.folded(model.Settings(weight)))

    def cuts(self):
        """Times of events, some of them plus 1 ns. Something begins between any two, because an
        empty window is an error.
        """
        times = [call.enter_ns for call in self.seen.calls.values() if call.is_recorded]
        times += [work.start_ns for work in self.seen.work]
        last = max(times, default=0)  # nothing begins later
        inside = sorted({max(min(time + self.chance.choice((0, 0, 1)), last) - self.origin_ns, 1)
                         for time in self.chance.sample(times, min(2, len(times)))})
        if not any(inside[0] <= time - self.origin_ns < inside[-1] for time in times):
            inside = inside[:1]
        return [None, *inside, None]

    def window_options(self, start, end):
        return (*(("--from", f"{start}ns") if start is not None else ()),
                *(("--to", f"{end}ns") if end is not None else ()))

    def windows(self):
        cuts = self.cuts()
        for weight in self.chance.sample(ADDED_UP, 2):
            found = collections.Counter()
            for start, end in zip(cuts, cuts[1:]):
                options = self.window_options(start, end)
                lines = of_weight(self.folded("--weight", weight, *options))
                found.update(lines)
                if weight in ("gpu-time", "count"):
                    facts.expect_same(lines, self.window(weight, start, end),
                                      f"--weight {weight} {' '.join(options)}")
            facts.expect_same(found, self.wanted(weight), f"windows at {cuts} of {weight}")

    def window(self, weight, start, end):
        part = copy.copy(self.reference)
        part.evidence = copy.copy(self.seen)
        part.evidence.work = [
            work for work in self.seen.work
            if (start is None or work.start_ns - self.origin_ns >= start) and
            (end is None or work.start_ns - self.origin_ns < end)]
        return of_weight(part.folded(model.Settings(weight)))

    def filters(self):
        weight = self.chance.choice(ADDED_UP)
        lines = self.wanted(weight)
        frames = sorted({frame for line in lines for frame in line.split(";")})
        if not frames:
            return
        frame = self.chance.choice(frames)
        pattern = "^" + re.sub(r"([][().*+?{}|^$\\])", r"\\\1", frame) + "$"
        facts.expect_same(of_weight(self.folded("--weight", weight, "--filter", pattern)),
                          {line: n for line, n in lines.items() if frame in line.split(";")},
                          f"--weight {weight} --filter {pattern}")

    def ranges(self):
        weight = self.chance.choice(BY_CALL)
        lines = self.wanted(weight)
        names = {line: [frame[len("[NVTX "):-1] for frame in line.split(";")
                        if frame.startswith("[NVTX ")] for line in lines}
        texts = sorted({name for of_line in names.values() for name in of_line})
        if not texts:
            return
        wanted = self.chance.choice(texts)
        pattern = "^" + re.sub(r"([][().*+?{}|^$\\])", r"\\\1", wanted) + "$"
        facts.expect_same(
            of_weight(self.folded("--weight", weight, "--range", pattern)),
            {line: n for line, n in lines.items() if wanted in names[line]},
            f"--weight {weight} --range {pattern}")

    def functions(self):
        by_name = collections.defaultdict(list)
        for call in self.seen.calls.values():
            if call.is_recorded:
                by_name[call.shown_api].append(call)
        found, wanted = {}, {}
        for row in json.loads(self.summary())["api_calls"]["rows"]:
            name = row.pop("name")
            lengths = sorted(call.exit_ns - call.enter_ns for call in by_name[name])
            exact = lengths[math.ceil(len(lengths) * 0.99) - 1] if lengths else 0
            p99_ns = row.pop("p99_ns")
            facts.expect(abs(p99_ns - exact) <= exact * P99_ERROR, "p99 of", name, p99_ns, exact)
            found[name] = tuple(sorted(row.items()))
        for name, calls in by_name.items():
            lengths = [call.exit_ns - call.enter_ns for call in calls]
            row = {"count": len(calls), "failed_count": sum(call.result != 0 for call in calls),
                   "total_ns": sum(lengths), "min_ns": min(lengths), "max_ns": max(lengths)}
            wanted[name] = tuple(sorted(row.items()))
        facts.expect_same(found.items(), wanted.items(), "summary for programs: API functions")

    def all(self):
        return [self.windows, self.filters, self.ranges, self.functions]
