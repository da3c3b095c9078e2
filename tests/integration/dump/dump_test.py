#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what tests/tools/xtrace-dump prints for valid and damaged logs that are made here.

Usage: dump_test.py XTRACE_DUMP [unittest options]
"""

import json
import os
import random
import shutil
import subprocess
import sys
from unittest import mock

import log_maker as make
from dump_base import GOOD_ROWS, TOP, DumpTest, good_log, records_of, rows_of, run_tests
from log_maker import BYTES, CONST, DELTA, DELTA_PLANES, LIST, PLANES, UVAR, LogMaker


def golden_value(name, value):
    """A JSON value in the notation of golden.txt."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list) and name != "frames":
        return "[%s]" % ",".join("%#x" % number if number else "0" for number in value)
    if isinstance(value, list):
        return "[%s]" % ",".join("%#x" % (kind << 56 | low) if kind or low else "0"
                                 for kind, low in value)
    if isinstance(value, dict) or name == "build_id":
        value = bytes.fromhex(value["hex"] if isinstance(value, dict) else value)
    else:
        value = value.encode()
    return '"%s"' % "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else
                            "\\x%02x" % byte for byte in value)


class Rows(DumpTest):
    def test_every_kind_as_text(self):
        log = good_log()
        text = self.run_dump(self.file(log))
        self.assertEqual(rows_of(text), GOOD_ROWS)
        head = records_of(text, "log")[0]
        self.assertEqual((head["version"], head["pid"], head["start_ns"], head["log_id"]),
                         ("2.4", "4711", "1000", "0123456789abcdef"))
        chunks = records_of(text, "chunk")
        self.assertEqual([int(chunk["sequence"]) for chunk in chunks], list(range(17)))
        self.assertEqual([int(chunk["offset"]) for chunk in chunks], log.places)
        ends = log.places[1:] + [len(log.data)]
        self.assertEqual([int(chunk["stored_bytes"]) for chunk in chunks],
                         [end - begin - 32 for begin, end in zip(log.places, ends)])
        self.assertEqual(self.total(text), {
            "chunks": "17", "damaged": "0", "missing": "0", "backwards": "0", "unknown": "0",
            "skipped_bytes": "0", "truncated": "no", "closed": "yes"})

    def test_json_equals_text(self):
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

    def test_golden_log(self):
        """The golden log of the C reader has the same content for this reader, which follows the
        document alone."""
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../unit/log")
        with open(os.path.join(folder, "golden.txt"), encoding="ascii") as file:
            golden = [line for line in file.read().split("\n") if line]
        rows = map(json.loads, self.run_dump(
            "--format", "json", os.path.join(folder, "golden.xtr")).splitlines())
        said = []
        for row in rows:
            if row["record"] == "log":
                said.append("LOG %d %d %d %d" % (row["pid"], row["start_ns"],
                                                 row["start_realtime_ns"], int(row["log_id"], 16)))
            elif row["record"] == "row" or row.get("kind") == "END":
                values = list(row.items())[3:] if row["record"] == "row" else ()
                said.append(" ".join([row["kind"]] + [golden_value(*item) for item in values]))
        self.assertEqual(said, golden)
        kinds = {line.split(" ")[0] for line in golden} - {"LOG"}
        self.assertEqual(kinds, set(self.program.COLUMNS))

    def test_only_wanted_kinds(self):
        text = self.run_dump("--kind", "call", "--kind", "END", self.file(good_log()))
        self.assertEqual(rows_of(text), [row for row in GOOD_ROWS if row.startswith("CALL\t")])
        self.assertEqual([chunk["kind"] for chunk in records_of(text, "chunk")],
                         ["CALL", "END", "END"])

    def test_encodings_agree(self):
        for values in ([0, TOP, 0, 1, TOP - 1], [1 << 63, 0, 1 << 63], [127, 128, 16383, 16384],
                       [TOP] * 3, [0], [5] * 200):
            encodings = [UVAR, DELTA, PLANES, DELTA_PLANES] + ([CONST] if len(set(values)) == 1 else [])
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

    def test_skips_unknown_parts(self):
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
                         "enter_ns=%d\tduration_ns=%d\tresult=0\tone_in=0\texecutable_graph=0\tsequence_number=0\tautograd=0"
                         "\tnode_sequence=0" % (enter[54321], 54321 % 997))


class Totals(DumpTest):
    def test_kernels_of_all_logs(self):
        path = self.file(good_log())
        self.assertEqual(self.run_dump("--kernels-total", path), "kernels 2 duration_ns 42\n")
        self.assertEqual(self.run_dump("--work-total", path), "work 2 duration_ns 42\n")
        self.assertEqual(self.run_dump("--kernels-total", path, path, path),
                         "kernels 6 duration_ns 126\n")

    def test_kernels_beyond_64_bits_and_const(self):
        log = LogMaker().table(make.KERNEL, (5, CONST, [TOP] * 1000))
        self.assertEqual(self.run_dump("--kernels-total", self.file(log)),
                         "kernels 1000 duration_ns %d\n" % (1000 * TOP))

    def test_calls_by_class(self):
        stray = LogMaker().table(make.CALL, (2, CONST, [12345] * 4))
        stray.table(make.API, (1, UVAR, [3, 4, 5]), (3, UVAR, [11, 3, 12]))
        stray.table(make.CALL, (2, UVAR, [3, 4, 4, 5]))
        self.assertEqual(
            self.run_dump("--calls-total", self.file(good_log()), self.file(stray)).split("\n"),
            ["calls 11", "other 1", "kernel_launch 1", "graph_launch 1", "copy 2", "set 0",
             "allocation 0", "free 0", "wait 0", "event 0", "code 0", "graph 0", "life 1",
             "class_12 1", "undefined 4", ""])

    def test_summary(self):
        log = good_log()
        path = self.file(log.bytes(b"junk"))
        text = self.run_dump("--summary", path, status=1)
        rows = {words[0]: words[1:] for words in map(str.split, text.splitlines())}
        stored = [int.from_bytes(log.data[place + 8:place + 12], "little") for place in log.places]
        self.assertEqual(rows["CALL"][:3], ["1", "3", str(stored[9])])
        self.assertEqual(rows["CALL"][4], "%.2f" % (stored[9] / 3))
        self.assertEqual(rows["END"][:2] + rows["END"][4:], ["2", "0", "-"])
        self.assertIn("file_bytes %d calls 3 file_bytes_a_call %.2f" % (
            len(log.data), len(log.data) / 3), text)
        self.assertIn("skipped_bytes 4", text)


class Damage(DumpTest):
    def test_skips_broken_header_and_garbage(self):
        log = good_log()
        # The header of the CALL chunk is damaged. Before STREAM there are bytes that look like a
        # header.
        call, after = log.places[9], log.places[10]
        rubbish = b"XTCHXTCH" + make.chunk_header(make.CALL, 1, 1, 1, 9)[:-1] + b"XTC"
        data = (log.data[:call + 5] + b"\xee" + log.data[call + 6:after] + rubbish
                + log.data[after:])
        text = self.run_dump(self.file(data), status=1)
        self.assertEqual(rows_of(text), [row for row in GOOD_ROWS if not row.startswith("CALL\t")])
        total = self.total(text)
        self.assertEqual(
            (total["skipped_bytes"], total["missing"], total["chunks"], total["closed"]),
            (str(after - call + len(rubbish)), "1", "16", "yes"))

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
            "encoding 8": (make.CLOCK, 2, make.column(1, 8, b"\1\1")),
            "no planes": (make.CLOCK, 2, make.column(1, PLANES, b"\0")),
            "nine planes": (make.CLOCK, 1, make.column(1, PLANES, b"\11" + b"\1" * 9)),
            "planes cut": (make.CLOCK, 2, make.column(1, PLANES, b"\2\1\1\1")),
            "planes left over": (make.CLOCK, 2, make.column(1, PLANES, b"\1\1\1\1")),
            "planes without start": (make.CLOCK, 1, make.column(1, DELTA_PLANES, b"\1\1")),
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
        """The chunk is rejected, and the next one is read."""
        log.table(make.CLOCK, (1, UVAR, [7])).end()
        with self.subTest(name):
            text = self.run_dump(self.file(log), status=1)
            self.assertEqual(rows_of(text), ["CLOCK\tmonotonic_ns=7\trealtime_ns=0"])
            self.assertEqual((self.total(text)["damaged"], self.total(text)["closed"]),
                             ("1", "yes"))

    def test_stored_bytes_beyond_zstds_bound(self):
        bound = (16 << 20) + (16 << 12)
        for size, reason in ((bound, "not a zstd frame"), (bound + 1, "a frame of")):
            log = LogMaker().chunk(make.CLOCK, 0, frame=bytes(size), raw=0)
            text = self.run_dump(self.file(log), status=1)
            self.assertIn(reason, records_of(text, "damaged")[0]["reason"])

    def test_reaches_the_limits(self):
        log = LogMaker().chunk(make.CLOCK, 1 << 20)
        log.chunk(make.STRING, 1, make.column(9, 1, b"a" * ((16 << 20) - 8)))
        text = self.run_dump("--summary", self.file(log))
        self.assertIn("%14d" % (16 << 20), text)
        self.assertIn("%12d" % (1 << 20), text)

    def test_refuses_logs_that_expand_beyond_the_limits(self):
        # Kind, rows and bytes per chunk, number of chunks, and the limit that the last one exceeds.
        for kind, rows, raw, count, unit in (
                (make.THREAD, 1 << 20, 0, 1, None), (make.THREAD, 1 << 20, 0, 2, "table rows"),
                (make.CALL, 1 << 20, 0, 8, None), (make.CALL, 1 << 20, 0, 9, "rows"),
                (make.STRING, 1, 16 << 20, 1, None),
                (make.STRING, 1, 16 << 20, 2, "bytes of tables"),
                (make.UNKNOWN_KIND, 1 << 20, 0, 9, None),
                (make.THREAD, (1 << 20) + 1, 0, 2, None)):
            log = LogMaker()
            content = make.column(99, 1, b"a" * (raw - 8)) if raw else b""
            frame = make.compress(content)
            for _ in range(count):
                log.chunk(kind, rows, frame=frame, raw=len(content))
            path = self.file(log)
            if unit is None:
                self.run_dump("--summary", path, status=None)
                self.assertNotIn("expand", self.errors)
                continue
            self.run_dump("--summary", path, status=2)
            self.assertIn("expand to %d %s, the limit is " % (
                count * (raw if "bytes" in unit else rows), unit), self.errors)
            with mock.patch.dict(os.environ, XTRACE_LOG_LIMITS="0"):
                self.run_dump("--summary", path)

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
            self.assertEqual(total["closed"], "yes" if count in (15, 17) and at_end else "no", size)

    def test_every_damaged_byte(self):
        data = good_log().data
        paths = [self.file(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1:])
                 for place in range(64, len(data))]
        text = self.run_dump(*paths, status=1)
        good = set(GOOD_ROWS)
        parts = ("\n" + text).split("\nlog\t")[1:]
        self.assertEqual(len(parts), len(paths))
        for place, part in enumerate(parts, 64):
            rows, total = rows_of("log\t" + part), self.total(part)
            self.assertLessEqual(set(rows), good, place)
            self.assertGreaterEqual(len(rows), len(GOOD_ROWS) - 6)
            damage = ("damaged", "missing", "skipped_bytes")
            self.assertTrue(any(total[name] != "0" for name in damage)
                            or total["truncated"] == "yes", place)

    def test_random_content(self):
        """Random content in valid frames: rejected or read, never a crash."""
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
            log.chunk(chance.randrange(23), chance.choice((0, 1, 2, 3, 9)), content)
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
    def test_other_files(self):
        cases = {
            "empty": b"",
            "text": b"hello\n" * 20,
            "newer": make.log_header(major=3),
            "version 0": make.log_header(major=0),
            "big-endian processor": make.log_header(order=0x04030201),
            "unknown processor, number 243": make.log_header(machine=243),
            "short header": make.log_header(header_bytes=63),
        }
        for name, data in cases.items():
            with self.subTest(name):
                self.assertEqual(self.run_dump(self.file(data), status=2), "")
                self.assertTrue(self.errors.startswith("xtrace-dump: "))
                self.assertEqual(self.errors.count("\n"), 1)
                if "processor" in name:
                    self.assertIn(name, self.errors)
        self.run_dump(self.folder, status=2)
        self.run_dump(os.path.join(self.folder, "none.xtr"), status=2)
        self.run_dump("/dev/null", status=2)

    def test_other_logs_after_an_error(self):
        path = self.file(good_log())
        text = self.run_dump(self.file(b"no log at all"), path, status=2)
        self.assertEqual(rows_of(text), GOOD_ROWS)

    def test_damaged_header(self):
        data = good_log().data
        for place in range(64):
            path = self.file(data[:place] + bytes([data[place] ^ 1]) + data[place + 1:])
            self.assertEqual(self.run_dump(path, status=2), "")
        for size in (8, 30, 63):
            self.assertEqual(self.run_dump(self.file(data[:size]), status=2), "")
            self.assertIn("the header is cut off", self.errors)
        self.assertEqual(rows_of(self.run_dump(self.file(data[:64]))), [])

    def test_usage(self):
        path = self.file(good_log())
        for arguments in ([], ["--kind", "NONE", path], ["--format", "xml", path],
                          ["--check", "--format", "json", path], ["--allow-open", path],
                          ["--kernels-total", "--kind", "CALL", path]):
            self.run_dump(*arguments, status=2)

    def test_run_as_program(self):
        """The other tests call its functions; this one runs it."""
        good, path = self.file(good_log()), self.file(good_log().bytes(b"x"))
        for arguments, status, read in (([good], 0, 1), ([good, path], 1, 2),
                                        ([path, good + "x"], 2, 1), ([], 2, 0)):
            done = subprocess.run([sys.executable, "-B", self.dump, *arguments],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(rows_of(done.stdout), GOOD_ROWS * read)

    def test_reports_missing_libzstd(self):
        script = ("import ctypes, runpy, sys\n"
                  "def refuse(name):\n"
                  "    raise OSError(name)\n"
                  "ctypes.CDLL = refuse\n"
                  "sys.argv = sys.argv[1:]\n"
                  "runpy.run_path(sys.argv[0], run_name='__main__')\n")
        done = subprocess.run([sys.executable, "-B", "-c", script, self.dump, self.file(good_log())],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("libzstd.so.1 was not found", done.stderr)

    def test_closed_output_pipe(self):
        done = subprocess.run(["/bin/sh", "-c", '"$0" -B "$1" "$2" | head -n 1', sys.executable,
                               self.dump, self.file(LogMaker().chunk(make.CLOCK, 500000))],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.stderr, done.stdout[:4]), ("", "log\t"))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([sys.executable, "-B", self.dump, self.file(good_log())],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                                  check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "xtrace-dump: cannot write: No space left on device\n")


if __name__ == "__main__":
    run_tests()
