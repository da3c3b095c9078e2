# SPDX-License-Identifier: Apache-2.0
"""Checks the steps of --summary: each step on each device, each of its parts, and the budget.

The reference looks at every moment between two events, so it shares no algorithm with the merge.
"""

import bisect
import collections
import json
import re
import struct

import evidence as facts
import model

ITERATIONS_MIN = 8
COLUMNS = {"[idle: launch late (CPU busy)]": "idle_launch_late_ns",
           "[idle: CPU blocked in sync]": "idle_cpu_in_sync_ns",
           "[idle: allocating memory]": "idle_allocating_ns",
           "[idle: loading code]": "idle_loading_ns",
           "[idle: waiting on a copy]": "idle_on_copy_ns",
           "[idle: waiting for another stream]": "idle_on_stream_ns",
           "[idle: nothing submitted]": "idle_not_submitted_ns",
           "[idle: submitted, not started]": "idle_not_started_ns",
           "[idle: call unknown]": "unexplained_ns"}
PARTS = ("compute_ns", "collective_ns", "copy_ns", *COLUMNS.values())


def part_of(work):
    if work.kind != "kernel":
        return "copy_ns"
    return "collective_ns" if (work.name or "").startswith("nccl") else "compute_ns"


def masked(name):
    return re.sub("[0-9]+", "#", name)


class Iterations:
    """The instances of a range in one thread: each lasts until the next one begins."""

    def __init__(self, nests, name):
        self.starts, self.end = [], None
        self.inside_ns, was_in = 0, False
        # Before its first event, the thread is in no range.
        for (now, nest), (after, _) in zip(nests[1:], nests[2:] + nests[-1:]):
            is_in = any(masked(label(event)) == name for event in nest)
            self.inside_ns += (after - now) * is_in
            if is_in and not was_in:
                self.starts.append(now)
            if was_in and not is_in:
                self.end = now
            was_in = is_in
        if was_in:
            self.end = self.starts.pop()

    def boundary(self, number):
        return (*self.starts, self.end)[number] if number <= len(self.starts) else None


def label(event):
    return f"{event.domain}:{event.text}" if event.domain else event.text


class Device:
    """The steps of one device: when they begin, and the part of each moment."""

    def __init__(self, reference, works, iterations):
        self.reference = reference
        self.iterations = iterations
        self.works = sorted(works, key=lambda work: (work.start_ns, work.order))
        self.begins = {}  # by number; the last one is the end of the last step
        self.idle = []    # (from, until, column) in the order of time
        self.find_begins()
        self.find_idle()

    def launched_ns(self, work):
        call = self.reference.evidence.call_of(work.correlation)
        return call.enter_ns if call else work.start_ns

    def find_begins(self):
        number, busy_until, list_ = 0, None, self.iterations
        for work in self.works:
            launched = self.launched_ns(work)
            while busy_until is None and (list_.boundary(number + 1) or launched + 1) <= launched:
                number += 1  # it ended before the device did anything
            busy_until = work.start_ns if busy_until is None else busy_until
            while list_.boundary(number) is not None and list_.boundary(number) <= launched:
                begin = work.start_ns
                if busy_until < work.start_ns:
                    begin = min(max(list_.boundary(number), busy_until), work.start_ns)
                self.begins[number] = begin
                number += 1
            busy_until = max(busy_until, work.end_ns)

    def find_idle(self):
        busy_until, last = None, None
        for work in self.works:
            if last and work.start_ns > busy_until:
                now, gap = busy_until, [("[idle: call unknown]", work.start_ns - busy_until, None)]
                if not self.reference.is_blind(busy_until, work.start_ns):
                    gap = self.reference.gap(busy_until, last, work)
                for name, length_ns, _ in gap:
                    self.idle.append((now, now + length_ns, COLUMNS[name]))
                    now += length_ns
            if not last or work.end_ns > busy_until:
                busy_until, last = work.end_ns, work

    def part_at(self, now):
        running = {part_of(work) for work in self.works if work.start_ns <= now < work.end_ns}
        for part in PARTS[:3]:
            if part in running:
                return part
        return next((column for start, end, column in self.idle if start <= now < end), None)

    def points(self):
        times = {time for work in self.works for time in (work.start_ns, work.end_ns)}
        times |= {time for start, end, _ in self.idle for time in (start, end)}
        return sorted(times | set(self.begins.values()))

    def steps(self):
        """{number: (begin, {part: ns})}"""
        last_ns = max(work.end_ns for work in self.works)
        numbers = sorted(self.begins)
        spans = []
        for number in numbers:
            if number < len(self.iterations.starts):
                spans.append((number, self.begins[number], self.begins.get(number + 1, last_ns)))
        found = {number: (begin, collections.Counter()) for number, begin, _ in spans}
        points = self.points()
        for now, after in zip(points, points[1:]):
            # Steps of no length come first, so the last that has begun is the one that lasts.
            at = bisect.bisect_right([begin for _, begin, _ in spans], now) - 1
            if at >= 0 and now < spans[at][2]:
                found[spans[at][0]][1][self.part_at(now)] += after - now
        return found


class Checker:
    """summary(*options) runs the merge on the log."""

    def __init__(self, seen, reference, log_path, summary):
        self.seen, self.reference, self.summary = seen, reference, summary
        with open(log_path, "rb") as log:
            self.origin_ns = struct.unpack_from("<Q", log.read(32), 24)[0]

    def choose(self):
        """The range with the most instances in one thread, and these, or None."""
        names = {masked(label(event)) for event in self.seen.events
                 if event.kind in ("push", "start")}
        best = None
        for name in sorted(names):
            threads = [Iterations(self.reference.nests[tid], name) for tid in self.seen.threads]
            threads = [found for found in threads if len(found.starts) +
                       (found.end in found.starts) >= ITERATIONS_MIN]
            found = max(threads, key=lambda found: found.inside_ns, default=None)
            if found and len(found.starts) >= ITERATIONS_MIN and (
                    not best or len(found.starts) > len(best[1].starts)):
                best = name, found
        return best

    def wanted(self, iterations):
        rows = {}
        for number, works in self.reference.by_device.items():
            device = Device(self.reference, works, iterations)
            steps = device.steps()
            busy = [parts for _, parts in steps.values() if any(parts[p] for p in PARTS[:3])]
            if len(busy) * 2 < len(steps):
                continue
            for step, (begin, parts) in steps.items():
                rows[number, step + 1] = (begin - self.origin_ns, *(parts[p] for p in PARTS))
        return rows

    def steps(self):
        chosen = self.choose()
        if not chosen:
            return
        name, iterations = chosen
        data = json.loads(self.summary("--iteration", name, "--warmup", "0"))
        rows = data["steps"]["rows"]
        found = {(row["device"], row["step"]): (row["start_ns"], *(row[p] for p in PARTS))
                 for row in rows}
        wanted = self.wanted(iterations)
        facts.expect(found == wanted, f"steps of {name}:",
                     {key: (found.get(key), wanted.get(key)) for key in found.keys() | wanted.keys()
                      if found.get(key) != wanted.get(key)})
        for row in rows:
            facts.expect(row["wall_ns"] == sum(row[p] for p in PARTS) and row["kind"] == "steady",
                         "step:", row)
        sums = [sum(row[part] for row in rows) for part in PARTS]
        budget = {row["total_ns"] for row in data["budget"]["rows"]}
        facts.expect(budget == {total for total in sums if total}, "budget:", budget, sums)

    def all(self):
        return [self.steps]
