# SPDX-License-Identifier: Apache-2.0
"""A small reference model of the merge, computed from the evidence alone. It follows
docs/WEIGHTS.md and shares neither code nor algorithm with the merge: it cuts times into
intervals and adds exact fractions, at any cost.
"""

import bisect
import collections
import fractions

import evidence as facts

COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
MEMORY_KINDS = {1: "pageable", 2: "pinned", 3: "device", 5: "managed"}
HOST_MEMORY = (1, 2)
OWN_CODE_MAX_NS = 1000000

# Weights without a device or stream.
WITHOUT_DEVICE = {"cpu-wait"}
WITHOUT_STREAM = {"cpu-wait", "alloc-bytes", "peak-bytes", "leaked-bytes"}

Settings = collections.namedtuple("Settings", "weight by graph_stacks nvtx",
                                  defaults=("gpu-time", "default", "both", "frames"))


def leaf(work):
    if work.kind == "kernel":
        return f"[GPU_Kernel]{work.name}"
    if work.kind == "copy":
        return f"[GPU_Memcpy {COPY_KINDS[work.copy.kind]}]"
    return "[GPU_Memset]"


def is_whole(work):
    """True for the work of a graph that is recorded as a whole."""
    return work.node & facts.WHOLE == facts.WHOLE


def range_name(event):
    text = event.text.replace(";", ":")
    return f"{event.domain}:{text}" if event.domain else text


def wait_kind(call):
    """The way in which the CPU waits in that call, or None."""
    if call.api_class == facts.SYNC:
        return "sync"
    if call.api_class == facts.COPY and "Async" not in call.api:
        return "copy"
    return None


def thread_state(call):
    """What the thread does in that call: waits, or keeps the GPU waiting. None: launches."""
    return {facts.ALLOC: "memory", facts.FREE: "memory", facts.MODULE: "code"}.get(
        call.api_class, wait_kind(call))


def exclusive_shares(works):
    """(work, ns) on one device: running work shares each moment."""
    points = sorted({work.start_ns for work in works} | {work.end_ns for work in works})
    running, shares, carry = [], collections.defaultdict(fractions.Fraction), 0
    starts = collections.defaultdict(list)
    for work in sorted(works, key=lambda work: (work.start_ns, work.order)):
        if work.end_ns > work.start_ns:  # a whole graph may have no work
            starts[work.start_ns].append(work)
    given = []
    for now, following in zip(points, points[1:] + points[-1:]):
        for work in [work for work in running if work.end_ns == now]:
            whole = shares[work] + carry
            given.append((work, int(whole)))
            carry = whole - int(whole)
            running.remove(work)
        running += starts[now]
        for work in running:
            shares[work] += fractions.Fraction(following - now, len(running))
    return given


class Model:
    def __init__(self, evidence, process_label):
        self.evidence = evidence
        self.process_label = process_label
        self.cuda_since_ns = min(call.times[3] for call in evidence.calls.values()
                                 if call.api == "cuInit")
        contexts = collections.defaultdict(set)
        self.by_device = collections.defaultdict(list)
        for work in evidence.work:
            contexts[work.device].add(work.context)
            self.by_device[work.device].append(work)
        self.has_contexts = {device for device, ids in contexts.items() if len(ids) > 1}
        # The recorded calls of each thread, in order.
        self.recorded = collections.defaultdict(list)
        for call in sorted(evidence.calls.values(), key=lambda call: call.number):
            if call.is_recorded:
                self.recorded[call.thread].append(call)

        self.announced = {node for _, _, node, _ in evidence.nodes}
        self.nests = {tid: self.nests_of(tid) for tid in evidence.threads}
        self.join_by_time()
        self.known = {self.maker_kind(evidence.calls[maker], self.maker_nest(*maker))
                      for maker in evidence.made_at if evidence.calls[maker].is_recorded}

    # Work that the GPU launches.

    def join_by_time(self):
        """Assigns the work of conditional bodies to a call as docs/WEIGHTS.md describes, or to a
        call with the same owner.
        """
        with_number = collections.defaultdict(list)
        for work in sorted(self.evidence.work, key=lambda work: (work.start_ns, work.order)):
            if work.node and work.correlation:
                with_number[work.node >> 32].append(work)
        self.evidence.work = [
            work if work.correlation or not work.node else
            work._replace(correlation=self.replay_by_time(work, with_number[work.node >> 32]))
            for work in self.evidence.work]
        for device, works in self.by_device.items():
            self.by_device[device] = [work for work in self.evidence.work
                                      if work.device == device]

    def replay_by_time(self, work, others):
        place = bisect.bisect_right(others, (work.start_ns, work.order),
                                    key=lambda other: (other.start_ns, other.order))
        before, after = (self.evidence.call_of(near[0].correlation) if near else None
                         for near in (others[:place][-1:], others[place:][:1]))
        true = self.evidence.by_correlation[self.evidence.replay_of(work)]
        graph_since = self.evidence.graph_since.get(work.node >> 32, 0)
        since = before.enter_ns if before else graph_since
        if before and before is after:
            found = before
        elif any(start <= work.start_ns and end >= since for start, end in self.evidence.pauses):
            return 0
        elif not after or after.enter_ns > work.start_ns:
            found = before
        elif not before:
            found = after
        else:
            if self.owner_of(before, work.node) == self.owner_of(after, work.node):
                return before.correlation
            return 0
        if found and not self.evidence.spoilt:  # otherwise a whole replay may be missing
            facts.expect(found is true, "by time, work is of another replay:", work, vars(true))
        return found.correlation if found else 0

    def owner_of(self, call, node):
        nest = tuple((event.domain, event.text, event.path)
                     for event in self.nest(call.thread, call.enter_ns))
        return (call.stack, call.thread, call.api, nest,
                (call.correlation, node) not in self.evidence.unknown and
                self.evidence.makers[call.correlation, node])

    # Ranges.

    def nests_of(self, tid):
        """[(time, open ranges)] of a thread. A range belongs to the thread that opened it, and is
        nested in the ranges that were open then.
        """
        keys = {event.key for event in self.evidence.events
                if event.kind == "start" and event.thread == tid}
        events = [event for event in self.evidence.events
                  if (event.key in keys if event.kind == "end" else event.thread == tid)]
        events.sort(key=lambda event: (event.before_ns, event.place))
        nests, is_open = [(0, ())], []
        for event in events:
            if event.kind in ("push", "start"):
                is_open.append(event)
            elif event.kind in ("pop", "end"):
                fitting = [other for other in is_open
                           if (other.kind == "start" and other.key == event.key
                               if event.kind == "end" else
                               other.kind == "push" and other.domain == event.domain)]
                if fitting:  # otherwise the pop is unmatched
                    is_open.remove(fitting[-1])
            nests.append((event.before_ns, tuple(is_open)))
        return nests

    def nest(self, tid, time_ns):
        nests = self.nests[tid]
        return nests[bisect.bisect_right(nests, time_ns, key=lambda row: row[0]) - 1][1]

    def opened_with_cuda(self, event):
        """Before CUDA starts, ranges have no stack."""
        return event.before_ns > self.cuda_since_ns

    def with_ranges(self, path, nest, nvtx):
        """Inserts ranges into a path: each below the frames that its stack and the call's share,
        and above ranges opened later.
        """
        if nvtx == "off":
            return path
        labels = [f"[NVTX {range_name(event)}]" for event in nest]
        if nvtx == "roots":
            return (*labels, *path)
        depths, limit = [], len(path)
        for event in reversed(nest):
            opener = event.path if self.opened_with_cuda(event) else ()
            common = 0
            while common < min(len(opener), len(path)) and opener[common] == path[common]:
                common += 1
            limit = min(limit, common)
            depths.insert(0, limit)
        placed = []
        for depth in range(len(path) + 1):
            placed += [label for label, place in zip(labels, depths) if place == depth]
            placed += path[depth:depth + 1]
        return tuple(placed)

    # Paths.

    def call_path(self, call, nvtx):
        nest = self.nest(call.thread, call.enter_ns)
        return (*self.with_ranges(call.path, nest, nvtx), call.shown_api)

    def stack_path(self, correlation, nvtx):
        call = self.evidence.call_of(correlation)
        return self.call_path(call, nvtx) if call else ("[unattributed]",)

    def is_unknown(self, work):
        """True if an update changed this node of a child graph or body before its launch.

        If the launch is unknown: before it ran. Such nodes are not reported.
        """
        return (self.evidence.replay_of(work), work.node) in self.evidence.unknown or (
            not work.correlation and work.node not in self.announced and any(
                executable == work.node >> 32 and
                self.evidence.made_at[tid, number] <= work.start_ns
                for tid, number, executable, _ in self.evidence.updates))

    def maker_path(self, work, nvtx):
        """The path of the call that created the node, including nodes of child graphs, which are
        not reported."""
        replay = self.evidence.replay_of(work)
        maker = self.evidence.calls[self.evidence.makers[replay, work.node]]
        nest = self.maker_nest(maker.thread, maker.number)
        path = self.with_ranges(maker.path, nest, nvtx)
        return (*path, maker.shown_api) if self.maker_kind(maker, nest) in self.known else path

    def maker_nest(self, tid, number):
        return self.nest(tid, self.evidence.made_at[tid, number])

    def maker_kind(self, maker, nest):
        """Calls with one stack are calls of one function: if one is recorded, all are known."""
        return (self.evidence.made_stack[maker.thread, maker.number],
                tuple((event.domain, event.text, event.path) for event in nest))

    def owner_path(self, work, settings):
        """The path without its last frame, the work itself."""
        replay = ("[device-launched]",)
        if work.correlation:
            replay = self.stack_path(work.correlation, settings.nvtx)
        if not work.node or is_whole(work) or settings.graph_stacks == "replay":
            return replay
        if self.is_unknown(work):
            return (*replay, "[graph]")
        maker = self.maker_path(work, settings.nvtx)
        if settings.graph_stacks == "capture":
            return maker
        return (*replay, "[graph]", *maker)

    def stream_name(self, work):
        context = f"context {work.context} " if work.device in self.has_contexts else ""
        return f"[GPU{work.device} {context}stream {work.stream}]"

    def thread_name(self, call):
        if not call:
            return "[unknown thread]"
        return f"{self.evidence.threads[call.thread]} ({call.thread})"

    def root(self, by, call, work=None, memory=None):
        if by == "thread":
            return (self.thread_name(call),)
        if by == "process":
            return (self.process_label,)
        if by == "device" and memory and memory.memory in HOST_MEMORY:
            return ("[host]",)
        if by == "device":
            return (f"[GPU{(work or memory).device}]",)
        if by == "stream":
            return (self.stream_name(work),)
        return ()

    def work_line(self, settings, work, last):
        call = self.evidence.call_of(work.correlation)
        return ";".join((*self.root(settings.by, call, work=work),
                         *self.owner_path(work, settings), last))

    # Weights.

    def gpu_time(self, settings):
        sums = collections.Counter()
        for work in self.evidence.work:
            sums[self.work_line(settings, work, leaf(work))] += work.end_ns - work.start_ns
        return sums

    def count(self, settings):
        return collections.Counter(self.work_line(settings, work, leaf(work))
                                   for work in self.evidence.work)

    def gpu_exclusive(self, settings):
        sums = collections.Counter()
        for works in self.by_device.values():
            for work, share_ns in exclusive_shares(works):
                sums[self.work_line(settings, work, leaf(work))] += share_ns
        return sums

    def cpu_wait(self, settings):
        sums = collections.Counter()
        for call in self.evidence.calls.values():
            if call.is_recorded and wait_kind(call):
                path = self.root(settings.by, call) + self.call_path(call, settings.nvtx)
                sums[";".join(path)] += call.exit_ns - call.enter_ns
        return sums

    def gpu_idle(self, settings):
        sums = collections.Counter()
        for works in self.by_device.values():
            busy_until, last = None, None
            for work in sorted(works, key=lambda work: (work.start_ns, work.order)):
                if last and work.start_ns > busy_until and not self.is_blind(
                        busy_until, work.start_ns):
                    for label, length_ns, call in self.gap(busy_until, last, work):
                        sums[self.idle_line(settings, work, label, call)] += length_ns
                if not last or work.end_ns > busy_until:
                    busy_until, last = work.end_ns, work
        return sums

    def idle_line(self, settings, work, label, call):
        if not call:
            return self.work_line(settings, work, label)
        return ";".join((*self.root(settings.by, call, work=work),
                         *self.call_path(call, settings.nvtx), label))

    def is_blind(self, start, end):
        """True if recording was paused in that time."""
        return any(since <= end and until >= start for since, until in self.evidence.pauses)

    def gap(self, start, last, work):
        """(label, ns, call) of the parts of an idle gap from start to the start of work. The call
        is None if the part belongs to the work.
        """
        call = self.evidence.call_of(work.correlation)
        if not call:
            return [("[idle: call unknown]", work.start_ns - start, None)]
        if call.enter_ns <= start:
            if last.kind == "copy":
                label = "[idle: waiting on a copy]"
            elif (last.context, last.stream) != (work.context, work.stream):
                label = "[idle: waiting for another stream]"
            else:
                label = "[idle: submitted, not started]"
            return [(label, work.start_ns - start, None)]
        return self.late_gap(start, call, work)

    def late_gap(self, start, call, work):
        """The states of the thread, step by step, until it entered the call."""
        labels = {None: "[idle: launch late (CPU busy)]", "sync": "[idle: CPU blocked in sync]",
                  "copy": "[idle: waiting on a copy]",
                  "memory": "[idle: allocating memory]", "code": "[idle: loading code]"}
        calls = self.recorded[call.thread]
        now, pieces, longest = start, [], {}
        place = bisect.bisect_right(calls, start, key=lambda other: other.exit_ns)
        for other in calls[place:calls.index(call) + 1]:
            if other.enter_ns > now:
                own_ns = other.enter_ns - now
                pieces.append(("[idle: nothing submitted]" if own_ns > OWN_CODE_MAX_NS
                               else labels[None], own_ns))
                now = other.enter_ns
            if other is not call:
                label, length_ns = labels[thread_state(other)], other.exit_ns - now
                pieces.append((label, length_ns))
                if label != labels[None] and (
                        label not in longest or length_ns > longest[label][0]):
                    longest[label] = length_ns, other
                now = other.exit_ns
        facts.expect(now == call.enter_ns, "gap", start, vars(call), pieces)
        pieces.append((labels[None], work.start_ns - now))
        return [(label, length_ns, longest.get(label, (0, None))[1])
                for label, length_ns in pieces]

    # Memory.

    def memory_line(self, settings, memory):
        call = self.evidence.call_of(memory.correlation)
        path = self.stack_path(memory.correlation, settings.nvtx)
        if not call and any(since <= memory.time_ns <= until
                            for since, until in self.evidence.pauses):
            path = ("[recording paused]",)
        return ";".join((*self.root(settings.by, call, memory=memory), *path,
                         f"[Memory {MEMORY_KINDS[memory.memory]}]"))

    @staticmethod
    def pool(memory):
        return "host" if memory.memory in HOST_MEMORY else memory.device

    def held(self, settings):
        """(operation, pool, lines and the bytes they own) after each change of a pool."""
        live, pools = {}, collections.defaultdict(collections.Counter)
        for memory in self.evidence.memory:
            pool = self.pool(memory)
            if memory.address in live:  # freed, or its owner was freed unseen
                held_in, line, size = live.pop(memory.address)
                pools[held_in][line] -= size
                pool = held_in if memory.is_free else pool
                if held_in != pool:
                    yield memory, held_in, pools[held_in]
            if not memory.is_free:
                line = self.memory_line(settings, memory)
                live[memory.address] = pool, line, memory.bytes
                pools[pool][line] += memory.bytes
            yield memory, pool, pools[pool]

    def alloc_bytes(self, settings):
        sums = collections.Counter()
        for memory in self.evidence.memory:
            if not memory.is_free:
                sums[self.memory_line(settings, memory)] += memory.bytes
        return sums

    def peak_bytes(self, settings):
        peaks = {}
        for _, pool, lines in self.held(settings):
            if pool not in peaks or sum(lines.values()) > sum(peaks[pool].values()):
                peaks[pool] = lines.copy()
        return sum(peaks.values(), collections.Counter())

    def leaked_bytes(self, settings):
        # The final pools: an allocation in another pool may take over an address.
        pools = {pool: lines for _, pool, lines in self.held(settings)}
        return sum(pools.values(), collections.Counter())

    WEIGHTS = {
        "gpu-time": gpu_time, "count": count, "gpu-exclusive": gpu_exclusive,
        "cpu-wait": cpu_wait, "gpu-idle": gpu_idle, "alloc-bytes": alloc_bytes,
        "peak-bytes": peak_bytes, "leaked-bytes": leaked_bytes,
    }

    def folded(self, settings):
        """The path and weight of every line. Only work may have lines of weight 0."""
        sums = self.WEIGHTS[settings.weight](self, settings)
        return {line: weight for line, weight in sums.items()
                if weight or settings.weight == "gpu-time"}
