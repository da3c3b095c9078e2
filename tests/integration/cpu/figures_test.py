#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks bench/cpu_samples.py: the statistics that tests/gpu/cpu.py judges CPU samples with."""

import collections
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bench")
sys.path.insert(0, BENCH)
import cpu_samples
from cpu_samples import CALL, ENTER, LEAVE, RETURNED


US = 1000


class MadeLog:
    """A log of one thread. samples: (microseconds, stack)."""

    def __init__(self, samples, stacks, flags=0):
        self.tables = collections.defaultdict(list, {
            "STRING": [{"id": i + 1, "text": "function_%d" % i} for i in range(6)],
            "PYTHON_FRAME": [{"id": i + 1, "name": i + 1} for i in range(6)],
            "STACK": [{"id": i + 1, "frames": [], "python": [number + 1 for number in stack]}
                      for i, stack in enumerate(stacks)],
            "THREAD": [{"id": 1, "tid": 7}],
            "CPU_SAMPLE": [{"time_ns": time_us * US, "span_ns": 0, "count": 1, "weight_ns": 1,
                            "state": 1, "thread": 1, "stack": stack, "flags": flags}
                           for time_us, stack in samples]})

    observations = cpu_samples.Log.observations


def markers_of(*events):
    with tempfile.NamedTemporaryFile() as file:
        for time_us, function, action in events:
            file.write(struct.pack("=QQ", time_us * US, 4 * function + action))
        file.flush()
        return cpu_samples.Markers(file.name)


class FiguresTest(unittest.TestCase):
    markers = markers_of((100, 0, ENTER), (200, 0, CALL), (300, 3, ENTER), (400, 3, LEAVE),
                         (500, 0, RETURNED), (600, 0, LEAVE))

    def counts(self, samples, **options):
        return cpu_samples.compare_frames(MadeLog(samples, [(0,), (3, 0)], **options),
                                          {7: self.markers})

    def test_frames_equal_to_the_markers_are_right(self):
        self.assertEqual(self.counts([(150, 1), (350, 2), (550, 1)]), {"right": 3})

    def test_frames_of_another_function_are_wrong(self):
        self.assertEqual(self.counts([(150, 2), (350, 1)])["wrong"], 2)

    def test_time_is_exact_to_a_few_microseconds(self):
        self.assertEqual(self.counts([(305, 1), (505, 2)]), {"within exactness": 2})
        self.assertEqual(self.counts([(315, 1), (515, 2)]), {"wrong": 2})

    def test_moments_between_markers_are_uncertain(self):
        self.assertEqual(self.counts([(50, 1), (250, 1), (450, 1), (650, 1)]), {"uncertain": 4})

    def test_discarded_frames_are_not_wrong(self):
        self.assertEqual(self.counts([(150, 0)], flags=cpu_samples.NO_PYTHON), {"changed": 1})

    def test_markers_of_a_program_end_where_they_began(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, os.path.join(BENCH, "sampled_frames.py"), folder, "0.3"],
                           check=True)
            files = os.listdir(folder)
            self.assertEqual(len(files), 2)
            for name in files:
                markers = cpu_samples.Markers(os.path.join(folder, name))
                self.assertGreater(len(markers.times), 20)
                self.assertEqual(list(markers.times), sorted(markers.times))
                self.assertEqual(len(markers.stacks[-1]), 1)
                self.assertEqual(markers.codes[-1] % 4, LEAVE)

    def test_interval_contains_the_share_of_independent_samples(self):
        for seed in range(10):
            draw = random.Random(seed)
            pairs = [(float(draw.random() < 0.3), 1.0) for _ in range(500)]
            low, high = cpu_samples.block_bootstrap(pairs, seed)
            self.assertTrue(low < 0.3 < high, (seed, low, high))
            self.assertLess(high - low, 0.2)

    def test_interval_is_wider_if_neighbours_are_alike(self):
        draw = random.Random(1)
        alike = [(float(side), 1.0) for side in (draw.random() < 0.5 for _ in range(50))
                 for _ in range(10)]
        low, high = cpu_samples.block_bootstrap(alike, 1)
        draw.shuffle(alike)
        mixed_low, mixed_high = cpu_samples.block_bootstrap(alike, 1)
        self.assertGreater(high - low, 1.5 * (mixed_high - mixed_low))

    def test_bound_of_equal_ratios_is_the_ratio(self):
        for value in cpu_samples.bound_95([1.02] * 5):
            self.assertAlmostEqual(value, 0.02)

    def test_bound_includes_the_spread(self):
        mean, low, high = cpu_samples.bound_95([0.97, 1.05, 1.01, 0.99])
        self.assertTrue(low < 0 < mean < 0.02 < high, (mean, low, high))


if __name__ == "__main__":
    unittest.main()
