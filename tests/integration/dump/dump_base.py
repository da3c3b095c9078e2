# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of tests/tools/xtrace-dump: the program, loaded once, and a valid log.

The program runs in this process, which saves the start of several hundred interpreters. An
exception that it does not handle fails the test.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import sys
import tempfile
import unittest
from unittest import mock

import log_maker as make
from log_maker import BYTES, CONST, DELTA, LIST, UVAR, LogMaker

TOP = (1 << 64) - 1


def good_log(**header):
    """A valid log with every kind and every encoding, closed, with appended symbols."""
    log = LogMaker(**header)
    log.table(make.META, (1, BYTES, [b"xtrace.version", b"host.name"]), (2, BYTES, [b"1.0", b""]))
    log.table(make.CLOCK, (1, DELTA, [1000, 2000]), (2, DELTA, [10 ** 18, 10 ** 18 + 999]))
    log.table(make.THREAD, (1, UVAR, [1, 2]), (2, UVAR, [4711, 4712]),
              (3, BYTES, [b"main", b"tab\tline\n\\\xff"]), (4, DELTA, [1000, 900]))
    log.table(make.MODULE, (1, UVAR, [1]), (2, UVAR, [1000]), (3, UVAR, [0x400000]),
              (4, UVAR, [0x500000]), (5, UVAR, [TOP]), (6, BYTES, ["/lib/ö.so".encode()]),
              (7, BYTES, [b"\x00\xab"]))
    log.table(make.MODULE_UNLOAD, (1, CONST, [1]), (2, UVAR, [5000]))
    log.table(make.STRING, (1, DELTA, [1, 2]), (2, BYTES, [b"_Z4gemmv", b""]))
    log.table(make.PYTHON_FRAME, (1, UVAR, [1, 2]), (2, UVAR, [1, 2]), (3, CONST, [2, 2]),
              (4, UVAR, [12, 0]), (5, UVAR, [10, 1]))
    log.table(make.STACK, (1, UVAR, [1, 2, 3]), (2, UVAR, [0, 1, 0]), (3, CONST, [1500] * 3),
              (4, LIST, [[0x401000, 0x402000], [], [(1 << 56) + 5, 7]]),
              (5, LIST, [[1, 2, 1], [2], []]), (6, LIST, [[0, 1, 2], [0], []]),
              (7, LIST, [[1, 0], [], []]))
    log.table(make.API, (1, UVAR, [1 << 16 | 307, 2 << 16 | 31, 2 << 16 | 40]),
              (2, BYTES, [b"cuLaunchKernel", b"cudaMemcpy", b"cudaGraphLaunch"]),
              (3, UVAR, [1, 0, 2]))
    log.table(make.CALL, (1, UVAR, [1, 2, 1]), (2, DELTA, [2 << 16 | 31, 1 << 16 | 307,
                                                         2 << 16 | 40]),
              (3, DELTA, [11, 12, 13]), (4, UVAR, [1, 0, 3]), (5, DELTA, [2000, 1990, 2050]),
              (6, UVAR, [50, 5, 100]), (7, UVAR, [0, 700, 0]))
    log.table(make.STREAM, (1, UVAR, [1]), (3, UVAR, [1]), (4, UVAR, [7]))
    log.table(make.SHAPE, (1, UVAR, [1]), (2, UVAR, [1]), (3, UVAR, [128]), (4, CONST, [1]),
              (5, CONST, [1]), (6, UVAR, [256]), (7, CONST, [2]), (8, CONST, [3]),
              (9, UVAR, [1024]), (10, UVAR, [2048]), (11, UVAR, [32]))
    log.table(make.KERNEL, (1, UVAR, [12, 13]), (2, CONST, [1, 1]), (3, CONST, [1, 1]),
              (4, DELTA, [3000, 3100]), (5, UVAR, [40, 2]), (6, UVAR, [0, 99]))
    log.account(calls__seen=5, calls__written=3, calls__lost__ring_full=1, calls__lost__nested=1,
                kernels__written=2, threads__seen=2)
    log.end()
    log.table(make.SYMBOL, (1, UVAR, [1]), (2, UVAR, [0x1000]), (3, UVAR, [16]),
              (4, BYTES, [b"main"]))
    return log.end()


GOOD_ROWS = r"""
META	key=xtrace.version	value=1.0
META	key=host.name	value=
CLOCK	monotonic_ns=1000	realtime_ns=1000000000000000000
CLOCK	monotonic_ns=2000	realtime_ns=1000000000000000999
THREAD	id=1	tid=4711	name=main	first_seen_ns=1000
THREAD	id=2	tid=4712	name=tab\x09line\x0a\\\xff	first_seen_ns=900
MODULE	id=1	load_ns=1000	start=0x400000	end=0x500000	bias=0xffffffffffffffff	path=/lib/\xc3\xb6.so	build_id=00ab
MODULE_UNLOAD	module=1	unload_ns=5000
STRING	id=1	text=_Z4gemmv
STRING	id=2	text=
PYTHON_FRAME	id=1	name=1	file=2	line=12	first_line=10
PYTHON_FRAME	id=2	name=2	file=2	line=0	first_line=1
STACK	id=1	flags=0	first_seen_ns=1500	frames=0:0x401000,0:0x402000	python=1,2,1	places=0,1,2	modules=1,0
STACK	id=2	flags=1	first_seen_ns=1500	frames=	python=2	places=0	modules=
STACK	id=3	flags=0	first_seen_ns=1500	frames=1:0x5,0:0x7	python=	places=	modules=
API	id=65843	name=cuLaunchKernel	class=1
API	id=131103	name=cudaMemcpy	class=0
API	id=131112	name=cudaGraphLaunch	class=2
CALL	thread=1	api=131103	correlation=11	stack=1	enter_ns=2000	duration_ns=50	result=0	one_in=0	executable_graph=0	sequence_number=0	autograd=0	node_sequence=0
CALL	thread=2	api=65843	correlation=12	stack=0	enter_ns=1990	duration_ns=5	result=700	one_in=0	executable_graph=0	sequence_number=0	autograd=0	node_sequence=0
CALL	thread=1	api=131112	correlation=13	stack=3	enter_ns=2050	duration_ns=100	result=0	one_in=0	executable_graph=0	sequence_number=0	autograd=0	node_sequence=0
STREAM	id=1	device=0	context=1	stream=7
SHAPE	id=1	name=1	grid_x=128	grid_y=1	grid_z=1	block_x=256	block_y=2	block_z=3	static_shared_bytes=1024	dynamic_shared_bytes=2048	registers=32
KERNEL	correlation=12	stream=1	shape=1	start_ns=3000	duration_ns=40	graph_node=0
KERNEL	correlation=13	stream=1	shape=1	start_ns=3100	duration_ns=2	graph_node=99
ACCOUNT	name=calls.seen	value=5
ACCOUNT	name=calls.written	value=3
ACCOUNT	name=calls.lost.ring_full	value=1
ACCOUNT	name=calls.lost.nested	value=1
ACCOUNT	name=kernels.written	value=2
ACCOUNT	name=threads.seen	value=2
SYMBOL	module=1	start=0x1000	bytes=16	name=main
""".strip().split("\n")
RECORDS = ("log", "chunk", "total", "damaged", "missing", "backwards", "skipped", "truncated",
           "spool", "ring", "open_call", "call", "stack", "graph_node",
           "nvtx", "python_frame", "padding", "activity", "void", "unknown", "record_bytes", "names", "name")


def rows_of(text):
    """The rows of a dump, without its lines on the log and its chunks."""
    return [line for line in text.splitlines() if line.split("\t")[0] not in RECORDS]


def records_of(text, what):
    """The facts of each record of one type."""
    return [dict(fact.split("=", 1) for fact in line.split("\t")[1:])
            for line in text.splitlines() if line.split("\t")[0] == what]


class DumpTest(unittest.TestCase):
    dump = ""
    program = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dump-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.count = 0

    def file(self, log):
        """The path of a new file with a LogMaker's log or with these bytes."""
        self.count += 1
        path = os.path.join(self.folder, "%d.xtr" % self.count)
        with open(path, "wb") as file:
            file.write(log if isinstance(log, bytes) else log.data)
        return path

    def run_dump(self, *arguments, status=0):
        """Returns the output. Expects this exit status; None allows any."""
        out, errors = io.TextIOWrapper(io.BytesIO(), "ascii"), io.StringIO()
        with mock.patch.object(sys, "argv", [self.dump, *arguments]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                self.status = self.program.main()
            except SystemExit as usage:
                self.status = usage.code
        text, self.errors = out.buffer.getvalue().decode("ascii"), errors.getvalue()
        if status is not None:
            self.assertEqual(self.status, status, text[-2000:] + self.errors)
        return text

    def total(self, text):
        return records_of(text, "total")[-1]


def run_tests():
    """The main program of a test file. Its first argument is the program to test."""
    if len(sys.argv) < 2:
        sys.exit("usage: %s XTRACE_DUMP [unittest options]" % sys.argv[0])
    DumpTest.dump = os.path.abspath(sys.argv.pop(1))
    loader = importlib.machinery.SourceFileLoader("xtrace_dump", DumpTest.dump)
    DumpTest.program = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(DumpTest.program)
    unittest.main()
