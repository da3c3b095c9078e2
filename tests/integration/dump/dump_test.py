#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds tools/xtrace-dump against logs that are made here, right ones and wrong ones.

Usage: dump_test.py XTRACE_DUMP [unittest options]
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import log_maker as make
from log_maker import BYTES, CONST, DELTA, LIST, UVAR, LogMaker

DUMP = ""
TOP = (1 << 64) - 1


def good_log(**header):
    """Every kind and every encoding, closed, symbols appended, and nothing to complain about."""
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
    log.table(make.STACK, (1, UVAR, [1, 2, 3]), (2, UVAR, [0, 1, 0]), (3, CONST, [1500] * 3),
              (4, LIST, [[0x401000, 0x402000], [], [(1 << 56) + 5, 7]]))
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
                kernels__written=2)
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
STACK	id=1	flags=0	first_seen_ns=1500	frames=0:0x401000,0:0x402000
STACK	id=2	flags=1	first_seen_ns=1500	frames=
STACK	id=3	flags=0	first_seen_ns=1500	frames=1:0x5,0:0x7
API	id=65843	name=cuLaunchKernel	class=1
API	id=131103	name=cudaMemcpy	class=0
API	id=131112	name=cudaGraphLaunch	class=2
CALL	thread=1	api=131103	correlation=11	stack=1	enter_ns=2000	duration_ns=50	result=0
CALL	thread=2	api=65843	correlation=12	stack=0	enter_ns=1990	duration_ns=5	result=700
CALL	thread=1	api=131112	correlation=13	stack=3	enter_ns=2050	duration_ns=100	result=0
STREAM	id=1	device=0	context=1	stream=7
SHAPE	id=1	name=1	grid_x=128	grid_y=1	grid_z=1	block_x=256	block_y=2	block_z=3	static_shared_bytes=1024	dynamic_shared_bytes=2048	registers=32
KERNEL	correlation=12	stream=1	shape=1	start_ns=3000	duration_ns=40	graph_node=0
KERNEL	correlation=13	stream=1	shape=1	start_ns=3100	duration_ns=2	graph_node=99
ACCOUNT	name=calls.seen	value=5
ACCOUNT	name=calls.written	value=3
ACCOUNT	name=calls.lost.ring_full	value=1
ACCOUNT	name=calls.lost.nested	value=1
ACCOUNT	name=kernels.written	value=2
SYMBOL	module=1	start=0x1000	bytes=16	name=main
""".strip().split("\n")
RECORDS = ("log", "chunk", "total", "damaged", "missing", "backwards", "skipped", "truncated",
           "header_damaged", "spool", "ring", "activity", "none", "unknown")


def rows_of(text):
    """The rows of a dump, without what is said of the log and its chunks."""
    return [line for line in text.splitlines() if line.split("\t")[0] not in RECORDS]


def records_of(text, what):
    """The facts of each record of one sort."""
    return [dict(fact.split("=", 1) for fact in line.split("\t")[1:])
            for line in text.splitlines() if line.split("\t")[0] == what]


class DumpTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dump-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.count = 0

    def file(self, log):
        """The path of a new file that holds a LogMaker's log or these bytes."""
        self.count += 1
        path = os.path.join(self.folder, "%d.xtr" % self.count)
        with open(path, "wb") as file:
            file.write(log if isinstance(log, bytes) else log.data)
        return path

    def run_dump(self, *arguments, status=0):
        done = subprocess.run([sys.executable, "-B", DUMP, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False)
        self.errors = done.stderr.decode()
        self.assertNotIn("Traceback", self.errors)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout.decode()[-2000:] + self.errors)
        self.status = done.returncode
        return done.stdout.decode("ascii")

    def total(self, text):
        return records_of(text, "total")[-1]


class Rows(DumpTest):
    def test_every_kind_as_text(self):
        log = good_log()
        text = self.run_dump(self.file(log))
        self.assertEqual(rows_of(text), GOOD_ROWS)
        head = records_of(text, "log")[0]
        self.assertEqual((head["version"], head["pid"], head["start_ns"], head["log_id"]),
                         ("1.0", "4711", "1000", "0123456789abcdef"))
        chunks = records_of(text, "chunk")
        self.assertEqual([int(chunk["sequence"]) for chunk in chunks], list(range(16)))
        self.assertEqual([int(chunk["offset"]) for chunk in chunks], log.places)
        ends = log.places[1:] + [len(log.data)]
        self.assertEqual([int(chunk["stored_bytes"]) for chunk in chunks],
                         [end - begin - 32 for begin, end in zip(log.places, ends)])
        self.assertEqual(self.total(text), {
            "chunks": "16", "damaged": "0", "missing": "0", "backwards": "0", "unknown": "0",
            "skipped_bytes": "0", "truncated": "no", "header_damaged": "no", "closed": "yes"})

    def test_json_says_the_same(self):
        lines = [json.loads(line) for line in
                 self.run_dump("--format", "json", self.file(good_log())).splitlines()]
        rows = [line for line in lines if line["record"] == "row"]
        self.assertEqual(len(rows), len(GOOD_ROWS))
        self.assertEqual(lines[0]["record"], "log")
        self.assertEqual(lines[-1]["closed"], True)
        by_kind = {row["kind"]: row for row in rows}
        for row, text in zip(rows, GOOD_ROWS):
            self.assertEqual([row["kind"]] + list(row)[3:],
                             [word.split("=")[0] for word in text.split("\t")])
        self.assertEqual(by_kind["MODULE"]["bias"], TOP)
        self.assertEqual(by_kind["MODULE"]["path"], "/lib/ö.so")
        self.assertEqual(by_kind["MODULE"]["build_id"], "00ab")
        self.assertEqual(by_kind["STACK"]["frames"], [[1, 5], [0, 7]])
        self.assertEqual(by_kind["THREAD"]["name"], {"hex": b"tab\tline\n\\\xff".hex()})
        self.assertEqual(by_kind["CALL"]["enter_ns"], 2050)

    def test_only_wanted_kinds(self):
        text = self.run_dump("--kind", "call", "--kind", "END", self.file(good_log()))
        self.assertEqual(rows_of(text), [row for row in GOOD_ROWS if row.startswith("CALL\t")])
        self.assertEqual([chunk["kind"] for chunk in records_of(text, "chunk")],
                         ["CALL", "END", "END"])

    def test_encodings_agree(self):
        for values in ([0, TOP, 0, 1, TOP - 1], [1 << 63, 0, 1 << 63], [127, 128, 16383, 16384],
                       [TOP] * 3, [0], [5] * 200):
            encodings = [UVAR, DELTA] + ([CONST] if len(set(values)) == 1 else [])
            for encoding in encodings:
                log = LogMaker().table(make.CLOCK, (1, encoding, values))
                text = self.run_dump(self.file(log))
                self.assertEqual(rows_of(text), ["CLOCK\tmonotonic_ns=%d\trealtime_ns=0" % value
                                                 for value in values])

    def test_lists_are_one_delta_sequence(self):
        lists = [[TOP, 0], [], [1 << 63], [3, 2, 1], []]
        log = LogMaker().table(make.STACK, (4, LIST, lists))
        rows = [json.loads(line) for line in
                self.run_dump("--format", "json", self.file(log)).splitlines()]
        frames = [[kind << 56 | value for kind, value in row["frames"]]
                  for row in rows if row["record"] == "row"]
        self.assertEqual(frames, lists)

    def test_leb_may_be_padded(self):
        log = LogMaker().chunk(make.CLOCK, 1, make.column(1, UVAR, b"\x85\x80\x00"))
        self.assertEqual(rows_of(self.run_dump(self.file(log))),
                         ["CLOCK\tmonotonic_ns=5\trealtime_ns=0"])

    def test_unknown_things_are_skipped(self):
        log = LogMaker(minor=7, header_bytes=80).bytes(b"\xaa" * 16)
        log.chunk(77, 3, frame=b"whatever")
        log.chunk(make.CLOCK, 1, make.column(200, 99, b"???"), make.encode(2, UVAR, [9]),
                  make.column(0, UVAR, b"\xff"))
        log.end()
        text = self.run_dump(self.file(log))
        self.assertEqual(rows_of(text), ["CLOCK\tmonotonic_ns=0\trealtime_ns=9"])
        self.assertEqual(self.total(text)["unknown"], "1")
        self.run_dump("--kind", "unknown_77", self.file(log))

    def test_many_rows(self):
        count = 100000
        enter = [10 ** 15 + 1000 * number for number in range(count)]
        log = LogMaker().table(make.CALL, (1, CONST, [1] * count), (3, UVAR, list(range(count))),
                               (5, UVAR, enter),
                               (6, UVAR, [number % 997 for number in range(count)]))
        rows = rows_of(self.run_dump(self.file(log)))
        self.assertEqual(len(rows), count)
        self.assertEqual(rows[54321], "CALL\tthread=1\tapi=0\tcorrelation=54321\tstack=0\t"
                         "enter_ns=%d\tduration_ns=%d\tresult=0" % (enter[54321], 54321 % 997))


class Totals(DumpTest):
    def test_kernels_of_all_logs(self):
        path = self.file(good_log())
        self.assertEqual(self.run_dump("--kernels-total", path), "kernels 2 duration_ns 42\n")
        self.assertEqual(self.run_dump("--kernels-total", path, path, path),
                         "kernels 6 duration_ns 126\n")

    def test_kernels_beyond_64_bits_and_const(self):
        log = LogMaker().table(make.KERNEL, (5, CONST, [TOP] * 1000))
        self.assertEqual(self.run_dump("--kernels-total", self.file(log)),
                         "kernels 1000 duration_ns %d\n" % (1000 * TOP))

    def test_calls_by_class(self):
        stray = LogMaker().table(make.CALL, (2, CONST, [12345] * 4))
        self.assertEqual(self.run_dump("--calls-total", self.file(good_log()), self.file(stray)),
                         "calls 7\nother 1\nkernel_launch 1\ngraph_launch 1\nundefined 4\n")

    def test_summary(self):
        log = good_log()
        path = self.file(log.bytes(b"junk"))
        text = self.run_dump("--summary", path, status=1)
        rows = {words[0]: words[1:] for words in map(str.split, text.splitlines())}
        stored = [int.from_bytes(log.data[place + 8:place + 12], "little") for place in log.places]
        self.assertEqual(rows["CALL"][:3], ["1", "3", str(stored[8])])
        self.assertEqual(rows["CALL"][4], "%.2f" % (stored[8] / 3))
        self.assertEqual(rows["END"][:2] + rows["END"][4:], ["2", "0", "-"])
        self.assertIn("file_bytes %d calls 3 file_bytes_a_call %.2f" % (
            len(log.data), len(log.data) / 3), text)
        self.assertIn("skipped_bytes 4", text)


class Damage(DumpTest):
    def test_broken_header_and_rubbish_are_skipped(self):
        log = good_log()
        # The header of the CALL chunk is broken; before STREAM stands rubbish that looks like one.
        call, after = log.places[8], log.places[9]
        rubbish = b"XTCHXTCH" + make.chunk_header(make.CALL, 1, 1, 1, 9)[:-1] + b"XTC"
        data = (log.data[:call + 5] + b"\xee" + log.data[call + 6:after] + rubbish
                + log.data[after:])
        text = self.run_dump(self.file(data), status=1)
        self.assertEqual(rows_of(text), [row for row in GOOD_ROWS if not row.startswith("CALL\t")])
        total = self.total(text)
        self.assertEqual(
            (total["skipped_bytes"], total["missing"], total["chunks"], total["closed"]),
            (str(after - call + len(rubbish)), "1", "15", "yes"))

    def test_resynchronises_over_long_gaps(self):
        for gap in (1 << 20, (1 << 20) + 1, (1 << 20) - 16, (1 << 21) - 3):
            log = LogMaker().bytes(b"X" * gap).table(make.CLOCK, (1, UVAR, [1]))
            total = self.total(self.run_dump(self.file(log), status=1))
            self.assertEqual((total["chunks"], total["skipped_bytes"]), ("1", str(gap)))

    def test_lost_chunks_are_counted(self):
        log = LogMaker().table(make.CLOCK, (1, UVAR, [1]))
        log.chunk(make.CLOCK, 0, sequence=5)
        log.chunk(make.CLOCK, 0, sequence=6)
        text = self.run_dump(self.file(log), status=1)
        self.assertEqual(records_of(text, "missing"), [{"sequence": "1", "chunks": "4"}])
        log.chunk(make.CLOCK, 0, sequence=2)
        text = self.run_dump(self.file(log), status=1)
        self.assertEqual(records_of(text, "backwards"), [{"sequence": "2", "expected": "7"}])

    def test_damaged_content_is_skipped_as_a_whole(self):
        content = make.encode(1, UVAR, [300, 1])
        frame = make.compress(content)
        flipped = frame[:-1] + bytes([frame[-1] ^ 1])
        cases = {
            "checksum": dict(frame=flipped),
            "no checksum": dict(frame=make.compress(content, checksum=False)),
            "no content size": dict(frame=make.compress(content, content_size=False)),
            "two frames": dict(frame=frame + frame),
            "empty second frame": dict(frame=frame + make.compress(b"")),
            "trailing byte": dict(frame=frame + b"\0"),
            "cut frame": dict(frame=frame[:-1]),
            "empty frame": dict(frame=b""),
            "not zstd": dict(frame=b"\x50\x2a\x4d\x18\x04\0\0\0abcd"),
            "raw too small": dict(frame=frame, raw=len(content) - 1),
            "raw too large": dict(frame=frame, raw=len(content) + 1),
            "raw huge": dict(frame=frame, raw=(1 << 32) - 1),
        }
        for name, how in cases.items():
            self.check_damaged(name, LogMaker().chunk(make.CLOCK, 2, content, **how))

    def test_malformed_columns_are_damage(self):
        uvar, listed = make.encode(1, UVAR, [300, 1]), make.STACK
        cases = {
            "too few values": (make.CLOCK, 3, uvar),
            "too many values": (make.CLOCK, 1, uvar),
            "values without rows": (make.CLOCK, 0, uvar),
            "too many rows": (make.CLOCK, (1 << 20) + 1, b""),
            "column twice": (make.CLOCK, 2, uvar + uvar),
            "unknown column twice": (make.CLOCK, 2, make.column(99, 1, b"") * 2),
            "cut column header": (make.CLOCK, 2, uvar + b"\2\1\0\0\0\0\0"),
            "column beyond content": (make.CLOCK, 2, uvar[:-1]),
            "huge column": (make.CLOCK, 2, b"\1\1\0\0\xff\xff\xff\xff" + uvar[8:]),
            "unfinished LEB128": (make.CLOCK, 2, make.column(1, UVAR, b"\1\x80")),
            "LEB128 of 11 bytes": (make.CLOCK, 1, make.column(1, UVAR, b"\x80" * 10 + b"\0")),
            "LEB128 above 64 bits": (make.CLOCK, 1, make.column(1, UVAR, b"\xff" * 9 + b"\2")),
            "CONST of two": (make.CLOCK, 2, make.column(1, CONST, b"\1\1")),
            "CONST of none": (make.CLOCK, 2, make.column(1, CONST, b"")),
            "encoding 0": (make.CLOCK, 2, make.column(1, 0, b"\1\1")),
            "encoding 6": (make.CLOCK, 2, make.column(1, 6, b"\1\1")),
            "number as text": (make.CLOCK, 2, make.column(1, BYTES, b"\0\0")),
            "text as number": (make.STRING, 2, make.column(2, UVAR, b"\0\0")),
            "text as list": (make.STRING, 2, make.column(2, LIST, b"\0\0")),
            "list as text": (listed, 2, make.column(4, BYTES, b"\0\0")),
            "text too short": (make.STRING, 2, make.column(2, BYTES, b"\1\2ab")),
            "text too long": (make.STRING, 2, make.column(2, BYTES, b"\1\2abcd")),
            "text of 2^64 bytes": (make.STRING, 2, make.column(2, BYTES, make.leb(TOP) * 2)),
            "list too short": (listed, 2, make.column(4, LIST, b"\1\2\1\1")),
            "list too long": (listed, 2, make.column(4, LIST, b"\1\2\1\1\1\1")),
            "list of 2^64": (listed, 2, make.column(4, LIST, make.leb(TOP) * 2)),
            "list, unfinished": (listed, 1, make.column(4, LIST, b"\1\x80")),
        }
        for name, (kind, rows, content) in cases.items():
            self.check_damaged(name, LogMaker().chunk(kind, rows, content))

    def check_damaged(self, name, log):
        """The one chunk of the log is refused, and the one after it is read."""
        log.table(make.CLOCK, (1, UVAR, [7])).end()
        with self.subTest(name):
            text = self.run_dump(self.file(log), status=1)
            self.assertEqual(rows_of(text), ["CLOCK\tmonotonic_ns=7\trealtime_ns=0"])
            self.assertEqual((self.total(text)["damaged"], self.total(text)["closed"]),
                             ("1", "yes"))

    def test_reaches_the_limits(self):
        log = LogMaker().chunk(make.CLOCK, 1 << 20)
        log.chunk(make.STRING, 1, make.column(9, 1, b"a" * ((16 << 20) - 8)))
        text = self.run_dump("--summary", self.file(log))
        self.assertIn("%14d" % (16 << 20), text)
        self.assertIn("%12d" % (1 << 20), text)

    def test_stored_bytes_beyond_the_file(self):
        log = LogMaker().table(make.CLOCK, (1, UVAR, [7]))
        log.bytes(make.chunk_header(make.CLOCK, (1 << 32) - 1, 16, 1, 1) + b"abc")
        text = self.run_dump(self.file(log), status=1)
        self.assertEqual(len(rows_of(text)), 1)
        self.assertEqual(self.total(text)["truncated"], "yes")

    def test_every_prefix(self):
        log = good_log()
        chunk_ends = log.places[1:] + [len(log.data)]
        paths = [self.file(log.data[:size]) for size in range(64, len(log.data) + 1)]
        text = self.run_dump(*paths, status=1)
        parts = ("\n" + text).split("\nlog\t")[1:]
        self.assertEqual(len(parts), len(paths))
        self.assertEqual(rows_of("log\t" + parts[-1]), GOOD_ROWS)
        for size, part in zip(range(64, len(log.data) + 1), parts):
            part = "log\t" + part
            count = sum(end <= size for end in chunk_ends)
            rows = sum(int(chunk["rows"]) for chunk in records_of(part, "chunk"))
            self.assertEqual(rows_of(part), GOOD_ROWS[:rows])
            total = self.total(part)
            self.assertEqual(int(total["chunks"]), count, size)
            at_end = size in chunk_ends or size == 64
            self.assertEqual(total["truncated"], "no" if at_end else "yes", size)
            self.assertEqual(total["skipped_bytes"], "0", size)
            self.assertEqual(total["closed"], "yes" if count in (14, 16) and at_end else "no", size)

    def test_every_damaged_byte(self):
        data = good_log().data
        paths = [self.file(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1:])
                 for place in range(12, len(data))]
        text = self.run_dump(*paths, status=1)
        good = set(GOOD_ROWS)
        parts = ("\n" + text).split("\nlog\t")[1:]
        self.assertEqual(len(parts), len(paths))
        for place, part in enumerate(parts, 12):
            rows, total = rows_of("log\t" + part), self.total(part)
            self.assertLessEqual(set(rows), good, place)
            self.assertGreaterEqual(len(rows), len(GOOD_ROWS) - 5 if place >= 64 else len(good))
            damage = ("damaged", "missing", "skipped_bytes")
            self.assertTrue(any(total[name] != "0" for name in damage)
                            or "yes" in (total["truncated"], total["header_damaged"]), place)

    def test_random_content(self):
        """Content that no writer made, in frames that are right: refused or read, never a crash."""
        chance = random.Random(20240229)
        log = LogMaker()
        for _ in range(3000):
            content = b""
            for _ in range(chance.randrange(4)):
                data = bytes(chance.choice((0, 1, 2, 127, 128, 255)) for _ in
                             range(chance.randrange(12)))
                content += make.column(chance.randrange(13), chance.randrange(7), data)
            if chance.random() < 0.2:
                content = content[:chance.randrange(len(content) + 1)]
            log.chunk(chance.randrange(17), chance.choice((0, 1, 2, 3, 9)), content)
        path = self.file(log)
        text = self.run_dump(path, status=1)
        self.assertEqual(self.total(text)["chunks"], "3000")
        self.assertGreater(int(self.total(text)["damaged"]), 100)
        for arguments in (["--format", "json"], ["--check"], ["--summary"], ["--calls-total"],
                          ["--kernels-total"]):
            self.run_dump(*arguments, path, status=1)
        for line in self.run_dump("--format", "json", path, status=1).splitlines():
            json.loads(line)


class Headers(DumpTest):
    def test_what_is_no_log(self):
        cases = {
            "empty": b"",
            "text": b"hello\n" * 20,
            "newer": make.log_header(major=2),
            "version 0": make.log_header(major=0),
            "byte order": make.log_header(order=0x04030201),
            "short header": make.log_header(header_bytes=63),
        }
        for name, data in cases.items():
            with self.subTest(name):
                self.assertEqual(self.run_dump(self.file(data), status=2), "")
                self.assertTrue(self.errors.startswith("xtrace-dump: "))
        self.run_dump(self.folder, status=2)
        self.run_dump(os.path.join(self.folder, "none.xtr"), status=2)
        self.run_dump("/dev/null", status=2)

    def test_the_others_are_read_all_the_same(self):
        path = self.file(good_log())
        text = self.run_dump(self.file(b"no log at all"), path, status=2)
        self.assertEqual(rows_of(text), GOOD_ROWS)

    def test_damaged_header(self):
        data = bytearray(good_log().data)
        data[21] ^= 1
        text = self.run_dump(self.file(bytes(data)), status=1)
        self.assertEqual(rows_of(text), GOOD_ROWS)
        self.assertEqual(self.total(text)["header_damaged"], "yes")
        for size in (8, 30, 63):
            text = self.run_dump(self.file(bytes(data[:size])), status=1)
            self.assertEqual(self.total(text)["truncated"], "yes")

    def test_usage(self):
        path = self.file(good_log())
        for arguments in ([], ["--kind", "NONE", path], ["--format", "xml", path],
                          ["--check", "--format", "json", path], ["--allow-open", path],
                          ["--kernels-total", "--kind", "CALL", path]):
            self.run_dump(*arguments, status=2)

    def test_finds_libzstd(self):
        """Beside itself first, then by the loader; without any, it says so."""
        script = ("import ctypes, runpy, sys\n"
                  "load = ctypes.CDLL\n"
                  "def spy(name, *rest):\n"
                  "    print('load', name, file=sys.stderr)\n"
                  "    if %r:\n"
                  "        raise OSError(name)\n"
                  "    return load(name, *rest)\n"
                  "ctypes.CDLL = spy\n"
                  "sys.argv = sys.argv[1:]\n"
                  "runpy.run_path(sys.argv[0], run_name='__main__')\n")
        copy = os.path.join(self.folder, "bin", "xtrace-dump")
        for folder in ("bin", "lib/xtrace"):
            os.makedirs(os.path.join(self.folder, folder))
        shutil.copy(DUMP, copy)
        near = [os.path.join(os.path.realpath(self.folder), "lib", *parts, "libzstd.so.1")
                for parts in (("xtrace",), ())]
        for path in near:
            with open(path, "wb") as file:
                file.write(b"no library")
        for refuse, status in ((False, 0), (True, 2)):
            done = subprocess.run([sys.executable, "-B", "-c", script % refuse, copy,
                                   self.file(good_log())], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            loads = [line[5:] for line in done.stderr.splitlines() if line.startswith("load ")]
            self.assertEqual(loads, near + ["libzstd.so.1"])
            self.assertNotIn("Traceback", done.stderr)
        self.assertIn("libzstd.so.1 was not found", done.stderr)

    def test_output_that_goes_away(self):
        done = subprocess.run(["/bin/sh", "-c", '"$0" -B "$1" "$2" | head -n 1', sys.executable,
                               DUMP, self.file(LogMaker().chunk(make.CLOCK, 500000))],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.stderr, done.stdout[:4]), ("", "log\t"))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([sys.executable, "-B", DUMP, self.file(good_log())], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "xtrace-dump: cannot write: No space left on device\n")


def thread_chunk(log, ids):
    return log.table(make.THREAD, (1, UVAR, ids))


class Check(DumpTest):
    def test_good_logs(self):
        self.assertRegex(self.run_dump("--check", self.file(good_log())),
                         r"good: 16 chunks, 3 calls, 2 kernels, closed\n$")
        # Threads may be named again, with the same id.
        log = thread_chunk(thread_chunk(LogMaker(), [1, 2, 1]), [2])
        self.run_dump("--check", self.file(log.account(calls__seen=0, calls__written=0).end()))

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
        self.check_violation("not a kind", fine().chunk(16, 0))
        self.check_violation("column 9 is not", fine().chunk(make.CLOCK, 0, make.column(9, 1, b"")))
        self.check_violation("has rows", fine().chunk(make.END, 1))
        self.check_violation("stands after END", fine().end().chunk(make.CLOCK, 0))

    def test_ids(self):
        def fine():
            return LogMaker().account(calls__seen=0, calls__written=0, kernels__written=0)

        self.check_violation("not dense", thread_chunk(fine(), [1, 3]))
        self.check_violation("id 0", thread_chunk(fine(), [0, 1]))
        for kind in (make.MODULE, make.STRING, make.STACK, make.STREAM, make.SHAPE, make.API):
            self.check_violation("defined before", fine().table(kind, (1, UVAR, [1, 1])))
            self.check_violation("defined before", fine().table(kind, (1, UVAR, [1]))
                                 .table(kind, (1, UVAR, [2, 1])))
        self.check_violation("MODULE_UNLOAD): module: 1 ids", fine().table(
            make.MODULE_UNLOAD, (1, UVAR, [1])))
        self.check_violation("module: 1 ids", fine().table(make.SYMBOL, (1, UVAR, [1])))
        self.check_violation("SHAPE): name: 1 ids of STRING", fine().table(
            make.SHAPE, (1, UVAR, [1]), (2, UVAR, [9])))
        # Defined, but after its use.
        log = fine().table(make.MODULE_UNLOAD, (1, UVAR, [1])).table(make.MODULE, (1, UVAR, [1]))
        self.check_violation("not defined before", log)

    def test_undefined_ids_after_a_loss_are_no_violation(self):
        log = LogMaker().account(calls__seen=0, calls__written=0)
        log.chunk(make.MODULE_UNLOAD, 1, make.encode(1, UVAR, [1]), sequence=2).end()
        text = self.run_dump("--check", self.file(log), status=1)
        self.assertEqual(text.count("violation"), 1)
        self.assertIn("after a loss: chunk 2 (MODULE_UNLOAD): module", text)

    def calls(self, **columns):
        """One thread, API and stack, two calls, and their account; columns replace these."""
        values = dict(thread=[1, 1], api=[5, 5], correlation=[1, 2], stack=[1, 1],
                      enter=[100, 110], duration=[10, 10])
        values.update(columns)
        log = thread_chunk(LogMaker(), [1])
        log.table(make.API, (1, UVAR, [5])).table(make.STACK, (1, UVAR, [1]))
        return log.table(make.CALL, *((number, UVAR, column) for number, column in
                                      enumerate(values.values(), 1)))

    def test_calls(self):
        fine = dict(calls__seen=2, calls__written=2)
        self.run_dump("--check", self.file(self.calls().account(**fine).end()))
        for column in ("thread", "api", "stack"):
            self.check_violation("CALL): %s: 1 ids" % column,
                                 self.calls(**{column: [0, 7]}).account(**fine))
        self.check_violation("1 rows out of", self.calls(duration=[30, 10]).account(**fine))
        # A call that encloses the one before it returns later and stands later.
        self.run_dump("--check", self.file(
            self.calls(enter=[100, 90], duration=[10, 30]).account(**fine).end()))
        # Two that return at the same time.
        self.run_dump("--check", self.file(self.calls(duration=[20, 10]).account(**fine).end()))
        # The order holds across chunks.
        log = self.calls().table(make.CALL, (1, UVAR, [1]), (5, UVAR, [5]))
        self.check_violation("1 rows out of", log.account(calls__seen=3, calls__written=3))

    def test_accounts(self):
        self.check_violation("calls.seen 3 is not", self.calls().account(
            calls__seen=3, calls__written=2))
        self.check_violation("calls.lost 2", self.calls().account(
            calls__seen=3, calls__written=2, calls__lost__no_ring=1, calls__lost__nested=1))
        self.check_violation("has 2 rows CALL", self.calls().account(
            calls__seen=3, calls__written=3))
        self.check_violation("not accounted for", LogMaker())
        self.check_violation("kernels.written 1", self.calls().account(
            calls__seen=2, calls__written=2, kernels__written=1))
        self.check_violation("falls from 2 to 1", self.calls().account(
            calls__seen=2, calls__written=2, a=2).account(a=1))
        self.check_violation("log.bytes", self.calls().account(
            calls__seen=2, calls__written=2, log__bytes=1 << 40))

    def test_kernels(self):
        def log(stream, shape, correlation):
            made = self.calls().table(make.STREAM, (1, UVAR, [1])).table(make.SHAPE, (1, UVAR, [1]))
            made.table(make.KERNEL, (1, UVAR, [correlation]), (2, UVAR, [stream]),
                       (3, UVAR, [shape]))
            return made.account(calls__seen=2, calls__written=2, kernels__written=1)

        self.run_dump("--check", self.file(log(1, 1, 2).end()))
        self.check_violation("KERNEL): stream", log(2, 1, 2))
        self.check_violation("KERNEL): shape", log(1, 2, 2))
        self.check_violation("without a CALL, the lowest 3", log(1, 1, 3))


class Spool(DumpTest):
    RING = (200704, 20480 + 65536, 1)
    ACTIVITY = (98560, 4096 + 8192, 2)

    def test_areas(self):
        path = self.file(make.spool([self.RING, self.ACTIVITY, (0, 0, 0)], 1 << 20))
        text = self.run_dump(path)
        self.assertEqual(records_of(text, "spool")[0]["log_id"], "0123456789abcdef")
        self.assertEqual(records_of(text, "ring"), [{
            "area": "0", "offset": "200704", "bytes": "86016", "data_bytes": "65536"}])
        self.assertEqual(records_of(text, "activity"), [{
            "area": "1", "offset": "98560", "bytes": "12288", "buffer_bytes": "8192"}])
        self.assertEqual(len(records_of(text, "none")), 1)
        self.assertIn("a spool of 3 areas", self.run_dump("--check", path))
        rows = [json.loads(line) for line in self.run_dump("--format", "json", path).splitlines()]
        self.assertEqual([row["record"] for row in rows], ["spool", "ring", "activity", "none"])

    def test_wrong_spools(self):
        cases = {
            "outside": make.spool([self.RING], 200704 + 86015),
            "wraps": make.spool([((1 << 64) - 8, 86016, 1)], 1 << 20),
            "power of two": make.spool([(200704, 20480 + 65535, 1)], 1 << 20),
            "no power": make.spool([(200704, 100, 1)], 1 << 20),
            "no room": make.spool([(200704, 4096, 2)], 1 << 20),
            "unknown kind": make.spool([(200704, 4096, 3)], 1 << 20),
            "too many areas": make.spool([self.RING], 1 << 20, count=(1 << 32) - 1),
            "cut directory": make.spool([self.RING] * 5, 100),
        }
        for name, data in cases.items():
            with self.subTest(name):
                path = self.file(data)
                self.assertIn("damaged\treason=", self.run_dump(path, status=1))
                self.assertIn(": violation: ", self.run_dump("--check", path, status=1))

    def test_what_is_no_spool(self):
        good = make.spool([self.RING], 1 << 20)
        for data in (good[:39], make.spool([], 1 << 20, version=2),
                     make.spool([], 1 << 20, order=0x04030201)):
            self.assertEqual(self.run_dump(self.file(data), status=2), "")
        self.run_dump("--kernels-total", self.file(good), status=2)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: dump_test.py XTRACE_DUMP [unittest options]")
    DUMP = os.path.abspath(sys.argv.pop(1))
    unittest.main()
