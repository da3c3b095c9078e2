# SPDX-License-Identifier: Apache-2.0
"""Compares every number in the tables of the text summary with the evidence."""

import collections
import re

import evidence as facts
import model

PATH_COLUMNS = 150
ERRORS = {1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY"}


def number(value):
    return f"{value:,}"


def time(value_ns):
    for from_ns, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if value_ns >= from_ns:
            return f"{value_ns / from_ns:.3f} {unit}"
    return f"{value_ns} ns"


def size(value):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} B" if units[0] == "B" else f"{value:.3f} {units[0]}"


def elided(path):
    """Shortens a path to the innermost frames that fit."""
    kept = []
    if len(";".join(path)) <= PATH_COLUMNS:
        return ";".join(path)
    for frame in reversed(path):
        if kept and len(";".join(["…", frame, *kept])) > PATH_COLUMNS:
            break
        kept.insert(0, frame)
    return ";".join(["…", *kept])


class Summary:
    """The summary as {title: [[cell, …], …]}. The overview has the title ''.

    The headline above it repeats figures of the JSON summary, and is compared with that.
    """

    def __init__(self, text):
        self.tables = collections.defaultdict(list)
        title, is_head = "", True
        for line in text.partition("\n\n")[2].splitlines():
            if not line:
                title = None
            elif title is None:
                title, is_head = re.sub(r" \(top .*\)|:.*", "", line), True
            elif is_head:
                is_head = False  # the overview's first line has the number of processes
                if not title.startswith("Warnings"):
                    continue
                self.tables[title].append(re.split(r"  +", line.strip()))
            else:
                self.tables[title].append(re.split(r"  +", line.strip()))


class Checker:
    def __init__(self, evidence, reference, text):
        self.evidence, self.reference = evidence, reference
        self.tables = Summary(text).tables
        self.is_sanitized = any(map(facts.is_sanitizers, re.split(r"[; ]", text)))
        self.works = collections.defaultdict(list)
        for work in evidence.work:
            self.works[work.correlation].append(work)
        self.recorded = [call for call in evidence.calls.values() if call.is_recorded]

    def overview(self):
        calls = {"launch": [call for call in self.recorded
                            if call.api_class in (facts.LAUNCH, facts.GRAPH_LAUNCH)],
                 "transfer": [call for call in self.recorded
                              if call.api_class in (facts.COPY, facts.SET)]}
        makers = {(tid, made_by) for tid, made_by, *_ in self.evidence.nodes}
        alone = {kind: [call for call in rows
                        if not call.result and not self.works[call.correlation]]
                 for kind, rows in calls.items()}
        captured = {kind: sum((call.thread, call.number) in makers for call in rows)
                    for kind, rows in alone.items()}
        work = self.evidence.work
        kinds = collections.Counter(piece.kind for piece in work)
        total_ns = sum(piece.end_ns - piece.start_ns for piece in work)
        facts.expect(all(piece.correlation or piece.node for piece in work), "work without a call")
        known_ns = sum(piece.end_ns - piece.start_ns for piece in work
                       if self.evidence.call_of(piece.correlation))
        collectives = [piece for piece in work if (piece.name or "").startswith("nccl")]
        rows = [
            ("launches", len(calls["launch"]), True),
            ("that returned an error", sum(call.result != 0 for call in calls["launch"]), False),
            ("captured into a graph", captured["launch"], False),
            ("copy and memset calls", len(calls["transfer"]), False),
            ("without GPU work (captured, zero bytes, or lost)",
             len(alone["transfer"]) - captured["transfer"], False),
            ("kernels", kinds["kernel"], True),
            ("of these, CUDA graphs recorded as a whole", sum(map(model.is_whole, work)), False),
            ("of these, collectives", len(collectives), False),
            ("copies", kinds["copy"], False),
            ("memsets", kinds["set"], False),
            ("kernels, copies and memsets in graphs", sum(
                piece.node != 0 and not model.is_whole(piece) for piece in work), False),
        ]
        wanted = [[name, number(value)] for name, value, always in rows if value or always]
        wanted.append(["GPU time (sum of kernels, copies and memsets)", time(total_ns)])
        if total_ns:
            share = known_ns * 100 / total_ns
            share = min(share, 99.9) if known_ns < total_ns else share
            wanted.append(["attributed to a call path", f"{share:.1f} %"])
        if collectives:
            wanted.append(["in collectives, including waits for other ranks",
                           time(sum(piece.end_ns - piece.start_ns for piece in collectives))])
        by_device = sum(not piece.correlation for piece in work)
        if by_device:
            wanted.append(["work launched by the GPU", number(by_device)])
        if self.evidence.pauses:
            wanted.append(["recording paused",
                           time(sum(until - since for since, until in self.evidence.pauses))])
        # The simulator does not tell which graphs have kernels, nor whose code its callers are.
        # steps.py checks when nothing but collectives ran.
        unclear = {"while nothing else ran", "of graphs without kernels", "without a recorded kernel",
                   "GPU time under your own code"}
        found = [row for row in self.tables[""] if row[0] not in unclear]
        facts.expect_same(map(tuple, found), map(tuple, wanted), "summary: overview")

    def calls(self):
        by_api = collections.defaultdict(list)
        for call in self.recorded:
            by_api[call.shown_api].append(call)
        found = [row[:5] + row[6:] for row in self.tables["API calls by function"]]
        wanted = []
        for api, calls in by_api.items():
            lengths = sorted(call.exit_ns - call.enter_ns for call in calls)
            wanted.append([number(len(calls)), number(sum(call.result != 0 for call in calls)),
                           time(sum(lengths)), time(sum(lengths) // len(lengths)),
                           time(lengths[0]), time(lengths[-1]), api])
        facts.expect_same(map(tuple, found), map(tuple, wanted), "summary: API calls by function")

    def failures(self):
        if self.is_sanitized:
            return  # sanitizers lengthen paths, so they are truncated elsewhere
        wanted = collections.Counter()
        for call in self.recorded:
            if call.result:
                wanted[call.result, call.path, call.shown_api] += 1
        rows = collections.Counter()
        for (result, path, api), count in wanted.items():
            rows[number(count), result, f"{elided(path)};{api}"] += 1
        found = [(row[0], int(re.search(r"\((\d+)\)", row[1]).group(1)), row[2])
                 for row in self.tables["Failed calls by error and call path"]]
        facts.expect_same(found, rows.elements(), "summary: failed calls")
        for row in self.tables["Failed calls by error and call path"]:
            code = int(re.search(r"\((\d+)\)", row[1]).group(1))
            facts.expect(row[1] == f"{ERRORS.get(code, row[1].split(' ')[0])} ({code})", row)

    def ranges(self):
        times, counts, opened = (collections.Counter() for _ in range(3))
        for work in self.evidence.work:
            call = self.evidence.call_of(work.correlation)
            if not call:
                continue
            nest = self.reference.nest(call.thread, call.enter_ns)
            for depth in range(1, len(nest) + 1):
                name = tuple(model.range_name(event) for event in nest[:depth])
                times[name] += work.end_ns - work.start_ns
                counts[name] += 1
        for nests in self.reference.nests.values():
            for (_, before), (_, after) in zip(nests, nests[1:]):
                if len(after) > len(before):
                    opened[tuple(model.range_name(event) for event in after)] += 1
        wanted = [(time(times[name]), number(counts[name]), number(opened[name]), elided(name))
                  for name in opened | counts]
        found = [(row[0], row[2], row[3], row[4])
                 for row in self.tables["GPU time by NVTX range, including nested ranges"]]
        facts.expect_same(found, wanted, "summary: GPU time by NVTX range")

    def memory(self):
        sums = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
        settings, pools = model.Settings(), {}
        for memory, pool, lines in self.reference.held(settings):
            row, pools[pool] = sums[pool], lines
            if not memory.is_free and pool != self.reference.pool(memory):
                continue  # the previous allocation at the address belonged to another pool
            row[memory.is_free] += 1
            row[2] += 0 if memory.is_free else memory.bytes
            row[3] = max(row[3], sum(lines.values()))
        for pool, lines in pools.items():
            sums[pool][4] = sum(lines.values())
        wanted = [(number(allocs), number(frees), size(total), size(peak), size(live),
                   "host" if pool == "host" else f"GPU{pool}")
                  for pool, (allocs, frees, total, peak, live) in sums.items()]
        found = [(*row[:4], *row[5:]) for row in self.tables["Memory"]]
        facts.expect_same(found, wanted, "summary: memory")

    def losses(self):
        lost = {row[1]: int(row[0].replace(",", "")) for row in self.tables.get("Losses by cause", ())}
        # A kernel is missing only if the simulator corrupted or dropped its record. A graph without
        # kernels also counts as missing some if another graph had its id and kernels.
        missing = lost.pop("kernels: launched, but the log has no record of them", 0)
        lost.pop("kinds of GPU work: CUPTI could make the program fail if it recorded them", 0)
        empty = sum(call.api_class == facts.GRAPH_LAUNCH and not self.works[call.correlation]
                    for call in self.recorded) * self.evidence.mode.reuses_ids
        facts.expect(missing <= self.evidence.spoilt + empty, "summary: kernels missing", missing)
        facts.expect(sum(lost.values()) == self.evidence.spoilt, "summary: losses", lost)

    def all(self):
        return [self.overview, self.calls, self.failures, self.ranges, self.memory, self.losses]
