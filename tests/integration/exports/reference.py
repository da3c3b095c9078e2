# SPDX-License-Identifier: Apache-2.0
"""Reference data for a set of logs, independent of the exporters: the folded stacks of each weight,
and the rows from the dumper.
"""

import collections
import functools
import json
import pathlib
import subprocess

WEIGHTS = {"gpu-time": "ns", "count": "count", "cpu-wait": "ns", "gpu-exclusive": "ns",
           "gpu-idle": "ns", "alloc-bytes": "bytes", "peak-bytes": "bytes", "leaked-bytes": "bytes"}
CPU_WEIGHTS = {"cpu-time": "ns", "off-cpu": "ns"}  # only with CPU logs
RANK_WEIGHTS = {"collective-wait": "ns", "collective-cause": "ns"}  # only with several logs
WORK = ("KERNEL", "COPY", "SET")


class Mismatch(Exception):
    """The output is wrong."""


def expect(condition, *what):
    if not condition:
        raise Mismatch(" ".join(str(word) for word in what))


def expect_same(found, wanted, what):
    """Compares two mappings of numbers. Prints the first few differences."""
    lines = [f"  {key}: {found.get(key, 0)}, wanted {wanted.get(key, 0)}"
             for key in sorted(set(found) | set(wanted), key=str)
             if found.get(key, 0) != wanted.get(key, 0)]
    expect(not lines, f"{what}:\n" + "\n".join(lines[:8]))


class Reference:
    def __init__(self, merge, dump, logs):
        self.merge, self.dump, self.given = merge, dump, logs
        # The merge leaves out copies of a log, and says so.
        contents = {pathlib.Path(log).read_bytes(): log for log in reversed(logs)}
        self.logs = [log for log in logs if log in contents.values()]

    @functools.cached_property
    def weights(self):
        """Units of the weights that outputs list."""
        return {**WEIGHTS, **(CPU_WEIGHTS if self.count("CPU_SAMPLE") else {}),
                **(RANK_WEIGHTS if self.traced_count > 1 else {})}

    def is_cpu_log(self, place):
        return any((row["key"], row["value"]) == ("log.kind", "cpu")
                   for row in self.rows[place]["META"])

    @property
    def traced_rows(self):
        """The rows of the first log with calls and GPU work."""
        return next(rows for place, rows in enumerate(self.rows) if not self.is_cpu_log(place))

    @property
    def traced_count(self):
        """The number of logs with calls and GPU work."""
        return sum(not self.is_cpu_log(place) for place in range(len(self.logs)))

    @staticmethod
    def idle_class(path):
        """The class of a path of idle time, which may have CPU frames below it."""
        return [frame for frame in path if frame.startswith("[idle: ")][-1]

    def run(self, *arguments):
        done = subprocess.run([self.merge, "-q", *self.given, *arguments], capture_output=True)
        expect(done.returncode in (0, 1), arguments, "gives", done.returncode, done.stderr.decode())
        return done.stdout

    @functools.lru_cache(maxsize=None)
    def folded(self, weight="gpu-time", *options):
        """Weight by path, a tuple of frames."""
        paths = collections.Counter()
        if weight in RANK_WEIGHTS and "collectives" not in self.summary:
            return paths  # refused
        text = self.run("--folded", "-", "--weight", weight, *options).decode("utf-8")
        for line in text.splitlines():
            path, value = line.rsplit(" ", 1)
            paths[tuple(path.split(";"))] += int(value)
        return paths

    def total(self, weight="gpu-time"):
        return sum(self.folded(weight).values())

    @functools.cached_property
    def summary(self):
        """The JSON summary with all rows, and the frames in each row of a path."""
        summary = json.loads(self.run("--summary", "-", "--top", "1000000"))
        for weight in summary["weights"].values():
            for row in weight["paths"]["rows"]:
                row["frames"] = summary["paths"][row["path"]]
        return summary

    @functools.cached_property
    def rows(self):
        """Rows of each log by kind, from the dumper."""
        logs = []
        for log in self.logs:
            done = subprocess.run([self.dump, "--format", "json", log], capture_output=True)
            rows = collections.defaultdict(list)
            for line in done.stdout.decode("utf-8", "replace").splitlines():
                row = json.loads(line)
                if row["record"] == "row":
                    rows[row["kind"]].append(row)
            logs.append(rows)
        return logs

    def count(self, *kinds):
        return sum(len(rows[kind]) for rows in self.rows for kind in kinds)

    def work_ns(self):
        return sum(int(row["duration_ns"]) for rows in self.rows for kind in WORK
                   for row in rows[kind])
