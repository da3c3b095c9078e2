# SPDX-License-Identifier: Apache-2.0
"""Collects evidence about a run from three sources:
- The program's ledger has the calls and their paths.
- The simulator's truth has the work that really ran.
- The independent dumper has the content of the log.

The ledger and the truth list the calls of each thread in order, so call n of one is call n of
the other. Each piece of work thus has a call path without unwinding, times or the log.

check_log() compares the log with that. Later checks take from the log only the times of calls
and NVTX events, which no other source has to the nanosecond.
"""

import collections
import json
import re
import subprocess

OTHER, LAUNCH, GRAPH_LAUNCH, COPY, SET, ALLOC, FREE, SYNC, EVENT, MODULE, GRAPH, LIFE = range(12)

# The calls that the tracer records at each level of XTRACE_API, and their class.
CLASSES = {
    "cuLaunchKernel": LAUNCH, "cuLaunchKernelEx": LAUNCH, "cuLaunchCooperativeKernel": LAUNCH,
    "cuGraphLaunch": GRAPH_LAUNCH,
    "cuMemcpy": COPY, "cuMemcpyAsync": COPY, "cuMemcpyPeer": COPY, "cuMemcpyPeerAsync": COPY,
    "cuMemcpyHtoD": COPY, "cuMemcpyDtoH": COPY, "cuMemcpyDtoD": COPY,
    "cuMemcpyHtoDAsync": COPY, "cuMemcpyDtoHAsync": COPY, "cuMemcpyDtoDAsync": COPY,
    "cuMemsetD8": SET, "cuMemsetD16": SET, "cuMemsetD32": SET,
    "cuMemsetD8Async": SET, "cuMemsetD16Async": SET, "cuMemsetD32Async": SET,
    "cuMemAlloc": ALLOC, "cuMemAllocManaged": ALLOC, "cuMemAllocAsync": ALLOC,
    "cuMemHostAlloc": ALLOC, "cuMemAllocHost": ALLOC,
    "cuMemFree": FREE, "cuMemFreeAsync": FREE, "cuMemFreeHost": FREE,
    "cuCtxSynchronize": SYNC, "cuStreamSynchronize": SYNC, "cuEventSynchronize": SYNC,
    "cuEventRecord": EVENT, "cuStreamWaitEvent": EVENT,
    "cuModuleLoadData": MODULE, "cuModuleUnload": MODULE,
    "cuGraphCreate": GRAPH, "cuGraphAddKernelNode": GRAPH, "cuGraphAddMemcpyNode": GRAPH,
    "cuGraphAddMemsetNode": GRAPH, "cuGraphAddHostNode": GRAPH, "cuGraphAddEmptyNode": GRAPH,
    "cuGraphAddChildGraphNode": GRAPH, "cuGraphAddDependencies": GRAPH, "cuGraphClone": GRAPH,
    "cuGraphInstantiateWithFlags": GRAPH, "cuGraphExecUpdate": GRAPH,
    "cuGraphKernelNodeSetParams": GRAPH, "cuGraphMemcpyNodeSetParams": GRAPH,
    "cuGraphMemsetNodeSetParams": GRAPH, "cuGraphExecMemcpyNodeSetParams": GRAPH,
    "cuGraphExecMemsetNodeSetParams": GRAPH, "cuGraphExecKernelNodeSetParams": GRAPH,
    "cuGraphConditionalHandleCreate": GRAPH, "cuGraphAddNode": GRAPH,
    "cuGraphExecDestroy": GRAPH, "cuGraphDestroy": GRAPH,
    "cuStreamBeginCapture": GRAPH, "cuStreamEndCapture": GRAPH,
    "cuCtxCreate": LIFE, "cuDevicePrimaryCtxRetain": LIFE, "cuStreamCreate": LIFE,
    "cuStreamDestroy": LIFE, "cuEventCreate": LIFE, "cuLaunchHostFunc": OTHER,
}
NEVER_RECORDED = {
    "cuInit", "cuDeviceGetCount", "cuCtxSetCurrent", "cuModuleGetFunction", "cuStreamQuery",
    "cuProfilerStart", "cuProfilerStop", "cuEventQuery", "cuGraphGetNodes", "cuGraphNodeGetType",
}
LEVELS = {
    "launch": {LAUNCH, GRAPH_LAUNCH},
    "work": {LAUNCH, GRAPH_LAUNCH, COPY, SET, ALLOC, FREE, SYNC, MODULE},
    "all": set(range(12)),
}


# Accounts of records that CUPTI corrupted.
SPOILT = ("kernels.invalid", "copies.invalid", "sets.invalid", "cupti.dropped")


class Mismatch(Exception):
    """Two sources disagree."""


def expect(condition, *what):
    if not condition:
        raise Mismatch(" ".join(str(word) for word in what))


def expect_same(found, wanted, what):
    """Compares two Counters or lists. Prints a few of the differences."""
    found, wanted = collections.Counter(found), collections.Counter(wanted)
    if found == wanted:
        return
    lines = [f"{what}:"]
    for name, difference in (("missing", wanted - found), ("not wanted", found - wanted)):
        lines += [f"  {name} {count} of {row}" for row, count in sorted(
            difference.items(), key=str)[:5]]
    raise Mismatch("\n".join(lines))


def is_sanitizers(frame):
    """Sanitizers start threads through their own functions."""
    return re.fullmatch(r"(__)?[at]san_thread_start(_func)?", frame)


def plain_api(name):
    """The name of a function without its version suffix."""
    while True:
        shorter = re.sub(r"(_ptsz|_ptds|_v\d+)$", "", name)
        if shorter == name:
            return name
        name = shorter


class Call:
    """A driver call. After check_log(), enter_ns and exit_ns are the times in the log."""

    def __init__(self, thread, number, api, result, path, place):
        self.thread, self.number, self.result = thread, number, result
        self.api, self.path, self.place = api, path, place
        self.shown_api = plain_api(api)
        expect(self.shown_api in CLASSES or self.shown_api in NEVER_RECORDED, "unknown API", api)
        self.api_class = CLASSES.get(self.shown_api)
        self.correlation = 0
        self.times = None
        self.enter_ns = self.exit_ns = None
        self.is_recorded = False


# An NVTX event. place: its position among the events and calls of its thread.
Range = collections.namedtuple("Range",
                               "kind thread before_ns after_ns domain key text path place")
Work = collections.namedtuple("Work", "kind correlation device context stream start_ns end_ns "
                                      "node name bytes copy order")
Copy = collections.namedtuple("Copy", "kind source destination is_async from_device to_device")
Memory = collections.namedtuple("Memory", "is_free thread number correlation device context "
                                          "stream time_ns address bytes memory")


CHANGED = 0xffffffff  # type of a changed node
COPY_NODE = 1  # type of a copy node
WHOLE = 0xffffffff  # node of a graph that is recorded as a whole
PEER = 10  # kind of a copy between devices


# How the program is run. forces_nodes: XTRACE_GRAPH_DETAIL=node. reuses_ids: ids of graphs recur.
Mode = collections.namedtuple("Mode", "device_count follows_profiler forces_nodes reuses_ids "
                                      "without_graph_copies")


class Evidence:
    def __init__(self, ledger_path, truth_path, level, mode):
        self.level = level
        self.mode = mode
        self.pauses = []  # (from, until), as in the log
        self.calls = {}  # by (tid, number)
        self.by_correlation = {}
        self.threads = {}  # tid: name
        self.events = []  # NVTX events
        self.work = []
        self.memory = []
        self.nodes = []  # (tid, call number, id, origin)
        self.node_types = []  # (tid, id, type) of each row in the log
        self.copy_nodes = []  # (tid, call number) that created one
        self.changes = []  # (tid, call number, node id, executable graph or 0)
        self.updates = []  # (tid, call number, executable graph, graph)
        self.unknown = set()  # nodes in nested graphs of updated graphs
        self.makers = {}  # (correlation, node): (tid, call number)
        self.by_device = {}  # (node, start): replay of work without a correlation id
        self.whole = {}  # correlation of the launch: work of a graph recorded as a whole
        self.spoilt = 0
        # (tid, call number): time and stack of the creation of its node, from the log
        self.made_at, self.made_stack = {}, {}
        self.graph_since = {}  # graph: creation of its first node
        self.read_ledger(ledger_path)
        self.read_truth(truth_path)

    def read_ledger(self, path):
        tid = number = place = None
        with open(path, encoding="utf-8") as file:
            for line in file:
                word, *rest = line.rstrip("\n").split(" ")
                if word == "thread":
                    tid, number, place = int(rest[0]), 0, 0
                    self.threads[tid] = " ".join(rest[1:])
                    continue
                place += 1
                if word == "call":
                    call_path = tuple(rest[2].split(";"))
                    self.calls[tid, number] = Call(tid, number, rest[0], int(rest[1]), call_path,
                                                   place)
                    number += 1
                else:
                    self.events.append(self.read_event(word, tid, rest, place))

    @staticmethod
    def read_event(kind, tid, rest, place):
        before, after, domain, *rest = rest
        key = int(rest.pop(0)) if kind in ("start", "end") else 0
        text, path = (rest[0], tuple(rest[1].split(";"))) if rest else ("", ())
        return Range(kind, tid, int(before), int(after), "" if domain == "-" else domain, key,
                     text, path, place)

    def read_truth(self, path):
        ended = False
        with open(path, encoding="utf-8") as file:
            for line in file:
                word, *rest = line.split()
                expect(word in TRUTH_READERS, "the truth says", line)
                ended |= word == "end"
                TRUTH_READERS[word](self, rest)
        expect(ended, "the truth is torn")
        self.put_whole_graphs()
        for call in self.calls.values():
            expect(call.times, "a call that the ground truth does not have:", vars(call))

    def read_call(self, rest):
        tid, number, correlation, api, result, *times = rest
        if int(tid) not in self.threads:
            return  # one of the tracer's threads
        call = self.calls[int(tid), int(number)]
        expect(call.api == api and call.result == int(result), "call", rest, "in the ledger is",
               vars(call))
        call.correlation, call.times = int(correlation), [int(time) for time in times]
        call.is_recorded = call.api_class in LEVELS[self.level]
        expect(call.correlation or not call.is_recorded, "a recorded call without a number", rest)
        if call.correlation:
            expect(call.correlation not in self.by_correlation, "number given twice", rest)
            self.by_correlation[call.correlation] = call

    def read_work(self, kind, rest):
        correlation, device, context, stream, start, end, node, *rest = rest
        name, size, copy = None, 0, None
        if kind == "kernel":
            name = rest[0]
        else:
            size, *numbers = map(int, rest)
            copy = Copy(*numbers) if kind == "copy" else numbers[0]
        # At level launch, the tracer asks CUPTI for kernels only.
        if kind == "kernel" or self.level != "launch":
            self.work.append(Work(kind, int(correlation), int(device), int(context), int(stream),
                                  int(start), int(end), int(node), name, size, copy, None))

    def read_graph(self, rest):
        *work, executable, _, is_recorded = map(int, rest)
        if is_recorded:
            self.whole[work[0]] = Work("kernel", *work, executable << 32 | WHOLE,
                                       "[whole CUDA graph]", 0, None, None)

    def put_whole_graphs(self):
        """Replaces the work of graphs recorded as a whole. All other work has a launch, because
        CUPTI records work that the device launches in other graphs without one.
        """
        self.work = [work for work in self.work if self.replay_of(work) not in self.whole]
        self.work += self.whole.values()
        expect(self.mode.forces_nodes or not self.by_device.keys() &
               {(work.node, work.start_ns) for work in self.work}, "device work, node by node")
        expect(not (self.mode.forces_nodes and self.whole), "graphs as a whole", self.whole)

    def read_memory(self, is_free, rest):
        if self.level != "launch":
            self.memory.append(Memory(is_free, *map(int, rest)))

    def read_node(self, rest):
        tid, number, node, origin, kind = map(int, rest)
        self.nodes.append((tid, number, node, origin))
        if kind == COPY_NODE:
            self.copy_nodes.append((tid, number))
        # A clone is reported twice: as created, then as cloned.
        self.node_types += [(tid, node, kind)] * (2 if origin else 1)

    def read_change(self, rest):
        self.changes.append(tuple(map(int, rest)))

    def read_update(self, rest):
        self.updates.append(tuple(map(int, rest)))

    def read_maker(self, rest):
        correlation, node, tid, number, is_unknown = map(int, rest)
        self.makers[correlation, node] = (tid, number)
        if is_unknown:
            self.unknown.add((correlation, node))

    def read_by_device(self, rest):
        correlation, node, start = map(int, rest)
        self.by_device[node, start] = correlation

    def replay_of(self, work):
        """The number of the call that launched it, even if its record has none."""
        return work.correlation or self.by_device.get((work.node, work.start_ns), 0)

    def call_of(self, correlation):
        """The recorded call with that number, or None."""
        call = self.by_correlation.get(correlation)
        return call if call and call.is_recorded else None


def torn(_, rest):
    raise Mismatch(f"the run ended abnormally: {rest}")


TRUTH_READERS = {
    "call": Evidence.read_call,
    "launch": lambda *_: None,
    "kernel": lambda evidence, rest: evidence.read_work("kernel", rest),
    "copy": lambda evidence, rest: evidence.read_work("copy", rest),
    "set": lambda evidence, rest: evidence.read_work("set", rest),
    "graph": Evidence.read_graph,
    "alloc": lambda evidence, rest: evidence.read_memory(False, rest),
    "free": lambda evidence, rest: evidence.read_memory(True, rest),
    "node": Evidence.read_node,
    "change": Evidence.read_change,
    "update": Evidence.read_update,
    "maker": Evidence.read_maker,
    "device": Evidence.read_by_device,
    "violation": torn,
    "lost": torn,
    "unfinished": torn,
    "unfinished_copy": torn,
    "unfinished_set": torn,
    "unfinished_graph": torn,
    "end": lambda *_: None,
}


class Log:
    """The rows of a log, from the dumper."""

    def __init__(self, dump, path):
        self.tables = collections.defaultdict(list)
        done = subprocess.run([dump, "--format", "json", path], capture_output=True, text=True,
                              check=True)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            if row.get("record") == "log":
                self.start_ns = row["start_ns"]
            if row.get("record") == "row":
                self.tables[row["kind"]].append(row)
        self.strings = {row["id"]: row["text"] for row in self.tables["STRING"]}
        self.strings[0] = ""
        self.tids = {row["id"]: row["tid"] for row in self.tables["THREAD"]}
        self.apis = {row["id"]: row for row in self.tables["API"]}
        self.streams = {row["id"]: (row["device"], row["context"], row["stream"])
                        for row in self.tables["STREAM"]}


def switches(evidence):
    """(earliest, latest, is on) of each call that paused or resumed recording."""
    for call in evidence.calls.values():
        entered, began, ended, left = call.times
        if call.api == "cuProfilerStart":
            yield ended, left, True
        elif call.api == "cuProfilerStop":
            yield entered, began, False


def may_be_on(known, first, last):
    """Possible states of recording between two times: {True}, {False} or both."""
    before = [switch for switch in known if switch[1] < first]
    latest_begin = max((switch[0] for switch in before), default=0)
    states = {switch[2] for switch in before if switch[1] >= latest_begin} or {False}
    return states | {is_on for low, high, is_on in known if high >= first and low <= last}


def leave_out_paused(evidence, log):
    """Removes events during pauses from the evidence. If threads raced, the order in the log
    decides."""
    rows = [(row["time_ns"], row["on"]) for row in log.tables["SWITCH"]]
    if not evidence.mode.follows_profiler:
        expect(not rows, "recording was paused", rows)
        return
    known = sorted(switches(evidence))
    in_log = {row["correlation"] for row in log.tables["CALL"]}
    skipped = set()
    for call in evidence.calls.values():
        if not call.is_recorded:
            continue
        states = may_be_on(known, *call.times[:2])
        call.is_recorded = call.correlation in in_log
        expect(call.is_recorded in states, "recorded or left out", vars(call))
        if not call.is_recorded:
            skipped.add(call.correlation)
    account = {row["name"]: row["value"] for row in log.tables["ACCOUNT"]}
    expect(account["calls.skipped"] == len(skipped), "left out", len(skipped), account)
    left_out = [work for work in evidence.work if work.correlation in skipped]
    expect(account["records.skipped"] == len(left_out), "records left out", len(left_out))
    evidence.work = [work for work in evidence.work if work.correlation not in skipped]
    begin, since = min(time for time, _ in rows), None
    for time, is_on in sorted(rows):
        if time not in (begin, max(rows)[0]):  # the tracer itself switches first, and maybe last
            expect(any(low <= time <= high and state == is_on for low, high, state in known),
                   "unexpected switch", time, is_on)
        if is_on and since is not None:
            evidence.pauses.append((since, time))
        since = None if is_on else time if since is None else since


def check_calls(evidence, log):
    wanted = {call.correlation: call for call in evidence.calls.values() if call.is_recorded}
    rows = collections.Counter()
    for row in log.tables["CALL"]:
        api = log.apis[row["api"]]
        rows[row["correlation"]] += 1
        call = wanted.get(row["correlation"])
        expect(call, "unexpected call in the log", row)
        expect((log.tids[row["thread"]], api["name"], api["class"], row["result"]) ==
               (call.thread, call.api, call.api_class, call.result), row, "was", vars(call))
        call.enter_ns, call.exit_ns = row["enter_ns"], row["enter_ns"] + row["duration_ns"]
        call.stack = row["stack"]
        entered, began, ended, left = call.times
        expect(entered <= call.enter_ns <= began <= ended <= call.exit_ns <= left,
               "times of", row, "were", call.times)
    expect_same(rows, wanted.keys(), "calls in the log")


def work_rows(log):
    names = {row["id"]: log.strings[row["name"]] for row in log.tables["SHAPE"]}
    copies = {row["id"]: Copy(row["copy_kind"], row["source_memory"], row["destination_memory"],
                              row["asynchronous"], row["source_device_plus_1"],
                              row["destination_device_plus_1"])
              for row in log.tables["COPY_SHAPE"]}
    rows = []
    for table, kind in (("KERNEL", "kernel"), ("COPY", "copy"), ("SET", "set")):
        for row in log.tables[table]:
            name = names[row["shape"]] if kind == "kernel" else None
            copy = {"kernel": None, "copy": copies.get(row.get("shape")),
                    "set": row.get("memory")}[kind]
            rows.append(Work(kind, row["correlation"], *log.streams[row["stream"]],
                             row["start_ns"], row["start_ns"] + row["duration_ns"],
                             row["graph_node"], name, row.get("bytes", 0), copy,
                             (row["sequence"], len(rows))))
    return rows


def check_work(evidence, log):
    """Stores the position of the work in the log, which orders work of equal times. Returns what
    is missing in the log.
    """
    rows = work_rows(log)
    found = [row._replace(order=None) for row in rows]
    missing = collections.Counter(evidence.work) - collections.Counter(found)
    expect_same(found + list(missing.elements()), evidence.work, "GPU work in the log")
    evidence.work = sorted(rows, key=lambda row: row.order)
    return missing


def loses_peer_copies(evidence):
    return bool(evidence.level != "launch" and evidence.mode.device_count > 1 and
                evidence.copy_nodes)


def lost_peer_copies(evidence, lost):
    """How many copies between devices may and must be missing: those that end, or are called,
    after the first graph got a copy node. Fails if one of the latter is in the log.
    """
    if not loses_peer_copies(evidence):
        return 0, 0
    first = min((evidence.calls[maker].times for maker in evidence.copy_nodes))
    peers = [work for work in lost.elements()
             if work.kind == "copy" and work.copy.kind == PEER and work.end_ns >= first[0]]
    late = {call.correlation for call in evidence.calls.values() if call.times[0] > first[3]}
    for work in evidence.work:
        expect(work.kind != "copy" or work.copy.kind != PEER or work.correlation not in late,
               "recorded although a graph has copy nodes:", work)
    return len(peers), sum(work.correlation in late for work in peers)


def check_memory(evidence, log):
    """Returns how many operations are missing in the log, and removes them from evidence."""
    found = [(row["correlation"], row["operation"] == 2, row["address"], row["bytes"],
              row["time_ns"], row["device"], row["memory"]) for row in log.tables["MEMORY"]]
    wanted = {row: (row.correlation, bool(row.is_free), row.address, row.bytes, row.time_ns,
                    row.device, row.memory) for row in evidence.memory}
    missing = collections.Counter(wanted.values()) - collections.Counter(found)
    expect_same(found + list(missing.elements()), wanted.values(), "memory operations in the log")
    evidence.memory = sorted((row for row in evidence.memory if wanted[row] not in missing),
                             key=lambda row: row.time_ns)
    return missing.total()


def check_nodes(evidence, log):
    """A clone is reported twice: as created, then as cloned."""
    found, rows = [], collections.defaultdict(list)
    for row in log.tables["GRAPH_NODE"]:
        found.append((log.tids[row["thread"]], row["id"], row["origin"], row["stack"] != 0))
        rows[log.tids[row["thread"]]].append(row)
    for node, time in sorted((row["id"], row["time_ns"]) for row in log.tables["GRAPH_NODE"]):
        evidence.graph_since.setdefault(node >> 32, time)
    wanted = [(tid, node, 0, True) for tid, _, node, _ in evidence.nodes]
    wanted += [(tid, node, origin, False) for tid, _, node, origin in evidence.nodes if origin]
    wanted += [(tid, node, 0, True) for tid, _, node, executable in evidence.changes
               if not executable]
    expect_same(found, wanted, "graph nodes in the log")
    expect_same([(log.tids[row["thread"]], row["id"], row["type"])
                 for row in log.tables["GRAPH_NODE"]],
                evidence.node_types + [(tid, node, CHANGED) for tid, _, node, executable in
                                       evidence.changes if not executable],
                "types of graph nodes in the log")
    # Creation times of nodes that are no clones. A call creates at most one.
    for tid, thread_rows in rows.items():
        made = [row for row, following in zip(thread_rows, thread_rows[1:] + [None])
                if not row["origin"] and not (following and following["origin"] and
                                              following["id"] == row["id"])]
        makers = sorted([(number, node) for maker, number, node, origin in evidence.nodes
                         if maker == tid and not origin] +
                        [(number, node) for maker, number, node, executable in evidence.changes
                         if maker == tid and not executable])
        expect([row["id"] for row in made] == [node for _, node in makers], "order of nodes")
        for row, (number, _) in zip(made, makers):
            evidence.made_at[tid, number] = row["time_ns"]
            evidence.made_stack[tid, number] = row["stack"]


def check_changes(evidence, log):
    """Changes of nodes of executable graphs, and updates of whole executable graphs."""
    wanted = sorted([(*change, 0) for change in evidence.changes if change[3]] +
                    [(tid, number, 0, executable, graph)
                     for tid, number, executable, graph in evidence.updates])
    rows = sorted(log.tables["GRAPH_UPDATE"],
                  key=lambda row: (log.tids[row["thread"]], row["time_ns"]))
    expect([(log.tids[row["thread"]], row["node"], row["executable_graph"], row["graph"])
            for row in rows] ==
           [(tid, node, executable, graph) for tid, _, node, executable, graph in wanted],
           "changes of nodes")
    for row, (tid, number, *_) in zip(rows, wanted):
        expect(row["stack"], "unexpected change of a node", row)
        evidence.made_at[tid, number] = row["time_ns"]
        evidence.made_stack[tid, number] = row["stack"]


RANGE_KINDS = {1: "push", 2: "pop", 3: "start", 4: "end", 5: "mark"}


def check_ranges(evidence, log):
    """Compares the ranges of each thread in order. Takes over the times from the log."""
    rows = collections.defaultdict(list)
    for row in log.tables["RANGE"]:
        rows[log.tids[row["thread"]]].append(row)
    timed = []
    for event in sorted(evidence.events, key=lambda event: (event.thread, event.place)):
        expect(rows[event.thread], "missing NVTX event:", event)
        row = rows[event.thread].pop(0)
        said = (RANGE_KINDS[row["operation"]], log.strings[row["domain"]],
                row["key"], log.strings[row["text"]])
        expect(said == (event.kind, event.domain, event.key, event.text), row, "was", event)
        expect(event.before_ns <= row["time_ns"] <= event.after_ns, row, "was", event)
        timed.append(event._replace(before_ns=row["time_ns"], after_ns=row["time_ns"]))
    expect(not any(rows.values()), "unexpected NVTX events:", rows)
    evidence.events = timed


def check_log(evidence, log, has_faults):
    """Compares the log with ledger and truth. Raises Mismatch. Records that CUPTI corrupted are
    missing in the log and counted there. They are removed from evidence.
    """
    account = {row["name"]: row["value"] for row in log.tables["ACCOUNT"]}
    for name in account:
        expect("lost" not in name or account[name] == (name == "kinds.lost.unsafe" and
                                                       loses_peer_copies(evidence)),
               "lost:", name, account[name])
    evidence.spoilt = sum(account.get(name, 0) for name in SPOILT)
    expect(has_faults or not evidence.spoilt, "spoilt:", evidence.spoilt)
    evidence.start_ns = log.start_ns
    leave_out_paused(evidence, log)
    check_calls(evidence, log)
    lost = check_work(evidence, log)
    missing = sum(lost.values()) + check_memory(evidence, log)
    may_miss, must_miss = lost_peer_copies(evidence, lost)
    expect(must_miss <= missing - evidence.spoilt <= may_miss, missing, "are missing,",
           evidence.spoilt, "are counted, and copies between devices:", must_miss, may_miss)
    check_nodes(evidence, log)
    check_changes(evidence, log)
    check_ranges(evidence, log)
