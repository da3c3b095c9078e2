#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the checks of tests/tools/xtrace-dump on logs that are made here.

Usage: dump_check_test.py XTRACE_DUMP [unittest options]
"""

import log_maker as make
from dump_base import DumpTest, good_log, run_tests
from log_maker import BYTES, LIST, UVAR, LogMaker


def thread_chunk(log, ids):
    return log.table(make.THREAD, (1, UVAR, ids))


class Check(DumpTest):
    def test_good_logs(self):
        self.assertRegex(self.run_dump("--check", self.file(good_log())),
                         r"good: 17 chunks, 3 calls, 2 kernels, closed\n$")
        # A counter that the account lacks is 0.
        self.run_dump("--check", self.file(LogMaker().end()))
        # Threads may be named again, with the same id.
        log = thread_chunk(thread_chunk(LogMaker(), [1, 2, 1]), [2])
        log.table(make.THREAD, (1, UVAR, [1]), (3, BYTES, [b"other"])).account(threads__seen=2)
        self.run_dump("--check", self.file(log.end()))

    def test_open_logs(self):
        path = self.file(good_log().data[:-1])
        log = LogMaker().table(make.CLOCK, (1, UVAR, [1]))
        self.assertIn("violation: not closed", self.run_dump("--check", self.file(log), status=1))
        self.assertIn("open", self.run_dump("--check", "--allow-open", self.file(log)))
        self.assertIn("violation: truncated", self.run_dump("--check", path, status=1))

    def check_violation(self, expected, log, close=True):
        if close:
            log.end()
        with self.subTest(expected):
            text = self.run_dump("--check", self.file(log), status=1)
            self.assertEqual(len(text.splitlines()), 1, text)
            self.assertIn(": violation: ", text)
            self.assertIn(expected, text)

    def test_headers(self):
        def fine(**header):
            return LogMaker(**header).account(calls__seen=0, calls__written=0)

        self.check_violation("reserved bytes", fine(zero=1))
        self.check_violation("unknown clock 4", fine(clock=4))
        self.check_violation("header of 72 bytes", LogMaker(header_bytes=72).bytes(b"\0" * 8)
                             .account(calls__seen=0, calls__written=0))
        self.check_violation("chunk header are not 0", fine().chunk(make.CLOCK, 0, zero1=1))
        self.check_violation("chunk header are not 0", fine().chunk(make.CLOCK, 0, zero2=1))
        self.check_violation("column 1: reserved", fine().chunk(
            make.CLOCK, 1, make.column(1, UVAR, b"\1", zero=1)))
        self.check_violation("missing: sequence 1 chunks 2", fine().chunk(
            make.CLOCK, 0, sequence=3))
        self.check_violation("backwards: sequence 0", fine().chunk(make.CLOCK, 0, sequence=0))
        self.check_violation("skipped", fine().bytes(b"xx"))
        self.check_violation("damaged", fine().chunk(make.CLOCK, 1, frame=b"xx"))
        self.check_violation("not a kind of version 2.4", fine().chunk(make.UNKNOWN_KIND, 0))
        for kind in range(make.COPY_SHAPE, make.RANGE + 1):
            self.check_violation("not a kind of version 2.0", fine(minor=0).chunk(kind, 0))
            self.run_dump("--check", self.file(fine().chunk(kind, 0).end()))
        self.check_violation("not a kind of version 2.1",
                             fine(minor=1).chunk(make.GRAPH_UPDATE, 0))
        self.check_violation("not a kind of version 2.1",
                             fine(minor=1).chunk(make.PYTHON_FRAME, 0))
        self.check_violation("not a kind of version 2.1", fine(minor=1).chunk(make.SOURCE, 0))
        self.run_dump("--check", self.file(fine().end().chunk(make.SOURCE, 0).end()))
        self.run_dump("--check", self.file(
            fine(minor=99).chunk(make.UNKNOWN_KIND, 0).chunk(make.CLOCK, 0, make.column(9, 1, b"")).end()))
        self.check_violation("column 9 is not", fine().chunk(make.CLOCK, 0, make.column(9, 1, b"")))
        self.check_violation("has rows", fine().chunk(make.END, 1))
        self.check_violation("comes after END", fine().end().chunk(make.CLOCK, 0))

    def test_ids(self):
        counted = (make.MODULE, make.STRING, make.STACK, make.STREAM, make.SHAPE, make.COPY_SHAPE)
        self.check_violation("THREAD: 2 ids up to 3", thread_chunk(
            LogMaker(), [1, 3]).account(threads__seen=2))
        self.run_dump("--check", self.file(thread_chunk(
            LogMaker(), [3, 1, 2]).account(threads__seen=3).end()))
        for kind in counted:
            self.check_violation("id 2 is defined where 1 is next", LogMaker().table(
                kind, (1, UVAR, [2, 1])))
        for kind in counted + (make.API,):
            self.check_violation("id 0", LogMaker().table(kind, (1, UVAR, [0, 1])))
        self.run_dump("--check", self.file(LogMaker().table(make.API, (1, UVAR, [9, 7])).end()))
        self.check_violation("MODULE_UNLOAD): module: 1 ids", LogMaker().table(
            make.MODULE_UNLOAD, (1, UVAR, [1])))
        self.check_violation("module: 1 ids", LogMaker().table(make.SYMBOL, (1, UVAR, [1])))
        self.check_violation("SHAPE): name: 1 ids of STRING", LogMaker().table(
            make.SHAPE, (1, UVAR, [1]), (2, UVAR, [9])))
        for kind, column, table, number in (
                (make.COPY, "stream", "STREAM", 2), (make.COPY, "shape", "COPY_SHAPE", 3),
                (make.SET, "stream", "STREAM", 2), (make.GRAPH_NODE, "stack", "STACK", 3),
                (make.GRAPH_NODE, "thread", "THREAD", 6),
                (make.GRAPH_UPDATE, "stack", "STACK", 3),
                (make.GRAPH_UPDATE, "thread", "THREAD", 5), (make.RANGE, "thread", "THREAD", 2),
                (make.RANGE, "domain", "STRING", 4), (make.RANGE, "text", "STRING", 5),
                (make.RANGE, "stack", "STACK", 7)):
            log = LogMaker().account(calls__seen=1, calls__lost__no_ring=1, **{{
                make.COPY: "copies__written", make.SET: "sets__written",
                make.GRAPH_NODE: "nodes__seen",
                make.GRAPH_UPDATE: "nodes__seen", make.RANGE: "ranges__seen"}[kind]: 1})
            self.check_violation("%s: 1 ids of %s" % (column, table), log.table(
                kind, (number, UVAR, [4])))
        # Nodes of graphs have CUPTI's ids, which may recur.
        self.run_dump("--check", self.file(LogMaker().table(
            make.GRAPH_NODE, (1, UVAR, [9, 9, 4]), (4, UVAR, [5, 6, 7])).account(
                nodes__seen=3).end()))
        # Defined after its use.
        log = LogMaker().table(make.MODULE_UNLOAD, (1, UVAR, [1]))
        self.check_violation("not defined before", log.table(make.MODULE, (1, UVAR, [1])))

    def test_places_of_python_frames(self):
        for places, python in (([1, 0], [1, 1]), ([0, 3], [1, 1]), ([0], [1, 1]), ([0, 0, 0], [1, 1])):
            self.check_violation("1 stacks whose Python frames have wrong places", LogMaker().table(
                make.PYTHON_FRAME, (1, UVAR, [1])).table(
                    make.STACK, (1, UVAR, [1]), (4, LIST, [[7, 8]]), (5, LIST, [python]),
                    (6, LIST, [places])))
        self.check_violation("python: 1 ids of PYTHON_FRAME", LogMaker().table(
            make.STACK, (1, UVAR, [1]), (4, LIST, [[7]]), (5, LIST, [[4]]), (6, LIST, [[0]])))

    def test_modules_of_frames(self):
        for modules in ([1], [1, 1, 1]):
            self.check_violation("1 stacks that do not say of each frame", LogMaker().table(
                make.MODULE, (1, UVAR, [1])).table(
                    make.STACK, (1, UVAR, [1]), (4, LIST, [[7, 8]]), (7, LIST, [modules])))
        self.check_violation("modules: 1 ids of MODULE", LogMaker().table(
            make.STACK, (1, UVAR, [1]), (4, LIST, [[7]]), (7, LIST, [[4]])))

    def test_ids_defined_again(self):
        """Repeated definitions must be equal, in the same chunk or a later one."""
        texts, listed = [[b"a", b"b"], [b"a", b"c"]], [[[1, 2]], [[1, 3]]]
        for same in (True, False):
            again = 0 if same else 1
            logs = [LogMaker().table(make.STRING, (1, UVAR, [1, 2]), (2, BYTES, texts[0]))
                    .table(make.STRING, (1, UVAR, [1, 2]), (2, BYTES, texts[again])),
                    LogMaker().table(make.STACK, (1, UVAR, [1]), (4, LIST, listed[0]))
                    .table(make.STACK, (1, UVAR, [1]), (4, LIST, listed[again])),
                    LogMaker().table(make.API, (1, UVAR, [7, 7]), (3, UVAR, [1, 1 + again])),
                    LogMaker().table(make.MODULE, (1, UVAR, [1]), (7, BYTES, [b"\xff"]))
                    .table(make.MODULE, (1, UVAR, [1]), (7, BYTES, [b"\xff" * (1 + again)])),
                    LogMaker().table(make.SHAPE, (1, UVAR, [1, 1]), (11, UVAR, [3, 3 + again])),
                    LogMaker().table(make.STREAM, (1, UVAR, [1, 1]), (4, UVAR, [3, 3 + again]))]
            for log in logs:
                if same:
                    self.run_dump("--check", self.file(log.end()))
                else:
                    self.check_violation("1 rows define an id again and say something else", log)

    def test_undefined_ids_after_a_loss_are_no_violation(self):
        log = LogMaker().account(calls__seen=0, calls__written=0)
        log.chunk(make.MODULE_UNLOAD, 1, make.encode(1, UVAR, [1]), sequence=2).end()
        text = self.run_dump("--check", self.file(log), status=1)
        self.assertEqual(text.count("violation"), 1)
        self.assertIn("after a loss: chunk 2 (MODULE_UNLOAD): module", text)

    def test_ids_after_a_write_that_failed_are_no_violation(self):
        def log(**account):
            made = LogMaker().table(make.STRING, (1, UVAR, [5])).account(**account)
            return self.file(made.table(make.SHAPE, (1, UVAR, [1]), (2, UVAR, [4])).end())

        for account in ({"calls__seen": 2, "calls__lost__write_failed": 2},
                        {"kernels__lost__write_failed": 1}, {"memory__lost__write_failed": 1}):
            text = self.run_dump("--check", log(**account))
            self.assertIn("after a loss: chunk 2 (SHAPE): name", text)
        self.run_dump("--check", log(kernels__lost__write_failed=0), status=1)

    def calls(self, **columns):
        """One thread, API and stack, two calls, and their account. columns replaces columns of the
        calls."""
        values = dict(thread=[1, 1], api=[5, 5], correlation=[1, 2], stack=[1, 1],
                      enter=[100, 110], duration=[10, 10], result=[0, 0xFFFFFFFF])
        values.update(columns)
        log = thread_chunk(LogMaker(), [1])
        log.table(make.API, (1, UVAR, [5])).table(make.STACK, (1, UVAR, [1]))
        return log.table(make.CALL, *((number, UVAR, column) for number, column in
                                      enumerate(values.values(), 1)))

    def test_calls(self):
        fine = dict(calls__seen=2, calls__written=2, threads__seen=1)
        self.run_dump("--check", self.file(self.calls().account(**fine).end()))
        for column in ("thread", "api", "stack"):
            self.check_violation("CALL): %s: 1 ids" % column,
                                 self.calls(**{column: [0, 7]}).account(**fine))
        self.check_violation("1 rows out of", self.calls(duration=[30, 10]).account(**fine))
        # An enclosing call returns later and follows in the log.
        self.run_dump("--check", self.file(
            self.calls(enter=[100, 90], duration=[10, 30]).account(**fine).end()))
        # Two calls that return at the same time.
        self.run_dump("--check", self.file(self.calls(duration=[20, 10]).account(**fine).end()))
        # The order holds across chunks.
        fine.update(calls__seen=3, calls__written=3)
        log = self.calls().table(make.CALL, (1, UVAR, [1]), (3, UVAR, [3]), (5, UVAR, [5]))
        self.check_violation("1 rows out of", log.account(**fine))
        log = self.calls().table(make.CALL, (1, UVAR, [2]), (3, UVAR, [3]), (5, UVAR, [5]))
        self.run_dump("--check", self.file(thread_chunk(log, [2]).account(
            calls__seen=3, calls__written=3, threads__seen=2).end()), status=1)

    def test_correlation_ids_and_results(self):
        fine = dict(calls__seen=2, calls__written=2, threads__seen=1)
        self.check_violation("1 rows with the correlation id of another", self.calls(
            correlation=[7, 7]).account(**fine))
        fine.update(calls__seen=3, calls__written=3)
        log = self.calls().table(make.CALL, (1, UVAR, [1]), (3, UVAR, [2]), (5, UVAR, [200]))
        self.check_violation("1 rows with the correlation id of another", log.account(**fine))
        # After 2^32 calls, correlation ids may recur.
        fine.update(calls__seen=4, calls__written=4)
        log = self.calls().table(make.CALL, (1, UVAR, [1, 1]), (3, UVAR, [1 << 31, 2]),
                                 (5, UVAR, [200, 200]))
        text = self.run_dump("--check", self.file(log.account(**fine).end()))
        self.assertIn("note: CALL: 1 rows with the correlation id of another", text)
        fine.update(calls__seen=2, calls__written=2)
        self.check_violation("more than 32 bits", self.calls(result=[0, 1 << 32]).account(**fine))

    def test_accounts(self):
        def check(expected, **account):
            values = dict(calls__seen=2, calls__written=2, threads__seen=1)
            values.update(account)
            self.check_violation(expected, self.calls().account(**values))

        check("calls.seen 3 is not", calls__seen=3)
        check("calls.seen 3 is not calls.written 2 + calls.lost 2", calls__seen=3,
              calls__lost__no_ring=1, calls__lost__nested=1)
        check("calls.lost 4", calls__seen=7, calls__lost__ring_full=1,
              calls__lost__write_failed=3)
        check("calls.written 3, but the log has 2 rows CALL", calls__seen=3, calls__written=3)
        check("kernels.written 1, but the log has 0 rows KERNEL", kernels__written=1)
        check("copies.written 1, but the log has 0 rows COPY", copies__written=1)
        check("sets.written 1, but the log has 0 rows SET", sets__written=1)
        check("memory.written 1, but the log has 0 rows MEMORY", memory__written=1)
        check("nodes.seen less nodes.lost is 1, but the log has 0 rows GRAPH_NODE and GRAPH_UPDATE",
              nodes__seen=3, nodes__lost=2)
        check("ranges.seen less ranges.lost is 1, but the log has 0 rows RANGE", ranges__seen=1)
        check("threads.seen 2, but the log has 1 threads", threads__seen=2)
        check("log.bytes", log__bytes=1 << 40)
        fine = dict(calls__seen=2, calls__written=2, threads__seen=1)
        self.check_violation("cupti.dropped falls from 2 to 1", self.calls().account(
            cupti__dropped=2, **fine).account(cupti__dropped=1))
        self.assertIn("note: the account copies.odd is not described", self.run_dump(
            "--check", self.file(self.calls().account(copies__odd=0, **fine).end())))
        self.assertNotIn("note", self.run_dump(
            "--check", self.file(self.calls().account(cupti__dropped=1, **fine).end())))
        # Sums may differ if chunks were lost, or before the end.
        self.check_violation("missing", self.calls().account(calls__seen=9, log__bytes=1 << 40)
                             .chunk(make.CLOCK, 0, sequence=9))
        self.run_dump("--check", "--allow-open", self.file(self.calls().account(calls__seen=9)))

    def test_kernels(self):
        def log(stream, shape, correlations, **lost):
            count = len(correlations)
            made = self.calls().table(make.STREAM, (1, UVAR, [1])).table(make.SHAPE, (1, UVAR, [1]))
            made.table(make.KERNEL, (1, UVAR, correlations), (2, UVAR, [stream] * count),
                       (3, UVAR, [shape] * count))
            return made.account(calls__seen=2 + sum(lost.values()), calls__written=2,
                                kernels__written=count, threads__seen=1, **lost)

        self.assertNotIn("note", self.run_dump("--check", self.file(log(1, 1, [2]).end())))
        self.check_violation("KERNEL): stream", log(2, 1, [2]))
        self.check_violation("KERNEL): shape", log(1, 2, [2]))
        # Up to eight calls of a thread may be open at the end of the log. Further kernels have no
        # call.
        text = self.run_dump("--check", self.file(log(1, 1, [1, *range(3, 11)]).end()))
        self.assertIn("note: KERNEL: 8 correlation ids without a CALL, the lowest 3", text)
        self.check_violation("9 correlation ids without a CALL, the lowest 3",
                             log(1, 1, range(3, 12)))
        self.run_dump("--check", self.file(
            log(1, 1, range(3, 99), calls__lost__ring_full=1).end()))
        for kind, name, account in ((make.COPY, "COPY", "copies__written"),
                                    (make.SET, "SET", "sets__written")):
            self.check_violation("%s: 9 correlation ids without a CALL, the lowest 3" % name,
                                 log(1, 1, [2]).table(kind, (1, UVAR, range(3, 12)))
                                 .account(**{account: 9}))
            self.run_dump("--check", self.file(log(1, 1, [2]).table(
                kind, (1, UVAR, [1, 2, 2])).account(**{account: 3}).end()))


if __name__ == "__main__":
    run_tests()
