# SPDX-License-Identifier: Apache-2.0
"""Compares the Chrome trace with the evidence: every span, arrow, counter and range, to the ns."""

import collections
import decimal
import json

import evidence as facts
import model

CATEGORIES = {"kernel": "kernel", "copy": "memcpy", "set": "memset"}


def title(work):
    if work.kind == "kernel":
        return work.name
    return f"Memcpy {model.COPY_KINDS[work.copy.kind]}" if work.kind == "copy" else "Memset"


class Checker:
    def __init__(self, evidence, reference, text):
        self.evidence, self.reference = evidence, reference
        trace = json.loads(text, parse_float=decimal.Decimal)
        self.frames = trace["stackFrames"]
        self.events = collections.defaultdict(list)
        processes = {}
        for event in trace["traceEvents"]:
            if event["name"] == "process_name":
                processes[event["pid"]] = event["args"]["name"]
            self.events[event["ph"], event.get("cat")].append(event)
        self.gpus = {pid: int(name.split()[1]) for pid, name in processes.items()
                     if name.startswith("GPU ")}
        self.calls = {call.correlation: call for call in evidence.calls.values()
                      if call.is_recorded}
        # The trace begins at 0, which corresponds to an unknown time of the log.
        first = next(iter(self.events["X", "api"]), None)
        self.origin_ns = evidence.start_ns
        if first:
            self.origin_ns = (self.calls[first["args"]["correlation"]].enter_ns -
                              int(first["ts"] * 1000))

    def at(self, event):
        return int(event["ts"] * 1000) + self.origin_ns

    def span(self, event):
        return self.at(event), self.at(event) + int(event["dur"] * 1000)

    def stack(self, event):
        path, frame = [], self.frames.get(str(event.get("sf")))
        while frame:
            path.insert(0, frame["name"])
            frame = self.frames.get(str(frame.get("parent")))
        return tuple(name for name in path if not facts.is_sanitizers(name))

    def api(self):
        found = [(event["name"], event["tid"], *self.span(event), event["args"]["correlation"],
                  self.stack(event)[-len(self.calls[event["args"]["correlation"]].path):])
                 for event in self.events["X", "api"]]
        wanted = [(call.shown_api, call.thread, call.enter_ns, call.exit_ns, call.correlation,
                   call.path) for call in self.calls.values()]
        facts.expect_same(found, wanted, "timeline: API calls")

    def work(self):
        found = []
        for kind, category in CATEGORIES.items():
            for event in self.events["X", category]:
                args = event["args"]
                found.append((kind, event["name"], self.gpus[event["pid"]], args["device"],
                              args["context"], args["stream"], args["correlation"],
                              *self.span(event), args.get("bytes", 0)))
        wanted = [(work.kind, title(work), work.device, work.device, work.context, work.stream,
                   work.correlation, work.start_ns, work.end_ns, work.bytes)
                  for work in self.evidence.work]
        facts.expect_same(found, wanted, "timeline: GPU work")

    def arrows(self):
        starts = {event["id"]: event for event in self.events["s", "launch"]}
        ends = {event["id"]: event for event in self.events["f", "launch"]}
        facts.expect(starts.keys() == ends.keys() and len(starts) ==
                     len(self.events["s", "launch"]), "timeline: arrows do not pair up")
        found = [(starts[arrow]["tid"], self.at(starts[arrow]), self.gpus[end["pid"]],
                  self.at(end)) for arrow, end in ends.items()]
        wanted = [(call.thread, call.enter_ns, work.device, work.start_ns)
                  for work in self.evidence.work
                  for call in [self.evidence.call_of(work.correlation)] if call]
        facts.expect_same(found, wanted, "timeline: arrows")

    def memory(self):
        found = [(self.gpus.get(event["pid"], "host"), self.at(event), event["args"]["bytes"])
                 for event in self.events["C", "memory"]]
        wanted = [(pool, memory.time_ns, sum(lines.values()))
                  for memory, pool, lines in self.reference.held(model.Settings())]
        facts.expect_same(found, wanted, "timeline: allocated memory")

    @staticmethod
    def key(event):
        pid, key = event["id"].split(".")
        facts.expect(int(pid) == event["pid"], "timeline: range of another process", event)
        return int(key)

    def ranges(self):
        """Pushes become spans, or begins without an end. Starts and ends become pairs. If two
        threads end a range, either end is accepted.
        """
        ended = collections.Counter(event.key for event in self.evidence.events
                                    if event.kind == "end")
        wanted, pushed, started = [], collections.defaultdict(list), {}
        for event in sorted(self.evidence.events, key=lambda event: event.before_ns):
            name, now = model.range_name(event), event.before_ns
            stack = pushed[event.thread, event.domain]
            if event.kind == "push":
                stack.append((name, event.thread, now))
            elif event.kind == "pop" and stack:
                name, _, began = stack.pop()  # ranges that cross others are on separate tracks
                wanted.append(("X", name, began, now))
            elif event.kind == "start" and ended[event.key] < 2:
                started[event.key] = (name, now)
            elif event.kind == "end" and event.key in started:
                wanted.append(("be", *started.pop(event.key), now))
            elif event.kind == "mark":
                wanted.append(("i", name, event.thread, now))
        wanted += [("B", *push) for stack in pushed.values() for push in stack]
        wanted += [("b", *start) for start in started.values()]

        found = [("X", event["name"], *self.span(event)) for event in self.events["X", "nvtx"]]
        found += [(letter, event["name"], event["tid"], self.at(event))
                  for letter in "Bi" for event in self.events[letter, "nvtx"]]
        ends = {self.key(event): event for event in self.events["e", "nvtx"]}
        for event in self.events["b", "nvtx"]:
            if ended[self.key(event)] > 1:
                ends.pop(self.key(event), None)
                continue
            end = ends.pop(self.key(event), None)
            found.append(("be", event["name"], self.at(event), self.at(end)) if end else
                         ("b", event["name"], self.at(event)))
        facts.expect(not ends, "timeline: ranges end that do not begin")
        facts.expect_same(found, wanted, "timeline: NVTX")

    def all(self):
        return [self.api, self.work, self.arrows, self.memory, self.ranges]
