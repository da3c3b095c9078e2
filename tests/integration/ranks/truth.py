# SPDX-License-Identifier: Apache-2.0
"""What a job's truth file (truth.h) means for an analysis of its logs.

A rank waits from its own start until the last start that it depends on. If its own end is earlier,
it waits until then. In a broadcast it depends on the root only. In a reduction only the root waits.
Of ranks without a log nothing is known: they delay nobody.
"""

import json
import pathlib
import subprocess
from dataclasses import dataclass, replace

EPOCH_NS = 1_750_000_000_000_000_000  # realtime at true time 0, without offset


@dataclass(frozen=True)
class Instance:
    communicator: str
    index: int
    operation: str
    bytes: int
    step: int
    ranks: tuple
    enter_ns: tuple
    start_ns: tuple
    end_ns: tuple

    def of(self, ranks):
        """The part that these ranks took in it."""
        kept = [at for at, rank in enumerate(self.ranks) if rank in ranks]
        return replace(self, **{key: tuple(getattr(self, key)[at] for at in kept)
                                for key in ("ranks", "enter_ns", "start_ns", "end_ns")})

    def waits_ns(self):
        last = max(self.start_ns)
        if self.operation == "Broadcast":
            until = [self.start_ns[0]] * len(self.ranks)
        elif self.operation == "Reduce":
            until = [last, *self.start_ns[1:]]
        else:
            until = [last] * len(self.ranks)
        if self.operation in ("Broadcast", "Reduce") and self.ranks[0] != 0:
            until = self.start_ns  # the root is missing
        return [max(0, min(limit, end) - start)
                for limit, start, end in zip(until, self.start_ns, self.end_ns)]


class Job:
    def __init__(self, path):
        self.content = json.loads(path.read_text())
        self.folder = path.parent
        self.verdict = self.content["verdict"]
        self.ranks = self.content["ranks"]
        self.hosts = {host["host"]: host for host in self.content["hosts"]}
        members = {c["id"]: tuple(c["ranks"]) for c in self.content["communicators"]}
        self.instances = [
            Instance(i["communicator"], i["index"], i["operation"], i["bytes"], i["step"],
                     members[i["communicator"]], *(tuple(i[key]) for key in
                                                   ("enter_ns", "start_ns", "end_ns")))
            for i in self.content["collectives"]]

    def has(self, rank, enter_ns):
        """Whether the rank's log has a call that began then."""
        row = self.ranks[rank]
        return bool(row["log"]) and enter_ns >= row["from_ns"] and \
            (row["until_ns"] is None or enter_ns < row["until_ns"])

    def recorded(self, instance):
        """The ranks whose kernel of the instance is in a log."""
        return [rank for rank, enter, end in zip(instance.ranks, instance.enter_ns, instance.end_ns)
                if end is not None and self.has(rank, enter)]

    def matched(self):
        return [i for i in self.instances if len(self.recorded(i)) == len(i.ranks)]

    def partial(self):
        return [i for i in self.instances if 0 < len(self.recorded(i)) < len(i.ranks)]

    def has_range(self, instance):
        """Whether NCCL's range states the communicator. Graph replays have none."""
        return self.content["payloads"] and not (self.content["graphs"] and instance.step >= 0)

    def kernel_count(self):
        return sum(len(self.recorded(i)) for i in self.instances)

    def present(self):
        """The instances as far as they are in the logs."""
        parts = (i.of(self.recorded(i)) for i in self.instances)
        return [part for part in parts if part.ranks]

    def is_mismatch(self, instance):
        return any((m["communicator"], m["index"]) == (instance.communicator, instance.index)
                   for m in self.content["mismatches"])

    def waits_ns(self):
        """By rank. Instances whose ranks disagree or whose root is unknown count nothing."""
        waits = [0] * len(self.ranks)
        for instance in self.present():
            has_root = instance.operation in ("Broadcast", "Reduce")
            if self.is_mismatch(instance) or (has_root and not self.has_range(instance)):
                continue
            for rank, wait in zip(instance.ranks, instance.waits_ns()):
                waits[rank] += wait
        return waits

    def monotonic_ns(self, host, true_ns):
        clock = self.hosts[host]
        return clock["boot_ns"] + true_ns * (1 + clock["drift_ppm"] * 1e-6)

    def true_ns(self, host, monotonic_ns):
        clock = self.hosts[host]
        return (monotonic_ns - clock["boot_ns"]) / (1 + clock["drift_ppm"] * 1e-6)

    def realtime_offset_ns(self, host, true_ns):
        """Realtime clock of the host, less true time and EPOCH_NS."""
        clock = self.hosts[host]
        return clock["offset_ns"] + true_ns * clock["drift_ppm"] * 1e-6

    def true_of_realtime_ns(self, host, realtime_ns):
        clock = self.hosts[host]
        return (realtime_ns - EPOCH_NS - clock["offset_ns"]) / (1 + clock["drift_ppm"] * 1e-6)


def make(maker, scenario, seed, folder):
    """Makes the logs of a scenario. Returns its jobs."""
    folder = pathlib.Path(folder) / f"{scenario}.{seed}"
    folder.mkdir()
    subprocess.run([maker, scenario, str(seed), folder], check=True)
    return [Job(path) for path in sorted(folder.glob("truth*.json"), key=lambda p: len(p.name))]
