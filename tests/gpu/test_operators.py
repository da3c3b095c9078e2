#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests how operators.py compares a recording with its table, on made-up recordings."""

import json
import os
import sqlite3
import tempfile
import unittest

import operators
from operators import MARK_BYTES, Work

SCRIPT = "operators_00.py"
MODULE = "<module> (/x/" + SCRIPT + ":%d)"
INNER = "linear (/x/torch/nn/functional.py:7)"


def mark(number, phase):
    return True, MARK_BYTES + 16 * number + 2 * operators.PHASES.index(phase), None


class Table(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, SCRIPT)
        self.calls = operators.generate(
            self.path, [{"index": 3, "name": "abs"}, {"index": 4, "name": "nn.linear"}], 1)
        self.call = self.calls[1]

    def tearDown(self):
        self.folder.cleanup()

    def verdict(self, phase, *frames):
        return operators.fault_of(Work("kernel", "k", frames), self.call, phase, SCRIPT)[0]

    def test_lines_are_those_of_the_script(self):
        with open(self.path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        self.assertIn("'nn.linear'", lines[self.call.lines["setup"] - 1])
        self.assertIn("c.op(", lines[self.call.lines["forward"] - 1])
        self.assertIn("backward()", lines[self.call.lines["backward"] - 1])
        compile("\n".join(lines), self.path, "exec")

    def test_a_forward_kernel_needs_the_line_of_its_operator(self):
        line = self.call.lines["forward"]
        self.assertEqual(self.verdict("forward", MODULE % line, INNER), "right")
        self.assertEqual(self.verdict("forward", MODULE % (line - 5), INNER), "wrong")
        self.assertEqual(self.verdict("forward", INNER), "missing")
        self.assertEqual(self.verdict("forward"), "missing")

    def test_a_backward_kernel_needs_the_forward_line(self):
        forward, own = self.call.lines["forward"], self.call.lines["backward"]
        label = "[backward] AddmmBackward0"
        self.assertEqual(self.verdict("backward", MODULE % forward, INNER, label), "exact")
        self.assertEqual(self.verdict("backward", MODULE % own, INNER, label), "wrong")
        self.assertEqual(self.verdict("backward", INNER, label), "missing")
        self.assertEqual(self.verdict("backward", MODULE % forward, "[backward~] X"), "inferred")
        self.assertEqual(self.verdict("backward", MODULE % own, "[backward?] X"), "no line stated")
        self.assertEqual(self.verdict("backward", MODULE % own), "beside nodes")
        self.assertEqual(self.verdict("backward", MODULE % forward), "wrong")

    def test_marks_divide_the_work(self):
        rows = [(False, None, "early"), mark(0, "forward"), (False, None, "a"),
                (True, 4096, "small copy"), (True, 1 << 20, "even copy"), mark(1, "backward"), (False, None, "b")]
        self.assertEqual(list(operators.divide(rows)), [
            (0, "forward", "a"), (0, "forward", "small copy"),
            (0, "forward", "even copy"), (1, "backward", "b")])

    def test_reads_a_recording(self):
        database = sqlite3.connect(":memory:")
        database.executescript("""
            CREATE TABLE name(id, text);
            CREATE TABLE path(id, parent_id, name_id);
            CREATE TABLE shape(id, kind, name_id, source, destination);
            CREATE TABLE gpu_work(shape_id, path_id, start_ns, bytes);
            INSERT INTO name VALUES (1, 'outer'), (2, 'inner'), (3, 'kernel'), (4, 'copy');
            INSERT INTO path VALUES (1, NULL, 1), (2, 1, 2);
            INSERT INTO shape VALUES (1, 'kernel', 3, NULL, NULL), (2, 'copy', 4, 'device',
                'device');
            INSERT INTO gpu_work VALUES (1, 2, 20, NULL), (2, 1, 10, %d);""" % mark(0, "seeds")[1])
        self.assertEqual(list(operators.divide(operators.works_of(database))),
                         [(0, "seeds", Work("kernel", "kernel", ["outer", "inner"]))])

    def test_reads_a_profile(self):
        path = os.path.join(self.folder.name, "profile.json")
        events = [
            {"cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "ts": 1,
             "args": {"bytes": mark(1, "forward")[1]}},
            {"cat": "kernel", "name": "void at::(anonymous namespace)::f<int>(int)", "ts": 2},
            {"cat": "cpu_op", "name": "aten::add", "ts": 3}]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
        self.assertEqual(operators.profiled_work(path),
                         {(1, "forward"): {("kernel", "at::anonymous::f"): 1}})


if __name__ == "__main__":
    unittest.main()
