# SPDX-License-Identifier: Apache-2.0
"""Checks Perfetto traces.

Reads them with Google's protobuf for Python and assembles them like Perfetto's trace processor.
Compares them with the rows of the log and the names of the Chrome trace.
"""

import collections
import decimal
import json
import sys

from reference import expect, expect_same

NAME = "trace.pftrace"
ARGUMENTS = ("--perfetto", NAME)
BOOT_CLOCK, SEQUENCE_CLOCK = 6, 64
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
STATES = ("running", "kernel", "I/O", "lock", "sleep", "page fault", "GIL", "process", "blocked",
          "ready", "unknown")

Slice = collections.namedtuple("Slice", "track name start duration flows stack weight annotations")


class Sequence:
    def __init__(self):
        self.now = self.clock = None
        self.track = None
        self.interned = collections.defaultdict(dict)


class Reading:
    """The content of a trace: tracks, slices, instants, counters."""

    def __init__(self, trace):
        self.tracks, self.counters = {}, collections.defaultdict(list)
        self.sequences = collections.defaultdict(Sequence)
        self.events = []
        for packet in trace.packet:
            self.read(packet)
        self.events.sort(key=lambda event: event[0])
        self.nest()

    def read(self, packet):
        if packet.HasField("track_descriptor"):
            uuid = packet.track_descriptor.uuid
            expect(uuid, "a track without a number")
            self.tracks[uuid] = packet.track_descriptor
            return
        expect(packet.trusted_packet_sequence_id, "a packet of no sequence")
        sequence = self.sequences[packet.trusted_packet_sequence_id]
        if packet.sequence_flags & 1:
            expect(sequence.track is None, "a sequence begins twice")
            sequence.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
            expect(packet.trace_packet_defaults.timestamp_clock_id == SEQUENCE_CLOCK, "clock")
        for clock in packet.clock_snapshot.clocks:
            if clock.clock_id == SEQUENCE_CLOCK:
                expect(clock.is_incremental, "the clock of a sequence")
                sequence.now = clock.timestamp
        for field, rows in packet.interned_data.ListFields():
            for row in rows:
                table = sequence.interned[field.name]
                expect(row.iid and row.iid not in table, "interned twice:", field.name, row)
                table[row.iid] = row
        if packet.HasField("track_event"):
            self.read_event(sequence, packet)

    def read_event(self, sequence, packet):
        event = packet.track_event
        time = packet.timestamp
        if not packet.timestamp_clock_id:
            sequence.now += time
            time = sequence.now
        else:
            expect(packet.timestamp_clock_id == BOOT_CLOCK, "unknown clock")
        track = event.track_uuid or sequence.track
        expect(track in self.tracks, "an event on no track")
        if event.type == COUNTER:
            self.counters[track].append((time, event.counter_value))
            return
        name = sequence.interned["event_names"][event.name_iid].name if event.name_iid else None
        expect(event.type == END or name is not None, "an event has no name")
        annotations = {}
        for annotation in event.debug_annotations:
            key = annotation.name or \
                sequence.interned["debug_annotation_names"][annotation.name_iid].name
            if annotation.string_value_iid:
                values = sequence.interned["debug_annotation_string_values"]
                annotations[key] = values[annotation.string_value_iid].str.decode()
            else:
                annotations[key] = next(value for field, value in annotation.ListFields()
                                        if not field.name.startswith("name"))
        flows = list(event.flow_ids) + list(event.terminating_flow_ids)
        stack = self.stack(sequence, event.callstack_iid) if event.callstack_iid else ()
        self.events.append((time, track, event.type, name, flows, stack, event.callstack_weight,
                            annotations))

    @staticmethod
    def stack(sequence, iid):
        names = []
        for frame_id in sequence.interned["callstacks"][iid].frame_ids:
            frame = sequence.interned["frames"][frame_id]
            expect(frame.mapping_id in sequence.interned["mappings"], "a frame in no mapping")
            names.append(sequence.interned["function_names"][frame.function_name_id].str.decode())
        return tuple(names)

    def nest(self):
        self.slices, self.instants = [], []
        open_slices = collections.defaultdict(list)
        for time, track, kind, name, *rest in self.events:
            if kind == INSTANT:
                self.instants.append((track, name, time, rest[-1]))
            elif kind == BEGIN:
                open_slices[track].append((name, time, rest))
            elif open_slices[track]:
                name, start, rest = open_slices[track].pop()
                self.slices.append(Slice(track, name, start, time - start, *rest))

    def is_of_device(self, track):
        parent = self.tracks.get(self.tracks[track].parent_uuid)
        return parent is not None and parent.name.startswith("GPU ")

    def is_sampled(self, track):
        return self.tracks[track].name == "CPU samples"

    def is_nvtx(self, track):
        return self.tracks[track].name.startswith("NVTX") or track >= 1 << 62


def check(reference, folder, args):
    sys.path.insert(0, str(args.proto))
    import perfetto_trace_pb2

    with open(folder / NAME, "rb") as file:
        trace = perfetto_trace_pb2.Trace.FromString(file.read())
    found = Reading(trace)
    work = [s for s in found.slices if found.is_of_device(s.track)]
    calls = [s for s in found.slices if not found.is_of_device(s.track) and
             not found.is_nvtx(s.track) and not found.is_sampled(s.track)]
    expect(sum(s.duration for s in work) == reference.work_ns() == reference.total(),
           "work:", sum(s.duration for s in work), "ns, wanted", reference.work_ns())
    shift = shift_of(calls, reference)
    check_rows(work, reference, ("KERNEL", "COPY", "SET"), "start_ns", shift)
    check_rows(calls, reference, ("CALL",), "enter_ns", shift)
    check_counters(found, reference, shift)
    check_stacks(calls, work, reference)
    flows = check_flows(calls, work)
    chrome = json.loads(reference.run("--chrome", "-"), parse_float=decimal.Decimal)
    check_names(work, [e for e in chrome["traceEvents"] if e.get("cat") in
                       ("kernel", "memcpy", "memset")])
    check_names(calls, [e for e in chrome["traceEvents"] if e.get("cat") == "api"])
    check_nvtx(found, chrome["traceEvents"])
    check_samples(found, chrome["traceEvents"], reference)
    # Chrome's arrows also lead to work of APIs that usually have none.
    arrows = sum(e["ph"] == "f" for e in chrome["traceEvents"])
    odd = any(e["name"] == "[unknown API]" for e in chrome["traceEvents"] if e.get("cat") == "api")
    expect(flows == arrows or (odd and flows < arrows), flows, "flows, wanted", arrows)


def shift_of(calls, reference):
    """A trace uses one clock for all hosts. None if there are several, with different shifts."""
    if reference.traced_count > 1 or not calls:
        return None
    return (min(call.start for call in calls) -
            min(int(row["enter_ns"]) for row in reference.traced_rows["CALL"]))


def check_rows(slices, reference, kinds, start, shift):
    known = shift is not None
    found = collections.Counter((s.start - shift if known else 0, s.duration) for s in slices)
    wanted = collections.Counter((int(row[start]) if known else 0, int(row["duration_ns"]))
                                 for rows in reference.rows for kind in kinds
                                 for row in rows[kind])
    expect_same(found, wanted, f"times of {kinds}")


def check_counters(found, reference, shift):
    values = [value for track in found.counters.values() for value in track]
    expect(all(found.tracks[track].counter.unit == 3 for track in found.counters), "no counter")
    wanted = collections.Counter(time if shift is not None else 0 for rows in reference.rows
                                 for time in memory_changes(rows["MEMORY"]))
    times = collections.Counter(time - shift if shift is not None else 0 for time, _ in values)
    expect_same(times, wanted, "allocations and frees")
    peak = sum(max(value for _, value in track) for track in found.counters.values())
    expect(peak == reference.total("peak-bytes"), "peak", peak)


def memory_changes(rows):
    """Yields each time at which the memory in use on a device or on the host changes."""
    pools = {}
    for row in sorted(rows, key=lambda row: int(row["time_ns"])):
        if row["operation"] not in (1, 2):
            continue
        yield int(row["time_ns"])
        pool = "host" if row["memory"] in (1, 2) else row["device"]
        earlier = pools.pop(row["address"], pool)
        if row["operation"] == 1:
            pools[row["address"]] = pool
            # The free of earlier memory at this address is lost, so both change.
            if earlier != pool:
                yield int(row["time_ns"])


def check_stacks(calls, work, reference):
    """Every call path of work begins with the path of a call, and weighs as much as its work."""
    stacks = {s.stack for s in calls}
    found, wanted = collections.Counter(), collections.Counter()
    for path, ns in reference.folded("gpu-time", "--nvtx", "off", "--graph-stacks",
                                     "replay").items():
        if "[unattributed]" in path or path[0] == "[device-launched]":
            continue  # no call is known
        expect(path[:-2] in stacks, "no call with the stack", path)
        wanted[path[:-2]] += ns
    for s in work:
        expect(s.weight == (s.duration if s.stack else 0), "the weight of a stack:", s)
        found[s.stack] += s.weight
    del found[()], wanted[()]
    expect_same(+found, +wanted, "GPU time by stack")


def check_flows(calls, work):
    """The call of each arrow precedes its work. Returns the number of arrows."""
    starts = {flow: call.start for call in calls for flow in call.flows}
    led = [(s, flow) for s in work for flow in s.flows]
    for s, flow in led:
        expect(flow in starts, "a flow from nowhere:", s)
    return len(led)


def check_names(slices, events):
    found = collections.Counter((s.name, s.duration) for s in slices)
    wanted = collections.Counter((e["name"], int(e["dur"] * 1000)) for e in events)
    expect_same(found, wanted, "names")


def check_nvtx(found, events):
    ranges = collections.Counter((s.name, s.duration, *attributes(s.annotations))
                                 for s in found.slices
                                 if found.is_nvtx(s.track) and s.track < 1 << 62)
    wanted = collections.Counter((e["name"], int(e["dur"] * 1000), *attributes(e["args"]))
                                 for e in events if e.get("cat") == "nvtx" and e["ph"] == "X")
    expect_same(ranges, wanted, "NVTX ranges")
    expect_same(collections.Counter((name, *attributes(annotations))
                                    for _, name, _, annotations in found.instants),
                collections.Counter((e["name"], *attributes(e["args"])) for e in events
                                    if e["ph"] == "i"), "marks")
    started = [s for s in found.slices if s.track >= 1 << 62]
    ends = sum(e["ph"] == "e" for e in events)
    expect(len(started) == ends, len(started), "started ranges, wanted", ends)


def attributes(values):
    """What a program gives to a range, besides its name and values by name."""
    payload = values.get("payload")
    return values.get("category"), values.get("argb"), payload and float(payload)


def check_samples(found, events, reference):
    """Both timelines have the same slices. They nest, and cover each sample of the log."""
    slices = [s for s in found.slices if found.is_sampled(s.track)]
    expect_same(collections.Counter((s.name, s.duration) for s in slices),
                collections.Counter((e["name"], int(e["dur"] * 1000)) for e in events
                                    if e.get("cat") == "cpu"), "samples")
    for track in {s.track for s in slices}:
        check_nesting([s for s in slices if s.track == track])
        expect(found.tracks[track].parent_uuid in found.tracks, "samples of no thread")
    innermost = [s for s in slices if "state" in s.annotations]
    rows = [row for log in reference.rows for row in log["CPU_SAMPLE"]]
    expect(len(innermost) <= len(rows) and bool(innermost) == bool(rows), "samples")
    for state in {s.annotations["state"] for s in innermost}:
        expect(state.split(",")[0] in STATES, "unknown state", state)
    shown = sorted(e["args"]["state"] for e in events if "state" in e.get("args", {}))
    expect(shown == sorted(s.annotations["state"].split(",")[0] for s in innermost), "states")


def check_nesting(slices):
    ends = []
    for s in sorted(slices, key=lambda s: (s.start, -s.duration)):
        while ends and ends[-1] <= s.start:
            ends.pop()
        expect(not ends or s.start + s.duration <= ends[-1], "slices overlap:", s)
        ends.append(s.start + s.duration)
