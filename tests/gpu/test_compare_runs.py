#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the rules of compare_runs.py, with shell scripts in place of programs and of xtrace."""

import os
import stat
import tempfile
import unittest

import compare_runs
from compare_runs import compare_stream

# Runs the command and adds the tracer's own lines. FAULT is run after it, within the same status.
TRACER = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
"$@"
status=$?
%s
echo "xtrace: recorded 1 process, 5 launches" >&2
echo "To see it: xtrace report trace" >&2
exit $status
"""


def rule_of(*bare, traced):
    return compare_stream([text.splitlines() for text in bare], traced.splitlines())


class Rules(unittest.TestCase):
    def same(self, rule, *bare, traced):
        self.assertEqual(rule_of(*bare, traced=traced), (rule, []))

    def different(self, rule, *bare, traced):
        found, lines = rule_of(*bare, traced=traced)
        self.assertEqual(found, rule)
        self.assertTrue(lines)

    def test_equal_runs_allow_no_difference(self):
        self.same("exact", "sum 5", "sum 5", "sum 5", traced="sum 5")
        self.different("exact", "sum 5", "sum 5", "sum 5", traced="sum 6")
        self.different("exact", "a", "a", "a", traced="a\nb")
        self.different("exact", "a\nb", "a\nb", "a\nb", traced="b\na")

    def test_times_and_addresses_are_values(self):
        self.same("values", "took 0.1 ms at 0x7f01", "took 0.2 ms at 0x7f02",
                  "took 0.1 ms at 0x7f01", traced="took 15.2 ms at 0xa")
        self.same("values", "12.1 GB/s", "12.2 GB/s", "12.1 GB/s", traced="9 GB/s")

    def test_values_elsewhere_stay(self):
        self.different("values", "took 1 ms\nsum 5", "took 2 ms\nsum 5", "took 3 ms\nsum 5",
                       traced="took 4 ms\nsum 6")
        self.different("values", "took 1 ms", "took 2 ms", "took 3 ms", traced="took long")

    def test_only_varying_words_of_a_line_are_masked(self):
        bare = ("error 11 in a of b", "error 12 in a of b", "error 13 in a of b")
        self.same("values", *bare, traced="error 19 in a of b")
        self.different("values", *bare, traced="error 11 in c of b")

    def test_threads_may_print_in_any_order(self):
        self.same("order", "a 1\nb 2", "b 2\na 1", "a 1\nb 2", traced="b 2\na 1")
        self.different("order", "a 1\nb 2", "b 2\na 1", "a 1\nb 2", traced="b 2")

    def test_lines_of_all_bare_runs_must_be_there(self):
        bare = ("begin\nx\nend", "begin\nend", "begin\nx\nx\nend")
        self.same("common", *bare, traced="begin\nend")
        self.different("common", *bare, traced="begin\nx")
        self.different("common", *bare, traced="begin\nfailed\nend")


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.said = []

    def tearDown(self):
        self.folder.cleanup()

    def script(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def row(self, program, fault="", total_s=60, **more):
        comparison = compare_runs.Comparison(
            self.script("tracer", TRACER % fault), {"default": []}, total_s, 2, self.said.append)
        path = self.script("program", "#!/bin/sh\n" + program)
        return comparison.run([[compare_runs.Program("program", [path], **more)]])[0]

    def test_own_lines_are_no_difference(self):
        row = self.row("echo out; echo err >&2; exit 3")
        self.assertEqual(row["verdict"], "same, fails bare")
        self.assertEqual(row["statuses"], [3, 3, 3])
        self.assertEqual(row["modes"]["default"]["recorded"], "1 process, 5 launches")

    def test_finds_a_status_and_a_line(self):
        self.assertEqual(self.row("exit 0", "status=139")["verdict"], "DIFFERENT")
        self.assertEqual(self.row("exit 0", "echo more >&2")["verdict"], "DIFFERENT")

    def test_signals_become_a_status(self):
        row = self.row("kill -PIPE $$")
        self.assertEqual((row["verdict"], row["statuses"][0]), ("same, fails bare", -13))

    def test_more_bare_runs_decide_after_a_difference(self):
        count = os.path.join(self.folder.name, "count")
        row = self.row("echo >>%s; test $(wc -l <%s) -ne 4 || echo rare" % (count, count))
        self.assertEqual(row["verdict"], "DIFFERENT")
        self.assertEqual(row["modes"]["default"]["bare_runs"], 12)
        os.remove(count)
        row = self.row("echo >>%s; test $(wc -l <%s) -lt 4 || echo rare" % (count, count))
        self.assertEqual(row["verdict"], "same")

    def test_limits(self):
        self.assertEqual(self.row("sleep 5", limit_s=0.1)["verdict"], "too slow bare")
        self.assertEqual(self.row("exit 0", total_s=0)["verdict"], "not reached")

    def test_a_fault_of_the_script_is_a_row(self):
        row = self.row("exit 0", folder=os.path.join(self.folder.name, "missing"))
        self.assertEqual(row["verdict"], "does not start bare")
        row = self.row("exit 0", limit_s="no number")
        self.assertEqual(row["verdict"], "script failed")
        self.assertIn("TypeError", row["fault"])

    def test_summary(self):
        path = os.path.join(self.folder.name, "results.json")
        rows = [self.row("exit 0", "status=1")]
        self.assertEqual(compare_runs.summarise(rows, {}, {}, self.said.append, path), 1)
        self.assertTrue(os.path.getsize(path))
        self.assertIn("DIFFERENT: program, default: status 1, bare 0", self.said)


if __name__ == "__main__":
    unittest.main()
