#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what tests/tools/xtrace-dump prints and reports about crash buffers that are made here.

Usage: dump_spool_test.py XTRACE_DUMP [unittest options]
"""

import json
import random

import log_maker as make
from dump_base import DumpTest, records_of, run_tests


class Spool(DumpTest):
    # In a ring of 4,096 bytes that was filled almost three times.
    FREE = 3 * 4096 - 104
    SLOTS = ((0, 70), (3, 71), (4095, 72))
    COUNTERS = (9, 7, 1, 1, *range(20, 31))

    def records(self):
        """A call with the stack of a slot, a stack, padding up to the ring's end, and two calls."""
        return b"".join((
            make.ring_call(api=0x10133, correlation=11, slot=3, enter=100, leave=110),
            make.ring_stack(3, [0x401000, (1 << 56) + 5], flags=1, first_seen=112),
            make.ring_padding(24),
            make.ring_call(api=0x1FFFFFFFF >> 1, correlation=12, slot=3, enter=111, leave=120,
                           result=-5),
            make.ring_call(correlation=13, slot=0xFFFFFFFF, enter=90, leave=120, stated=48)
            + bytes((7, 0, 0, 0, 0, 0, 0, 0))))

    def good(self, **how):
        ring = make.ring(self.records(), self.FREE, slots=self.SLOTS, counters=self.COUNTERS,
                         open_calls=((5, 14, 4095, 130, 9), (6, 15, 0xFFFFFFFF, 131, 0)))
        return make.spool(ring, (make.VOID, b""), make.ring(thread=0),
                          make.activity(2, 8192, 9), make.activity(1, sequence=5), **how)

    def test_everything_as_text(self):
        text = self.run_dump(self.file(self.good()))
        head = records_of(text, "spool")[0]
        self.assertEqual((head["log_id"], head["pid"], head["areas"], head["cupti_version"]),
                         ("0123456789abcdef", "4711", "5", "28"))
        ring, free = records_of(text, "ring")
        self.assertEqual(ring, {
            "area": "0", "offset": "102400", "bytes": "24576", "data_bytes": "4096", "thread": "1",
            "tid": "4711", "first_seen_ns": "1000", "write_pos": str(self.FREE + 192),
            "free_pos": str(self.FREE), "open_calls": "2", "slots": "3", "calls.seen": "9",
            "calls.committed": "7", "calls.lost.ring_full": "1", "calls.lost.nested": "1",
            "stacks.hits": "20", "stacks.walked": "21", "stacks.audited": "22",
            "stacks.mismatched": "23", "stacks.truncated": "24", "stacks.transient": "25",
            "stacks.lost": "26", "nodes.seen": "27", "nodes.lost": "28", "ranges.seen": "29",
            "ranges.lost": "30", "threads.waited_ns": "0"})
        self.assertEqual((free["area"], free["thread"]), ("2", "0"))
        after = [line for line in text.splitlines() if not line.startswith(("spool", "ring"))]
        self.assertEqual(after, [line.replace(" ", "\t") for line in (
            "open_call area=0 thread=1 depth=0 api=5 correlation=14 slot=4095 enter_ns=130",
            "open_call area=0 thread=1 depth=1 api=6 correlation=15 slot=- enter_ns=131",
            "call area=0 pos=12184 thread=1 api=65843 correlation=11 slot=3 stack=71 stack_pos=- "
            "enter_ns=100 exit_ns=110 result=0 one_in=0",
            "stack area=0 pos=12224 thread=1 slot=3 flags=1 first_seen_ns=112 "
            "frames=0:0x401000,1:0x5",
            "padding area=0 pos=12264 bytes=24",
            "call area=0 pos=12288 thread=1 api=4294967295 correlation=12 slot=3 stack=- "
            "stack_pos=12224 enter_ns=111 exit_ns=120 result=-5 one_in=0",
            "call area=0 pos=12328 thread=1 api=5 correlation=13 slot=- stack=0 stack_pos=- "
            "enter_ns=90 exit_ns=120 result=0 one_in=0 executable_graph=7",
            "void area=1",
            "activity area=3 offset=151552 bytes=12288 state=completed data_bytes=8192 "
            "valid_bytes=8192 sequence=9",
            "activity area=4 offset=163840 bytes=12288 state=writing data_bytes=8192 "
            "valid_bytes=- sequence=5",
            "total rings=2 open_calls=2 calls=3 stacks=1 graph_nodes=0 nvtx_events=0 "
            "activity_buffers=2 damaged=0")])

    def test_pauses(self):
        text = self.run_dump(self.file(make.spool(make.ring(
            make.ring_switch(0, 7) + make.ring_skip(33) + make.ring_switch(1, 9) +
            make.ring_skip(34, record_type=9)), wish=5 << 3 | 4 | 2)))
        self.assertEqual([line for line in text.splitlines() if line.startswith(("sk", "sw", "le"))],
                         [line.replace(" ", "\t") for line in (
            "switch area=0 pos=0 thread=1 on=0 time_ns=7",
            "skip area=0 pos=16 thread=1 correlation=33",
            "switch area=0 pos=24 thread=1 on=1 time_ns=9",
            "left area=0 pos=40 thread=1 correlation=34")])
        self.assertEqual(records_of(text, "spool")[0]["wish"], "2")
        self.assertEqual(records_of(text, "spool")[0]["wish_done"], "1")

    def test_graph_nodes_and_nvtx_events(self):
        ring = make.ring(b"".join((
            make.ring_node(3, 7 << 40, 5, 100, 2), make.ring_stack(3, [8]),
            make.ring_nvtx(b"tab\t\xff", 3, 4, 102, 1 << 40, 9, (1 << 64) - 1, 2, 77, 0xFF00FF00),
            make.ring_node(0xFFFFFFFF, graph_exec=9), make.ring_nvtx(b"12345678"),
            make.ring_nvtx(payload_data=b"payloads"))),
                         slots=self.SLOTS)
        path = self.file(make.spool(ring))
        text = self.run_dump(path)
        self.assertEqual([line for line in text.splitlines() if line.startswith(("graph", "nvtx"))],
                         [line.replace(" ", "\t") for line in (
            "graph_node area=0 pos=0 thread=1 node=7696581394432 origin=5 slot=3 stack=71 "
            "stack_pos=- time_ns=100 type=2 executable_graph=0",
            "nvtx area=0 pos=72 thread=1 operation=4 time_ns=102 domain=1099511627776 "
            r"text=tab\x09\xff key=9 slot=3 stack=- stack_pos=40 category=77 "
            "payload=18446744073709551615 payload_type=2 colour=4278255360 payload_bytes=0",
            "graph_node area=0 pos=144 thread=1 node=7 origin=0 slot=- stack=0 stack_pos=- "
            "time_ns=100 type=0 executable_graph=9",
            "nvtx area=0 pos=184 thread=1 operation=1 time_ns=100 domain=0 text=12345678 key=0 "
            "slot=- stack=0 stack_pos=- category=0 payload=0 payload_type=0 colour=0 payload_bytes=0",
            "nvtx area=0 pos=256 thread=1 operation=1 time_ns=100 domain=0 text= key=0 "
            "slot=- stack=0 stack_pos=- category=0 payload=0 payload_type=0 colour=0 payload_bytes=8")])
        self.assertEqual((self.total(text)["graph_nodes"], self.total(text)["nvtx_events"]),
                         ("2", "3"))
        rows = map(json.loads, self.run_dump("--format", "json", path).splitlines())
        self.assertEqual([row["text"] for row in rows if row["record"] == "nvtx"],
                         [{"hex": b"tab\t\xff".hex()}, "12345678", ""])
        self.run_dump("--check", path)
        long = make.ring_nvtx(b"n" * 65464)
        text = self.run_dump(self.file(make.spool(make.ring(long * 3, size=1 << 18))))
        self.assertEqual([len(row["text"]) for row in records_of(text, "nvtx")], [65464] * 3)

    def test_json_equals_text(self):
        path = self.file(self.good())
        text = self.run_dump(path).splitlines()
        rows = list(map(json.loads, self.run_dump("--format", "json", path).splitlines()))
        self.assertEqual(len(rows), len(text))
        for row, line in zip(rows, text):
            self.assertEqual([row["record"]] + list(row)[1:],
                             [word.split("=")[0] for word in line.split("\t")])
        by_what = {row["record"]: row for row in rows}
        self.assertEqual(by_what["stack"]["frames"], [[0, 0x401000], [1, 5]])
        self.assertEqual([(row["slot"], row["stack"], row["stack_pos"]) for row in rows
                          if row["record"] == "call"],
                         [(3, 71, None), (3, None, 12224), (None, 0, None)])
        self.assertEqual((by_what["activity"]["valid_bytes"], by_what["activity"]["state"]),
                         (None, "writing"))

    def test_check(self):
        self.assertIn("good: a spool of 2 rings, 3 calls, 2 open calls",
                      self.run_dump("--check", self.file(self.good())))
        # Unusual values are no damage: they are printed.
        for expected, data in (
                ("the wish 3 has no meaning", self.good(wish=3)),
                ("area 1 reason reserved bytes of the directory", make.spool(
                    make.ring(), make.ring(), directory=[(1, (102400 + 24576, 24576, 1, 9))])),
                ("have no meaning", make.spool(make.ring(counters=[0] * 16 + [1]))),
                ("have no meaning", make.spool(make.ring(counters=[0] * 21 + [1]), version=3)),
                ("pos 4088 reason reserved", make.spool(make.ring(
                    make.ring_padding(8, stated=8), free=4088))),
                ("returned before it was called", make.spool(make.ring(
                    make.ring_call(enter=100, leave=99)))),
                ("or before the call before", make.spool(make.ring(
                    make.ring_call(leave=120) + make.ring_call(leave=119))))):
            with self.subTest(expected):
                path = self.file(data)
                self.assertNotIn("damaged\t", self.run_dump(path))
                text = self.run_dump("--check", path, status=1)
                self.assertEqual(len(text.splitlines()), 1, text)
                self.assertIn(expected, text)

    def check_damaged(self, expected, data, calls=0):
        """Expects this damage after so many calls."""
        with self.subTest(expected):
            path = self.file(data)
            text = self.run_dump(path, status=1)
            self.assertEqual(len(records_of(text, "damaged")), 1, text)
            self.assertIn(expected, records_of(text, "damaged")[0]["reason"])
            self.assertEqual(len(records_of(text, "call")), calls)
            self.assertIn("reason %s" % records_of(text, "damaged")[0]["reason"],
                          self.run_dump("--check", path, status=1))

    def test_invalid_areas(self):
        ring, beyond = make.ring(make.ring_call()), (1 << 64) - 4096
        for expected, *entry in (
                ("outside the file", beyond, 24576, 1, 0),
                ("outside the file", 102400, beyond, 1, 0),
                ("outside the file", 102400, 24577, 1, 0), ("over the header", 98304, 24576, 1, 0),
                ("over the header", 0, 24576, 1, 0), ("multiple of 4096", 102408, 24568, 1, 0),
                ("no power of two", 102400, 24575, 1, 0), ("no power of two", 102400, 20480, 1, 0),
                ("no power of two", 102400, 0, 1, 0), ("no room", 102400, 4096, 2, 0),
                ("unknown kind 3", 102400, 4096, 3, 0)):
            self.check_damaged(expected, make.spool(ring, directory=[(0, entry)]))
        # The directory may name the same bytes often. They are read a limited number of times.
        where = (102400, 24576, 1, 0)
        self.check_damaged("overlaps", make.spool(ring, ring, directory=[(1, where)]), calls=1)
        self.check_damaged("overlaps", make.spool(
            ring, ring, directory=[(0, (106496, 40960, 2, 0)), (1, where)]))
        self.check_damaged("overlaps", make.spool(
            ring, ring, directory=[(1, (106496, 24576, 1, 0))]), calls=1)
        text = self.run_dump(self.file(make.spool(ring, count=(1 << 32) - 1)), status=1)
        self.assertIn("4294967295 areas, of at most 4096", text)
        self.assertEqual((self.total(text)["calls"], text.count("void\t")), ("1", 4095))

    def test_invalid_rings(self):
        call = make.ring_call()
        for expected, how in (
                ("2048 bytes of data in room for 4096", dict(data_bytes=2048)),
                ("in room for 4096", dict(data_bytes=(1 << 64) - 1)),
                ("free position 48", dict(free=48, write=40)),
                ("for 4096 bytes", dict(write=4104)), ("for 4096 bytes", dict(write=(1 << 64) - 8)),
                ("no multiples of 8", dict(free=4, write=44)),
                ("no multiples of 8", dict(write=44))):
            self.check_damaged(expected, make.spool(make.ring(call, **how)))
        self.check_damaged("9 open calls", make.spool(make.ring(open_count=9)))
        self.check_damaged("stack slot 4096", make.spool(
            make.ring(open_calls=[(1, 1, 4096, 1, 0)])))

    def test_invalid_records(self):
        call, stack = make.ring_call(), make.ring_stack(1, [7, 8])
        for expected, record in (
                ("type 0", bytes(8)), ("type 8", b"\x08\0\x08\0" + bytes(4)),
                ("a skipped call of 16 bytes", make.ring_skip(stated=16) + bytes(8)),
                ("a skipped call of 24 bytes", make.ring_skip(stated=24, record_type=9) + bytes(16)),
                ("a switch of 24 bytes", make.ring_switch(stated=24) + bytes(8)),
                ("a graph node of 48 bytes", make.ring_node(stated=48) + bytes(8)),
                ("slot 4096", make.ring_node(slot=4096)), ("cut off", make.ring_node()[:32]),
                ("9 bytes of text and 0 of payloads in 72", make.ring_nvtx(b"12345678", text_bytes=9)),
                ("4294967295 bytes of text", make.ring_nvtx(b"1", text_bytes=(1 << 32) - 1)),
                ("in 68", make.ring_nvtx(b"1234", stated=68)),
                ("8 of payloads in 64", make.ring_nvtx(payload_bytes=8)),
                ("7 of payloads in 72", make.ring_nvtx(payload_data=b"1234567", stated=72) + b"8"),
                ("slot 4096", make.ring_nvtx(slot=4096)), ("cut off", make.ring_nvtx()[:56]),
                ("a record of 72 bytes where 64 are left", make.ring_nvtx(b"12345678")[:64]),
                ("a call of 0 bytes", make.ring_call(stated=0)),
                ("a call of 56 bytes", make.ring_call(stated=56) + bytes(16)),
                ("slot 4096", make.ring_call(slot=4096)), ("cut off", call[:32]),
                ("in slot 4096", make.ring_stack(4096, [])),
                ("of 1001 frames", make.ring_stack(1, [7] * 30, count=1001)),
                ("in 48 bytes", make.ring_stack(1, [7, 8], stated=48)),
                ("in 65528 bytes", make.ring_stack(1, [7, 8], stated=65528)),
                ("of 3 frames in 40 bytes", make.ring_stack(1, [7, 8], count=3)),
                ("cut off", stack[:32]), ("cut off", stack[:16]),
                ("a record of 4056 bytes where 8 are left", make.ring_padding(8))):
            self.check_damaged(expected, make.spool(make.ring(call + record)), calls=1)
        # Records do not wrap.
        self.check_damaged("cut off", make.spool(make.ring(call + call, free=4096 - 48)), calls=1)
        self.check_damaged("cut off", make.spool(make.ring(call + stack, free=4096 - 48)), calls=1)

    def test_rings_without_a_thread(self):
        """The content of a ring without a thread is ignored."""
        text = self.run_dump("--check", self.file(make.spool(
            make.ring(bytes(8), thread=0, open_calls=[(1, 1, 4096, 1, 0)]))))
        self.assertIn("good: a spool of 1 rings, 0 calls, 0 open calls", text)

    def test_large_rings(self):
        """Larger than one read, with the largest stack across two reads."""
        size, frames = 1 << 20, list(range(1000))
        count = ((1 << 18) - 64) // 40
        records = make.ring_call() * count + make.ring_stack(7, frames)
        records += make.ring_call(slot=7) * count
        data = make.spool(make.ring(records, free=5 << 20, size=size))
        text = self.run_dump(self.file(data))
        self.assertEqual(self.total(text)["calls"], str(2 * count))
        stack = records_of(text, "stack")[0]
        self.assertEqual(stack["frames"], ",".join("0:%#x" % frame for frame in frames))
        calls = records_of(text, "call")
        self.assertEqual({call["stack_pos"] for call in calls[count:]}, {stack["pos"]})
        self.assertEqual(int(calls[-1]["pos"]), (5 << 20) + len(records) - 40)

    def test_invalid_activity_buffers(self):
        for expected, area in (
                ("unknown state 4", make.activity(4)),
                ("8193 bytes of data in room for 8192", make.activity(0, data_bytes=8193)),
                ("in room", make.activity(2, data_bytes=(1 << 64) - 1)),
                ("8192 valid bytes of 8184", make.activity(2, valid=8192, data_bytes=8184))):
            self.check_damaged(expected, make.spool(area))
        self.run_dump("--check", self.file(make.spool(make.activity(1, valid=1 << 60))))

    def test_names_and_record_sizes(self):
        """Version 2: names for the tracer's ids, and CUPTI's record sizes."""
        names = make.names((1, 0x7F0012345678, b"kernel"), (2, 3, b""), (9, 1, b"12345678"))
        data = make.spool(names, make.activity(3), version=2, record_bytes={10: 216})
        path = self.file(data)
        text = self.run_dump("--check", path)
        self.assertIn("good: a spool of 0 rings", text)
        text = self.run_dump(path)
        self.assertEqual(records_of(text, "record_bytes"), [{"kind": "10", "bytes": "216"}])
        self.assertEqual([(name["of"], name["key"], name["text"])
                          for name in records_of(text, "name")],
                         [("kernel", str(0x7F0012345678), "kernel"), ("domain", "3", ""),
                          ("9", "1", "12345678")])
        self.assertEqual(records_of(text, "activity")[0]["state"], "in log")
        for expected, area, version in (
                ("unknown kind 3", names, 1),
                ("bytes of names in room for", make.names(used=1 << 40), 2),
                ("cut off", make.names((1, 1, b"12345678"), used=32), 2),
                ("where 24 are left", make.names((1, 1, b"123456789"), used=24), 2)):
            self.check_damaged(expected, make.spool(area, version=version))
        self.assertEqual(self.run_dump(self.file(data[:98400]), status=2), "")

    def test_python_frames(self):
        """Version 3."""
        codes = [(b"train_step", b"/a/train.py", 10), (b"<module>", b"", 1)]
        part = make.ring_python([(12, 0, 0), (3, 1, 2)], codes)
        ring = make.ring(make.ring_stack(1, [7, 8], python=part) + make.ring_call(),
                         counters=list(range(1, 22)))
        path = self.file(make.spool(ring, version=3))
        self.assertIn("good", self.run_dump("--check", path))
        text = self.run_dump(path)
        self.assertEqual([(frame["name"], frame["file"], frame["line"], frame["first_line"],
                           frame["place"]) for frame in records_of(text, "python_frame")],
                         [("train_step", "/a/train.py", "12", "10", "0"),
                          ("<module>", "", "3", "1", "2")])
        self.assertEqual(records_of(text, "stack")[0]["frames"], "0:0x7,0:0x8")
        self.assertEqual(records_of(text, "ring")[0]["python.unknown"], "21")
        for expected, part in (
                ("code 2 at place 0", make.ring_python([(1, 2, 0)], codes)),
                ("code 0 at place 3", make.ring_python([(1, 0, 3)], codes)),
                ("1001 Python frames", make.ring_python([(1, 0, 0)], codes, frame_count=1001)),
                ("513 code objects", make.ring_python([(1, 0, 0)], codes, code_count=513)),
                ("cut off", make.ring_python([(1, 0, 0)], codes, code_count=3)),
                ("in 64 bytes that take 32",
                 make.ring_python([(1, 0, 0)], [(b"f", b"g", 1)]) + bytes(32))):
            stack = make.ring_stack(1, [7, 8], python=part)
            self.check_damaged(expected, make.spool(make.ring(make.ring_call() + stack),
                                                    version=3), calls=1)
        self.check_damaged("a stack of 2 frames", make.spool(make.ring(
            make.ring_call() + make.ring_stack(1, [7, 8], python=bytes(8))), version=2), calls=1)

    def test_more_slots(self):
        """Version 4."""
        records = make.ring_call(slot=32767) + make.ring_stack(4096, [7]) + make.ring_call(slot=4096)
        ring = make.ring(records, slots=[(32767, 9)], header_bytes=135168)
        path = self.file(make.spool(ring, version=4))
        self.assertIn("good", self.run_dump("--check", path))
        text = self.run_dump(path)
        self.assertEqual([call["stack"] for call in records_of(text, "call")][0], "9")
        self.assertEqual(len(records_of(text, "stack")), 1)
        for slot, version, size in ((4096, 3, 20480), (32768, 4, 135168)):
            self.check_damaged("stack slot %d" % slot, make.spool(
                make.ring(open_calls=[(1, 1, slot, 1, 0)], header_bytes=size), version=version))
        self.check_damaged("no power of two", make.spool(make.ring(records), version=4))

    def test_generations(self):
        """Version 5: the generation of modules of a stack."""
        records = make.ring_stack(1, [7], flags=1 | 65535 << 16)
        path = self.file(make.spool(make.ring(records, header_bytes=135168), version=5,
                                    modules=(2000, 65534, 1, 1)))
        text = self.run_dump(path)
        stack, modules = records_of(text, "stack")[0], records_of(text, "modules")[0]
        self.assertEqual((stack["flags"], stack["generation"]), ("1", "65535"))
        self.assertEqual(modules, {"from_ns": "2000", "first_generation": "65534",
                                   "last_generation": "1", "valid": "1"})

    def test_modules(self):
        """Version 6: the module of each frame."""
        stack = make.ring_stack(1, [7, 8, 9], python=make.ring_modules(511, 1, 0) +
                                make.ring_python([(12, 0, 3)], [(b"f", b"f.py", 1)]))
        ring = make.ring(make.ring_module(511) + stack + make.ring_call(), modules=[(1, 9), (3, 4)],
                         header_bytes=135168)
        path = self.file(make.spool(ring, version=6))
        self.assertIn("good", self.run_dump("--check", path))
        text = self.run_dump(path)
        module = records_of(text, "module")[0]
        self.assertEqual([module[name] for name in ("slot", "start", "end", "bias", "build_id",
                                                    "path")],
                         ["511", "0x1000", "0x2000", "0x800", "12ab", "/lib/p.so"])
        self.assertEqual(records_of(text, "stack")[0]["modules"], "511,1,0")
        self.assertEqual(records_of(text, "python_frame")[0]["place"], "3")
        self.assertEqual(records_of(text, "ring")[0]["modules"], "2")
        for expected, record, version in (
                ("module slot 512", make.ring_module(512), 6),
                ("module slot 0", make.ring_module(0), 6),
                ("a build id of 65 bytes", make.ring_module(build_id=bytes(65)), 6),
                ("a path of 4097", make.ring_module(path=b"/" + b"x" * 4096)[:4000], 6),
                ("with 11 bytes of text in 48", make.ring_module(stated=48), 6),
                ("a record of type 8", make.ring_module(), 5),
                ("module slot 513", make.ring_stack(1, [7], python=make.ring_modules(513)), 6),
                ("a stack of 1 frames in 32", make.ring_stack(1, [7]), 6)):
            self.check_damaged(expected, make.spool(make.ring(
                make.ring_call() + record, header_bytes=135168), version=version), calls=1)

    def test_other_files(self):
        for data in (self.good()[:98343], make.spool(version=9), make.spool(order=0x04030201)):
            self.assertEqual(self.run_dump(self.file(data), status=2), "")
        self.run_dump(self.file(self.good()[:98344]), status=1)
        good = self.file(self.good())
        for option in ("--kernels-total", "--summary", "--kind=CALL"):
            self.run_dump(option, good, status=2)

    def test_random_damage(self):
        """Crash buffers with random words: reading ends normally."""
        chance, good, damaged = random.Random(20240301), self.good(), 0
        for _ in range(300):
            data = bytearray(good)
            for _ in range(3):
                place = chance.choice((chance.randrange(0, 160), 102400 + chance.randrange(1024),
                                       102400 + 20480 + chance.randrange(4096),
                                       151552 + chance.randrange(32)))
                data[place] = chance.choice((0, 1, 8, 127, 255))
            data[:16] = good[:16]
            path = self.file(bytes(data))
            with self.subTest(data=bytes(data[16:160]).hex()):
                text = self.run_dump("--format", "json", path, status=None)
                rows = list(map(json.loads, text.splitlines()))
                self.assertEqual(self.status, int(rows[-1]["damaged"] > 0))
                damaged += self.status
        self.assertGreater(damaged, 50)


if __name__ == "__main__":
    run_tests()
