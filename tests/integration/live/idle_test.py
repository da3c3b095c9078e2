#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares idle time by cause in the live view with that of xtrace merge, for whole logs."""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../control"))
from control_test import Service  # noqa: E402 (after the path is set)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, "%s: %s%s" % (words, done.stdout, done.stderr)
    return done.stdout


class Test:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def weights(self, log, weight):
        text = run(self.args.xtrace, "merge", "-q", "--folded", "-", "--weight", weight, log)
        return [(line.rsplit(" ", 1)[0], int(line.rsplit(" ", 1)[1])) for line in text.splitlines()]

    def live(self, log, *words):
        rows = [line.rsplit(" ", 1) for line in run(self.args.live_idle, log, *words).splitlines()]
        return {name: int(ns) for name, ns in rows}

    def check(self, log):
        merged = collections.Counter()
        for path, ns in self.weights(log, "gpu-idle"):
            merged[re.search(r"\[idle: [^]]*\]", path).group()] += ns
        merged["busy"] = sum(ns for _, ns in self.weights(log, "gpu-exclusive"))
        found = {name: ns for name, ns in self.live(log).items() if ns}
        assert found == dict(merged), (log, found, dict(merged))
        return found

    def check_steps(self, log):
        """Causes may differ, as the ends of gaps are not known yet. Their sum does not."""
        steps, whole = self.live(log, "steps"), self.live(log)
        total = sum(whole.values())
        assert sum(steps.values()) == total, (log, steps, whole)
        assert abs(steps["busy"] - whole["busy"]) < 0.005 * total, (log, steps, whole)
        for name, ns in whole.items():
            assert abs(steps[name] - ns) < 0.1 * total, (log, name, steps, whole)

    def record(self):
        """A log with several threads, a captured graph and parts that were not recorded."""
        with Service(self, threads=3) as service:
            for command in ("stop", "start") * 2:
                service.do("launch", "launch", "capture", "replay", "retry")
                run(self.args.xtrace, command, service.pid)
            service.do("launch")
        name, = [name for name in os.listdir(service.data) if name.endswith(".xtr")]
        return os.path.join(service.data, name)

    def run(self):
        causes = set()
        for log in self.args.logs:
            causes |= set(self.check(log))
            self.check_steps(log)
        assert len(causes) >= 6, causes
        self.check(self.record())


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "live_idle", "service"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("logs", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-live.") as folder:
        Test(args, folder).run()


if __name__ == "__main__":
    main()
