#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test xtrace baseline on profiles of real PyTorch runs with added noise."""

import argparse
import base64
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

LEVELS = ("totals", "idle", "copies", "bytes", "memory", "ranges", "spans", "kernels", "apis",
          "paths", "calls")
ROW_BYTES_MAX = 160  # of a set of five runs, for each row of a profile


class Folder:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words, status=0):
        done = subprocess.run([self.args.xtrace, *words], cwd=self.folder, text=True,
                              capture_output=True)
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done

    def baseline(self, *words, status=0):
        return self.run("baseline", *words, status=status)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def profile(self, trace):
        return json.loads(subprocess.run(
            [self.args.merge, "--quiet", "--profile", "-", "--by", "none", "--lines", "on",
             os.path.join(self.args.traces, trace)], check=True, capture_output=True).stdout)

    def make_runs(self, name, profile, count, seed, day):
        """Write profiles of runs with added noise. Returns their names, separated by commas."""
        generator = random.Random(seed)
        names = []
        for number in range(count):
            run = json.loads(json.dumps(profile))
            for process in run["processes"]:
                process["start_realtime_ns"] = (day * 86400 + number) * 10**9
            for level in LEVELS:
                for row in run[level]:
                    for cell in (1, 3, 5, 6, 8, 9):
                        if row[cell]:
                            value = row[cell] * generator.gauss(1, 0.01)
                            # Use as many digits as xtrace merge writes.
                            row[cell] = (round(value) if isinstance(row[cell], int)
                                         else float(f"{value:.{9 if cell < 5 else 3}g}"))
            names.append(f"{name}.{number}.json")
            self.write(names[-1], json.dumps(run))
        return ",".join(names)


def check_size(folder):
    """A baseline of a training step with five sets of five runs stays small."""
    for trace in ("h200-pytorch.xtr", "h200-pytorch-graph.xtr", "h200-pytorch-work.xtr"):
        profile = folder.profile(trace)
        for day in range(6):
            runs = folder.make_runs(f"day{day}", profile, 5, day, 20000 + day)
            folder.baseline("update" if day else "save", "size.json", runs, "--label", f"c{day}")
        size = os.path.getsize(folder.path("size.json"))
        rows = sum(len(profile[level]) for level in LEVELS)
        print(f"{trace}: {size} bytes for 5 sets of 5 runs with {rows} rows")
        assert size < 5 * rows * ROW_BYTES_MAX, (trace, size, rows)
        shown = folder.baseline("show", "size.json").stdout
        assert re.findall(r"(c\d)$", shown, re.M) == ["c5", "c4", "c3", "c2", "c1"], shown
        os.unlink(folder.path("size.json"))


def check_content(folder):
    """The same runs give the same bytes. Comparing with a baseline equals comparing with its runs."""
    profile = folder.profile("h200-pytorch-work.xtr")
    old = folder.make_runs("old", profile, 5, 1, 20001)
    new = folder.make_runs("new", profile, 5, 2, 20002)
    folder.baseline("save", "a.json", old, "--label", "one")
    folder.baseline("save", "b.json", old, "--label", "one")
    assert folder.text("a.json") == folder.text("b.json")
    documents = []
    for base in (old, "a.json"):
        folder.run("diff", base, new, "--json", "d.json", "--fail-on", "gpu-time > 50%")
        document = json.loads(folder.text("d.json"))
        documents.append((document["rows"], document["outcome"]))
    assert documents[0] == documents[1]
    assert len(documents[0][0]) > 50
    # Older sets only contribute to the noise estimate.
    folder.baseline("update", "a.json", new, "--label", "two")
    # The runs of the newest set are rejected as NEW.
    done = folder.run("diff", "a.json", new, "--json", "d.json", "--fail-on", "gpu-time > 50%",
                      "--text", "d.txt", status=2)
    assert "are the same run" in done.stdout + done.stderr + folder.text("d.txt"), done
    runs = json.loads(folder.text("d.json"))["base_runs"]
    assert [run["history"] for run in runs].count(True) == 5 and len(runs) == 10
    gpu_time = next(row for row in json.loads(folder.text("d.json"))["rows"]
                    if row["key"] == "gpu-time")["value"]
    assert abs(gpu_time["ratio"]) < 1e-9, gpu_time
    # Saving from a baseline takes its newest set.
    folder.baseline("save", "c.json", "a.json")
    assert len(json.loads(folder.text("c.json"))["sets"]) == 2  # and the end


def check_merge(folder):
    """Sets of two branches merge as lines, in order of time."""
    if not shutil.which("git"):
        print("merging was not tested: git is not installed")
        return
    profile = folder.profile("h200-pytorch-work.xtr")
    folder.baseline("save", "base.json", folder.make_runs("a", profile, 2, 1, 20001), "-l", "base")
    for name, day in (("ours", 20003), ("theirs", 20002)):
        folder.write(name + ".json", folder.text("base.json"))
        folder.baseline("update", name + ".json", folder.make_runs(name, profile, 2, day, day),
                        "-l", name)
    merged = subprocess.run(["git", "merge-file", "-p", "--union", "ours.json", "base.json",
                             "theirs.json"], cwd=folder.folder, check=True, capture_output=True,
                            text=True).stdout
    folder.write("merged.json", merged)
    json.loads(merged)
    shown = folder.baseline("show", "merged.json").stdout
    assert re.findall(r"(base|ours|theirs)$", shown, re.M) == ["ours", "theirs", "base"], shown
    # A set that both sides added is one set.
    lines = merged.splitlines(keepends=True)
    folder.write("twice.json", "".join(lines[:4] + lines[3:]))
    assert folder.baseline("show", "twice.json").stdout.count(" base\n") == 1
    # A set with the same label is replaced.
    folder.baseline("update", "merged.json", folder.make_runs("x", profile, 2, 9, 20009), "-l",
                    "base")
    shown = folder.baseline("show", "merged.json").stdout
    assert re.findall(r"(base|ours|theirs)$", shown, re.M) == ["base", "ours", "theirs"], shown
    folder.baseline("prune", "merged.json", "--label", "ours")
    folder.baseline("prune", "merged.json", "--keep", "1")
    assert re.findall(r"(base|ours|theirs)$", folder.baseline("show", "merged.json").stdout,
                      re.M) == ["base"]


def check_refusals(folder):
    profile = folder.profile("h200-pytorch-work.xtr")
    runs = folder.make_runs("r", profile, 2, 1, 20001)
    folder.baseline("save", "a.json", runs, "-l", "one")
    kept = folder.text("a.json")

    def refused(said, *words):
        done = folder.baseline(*words, status=2)
        assert said in done.stderr, (words, done.stderr)

    refused("it exists", "save", "a.json", runs)
    refused("has no set 'two'", "prune", "a.json", "--label", "two")
    refused("would be empty", "prune", "a.json", "--label", "one")
    refused("cannot use '0' for --keep: it must be a number", "prune", "a.json", "--keep", "0")
    refused("did you mean 'save'", "sav", "a.json", runs)
    refused("usage: xtrace baseline save", "save", "a.json")
    refused("No such file", "update", "b.json", runs)
    refused("No such file", "save", "b.json", "nothing-there")
    other = json.loads(json.dumps(profile))
    other["processes"][0]["name"] = "other"
    folder.write("other.json", json.dumps(other))
    refused("different programs", "update", "a.json", "other.json")
    other = json.loads(json.dumps(profile))
    other["devices"][0]["name"] = "Other GPU"
    folder.write("other.json", json.dumps(other))
    refused("different GPUs", "update", "a.json", "other.json")
    for member, said in (("driver", "different CUDA drivers"), ("cupti", "CUPTI versions")):
        other = json.loads(json.dumps(profile))
        other["processes"][0][member] = "77"
        folder.write("other.json", json.dumps(other))
        refused(said, "update", "a.json", "other.json")
        refused("'xtrace baseline save --force' replaces the baseline", "update", "a.json", "other.json")
    # A run can be added once.
    refused("is already in the set 'one'", "update", "a.json", runs, "-l", "two")
    refused("are the same run", "save", "b.json", "r.0.json,r.0.json")
    other = json.loads(json.dumps(profile))
    other["trust"]["word"] = "degraded"
    folder.write("other.json", json.dumps(other))
    refused("events are missing in it", "update", "a.json", "other.json")
    assert folder.text("a.json") == kept

    folder.write("newer.json", kept.replace('"version":1', '"version":2'))
    refused("is a baseline of version 2", "show", "newer.json")
    done = folder.run("diff", "newer.json", runs, status=2)
    assert "is a baseline of version 2" in done.stdout + done.stderr
    packed = re.search(r'"profiles":"([^"]*)"', kept)[1]
    for damage in (packed[:-8], packed[:40] + "!" + packed[41:], packed[:80] + "AAAA" + packed[84:],
                   ""):
        folder.write("damaged.json", kept.replace(packed, damage))
        refused("is damaged", "show", "damaged.json")
    # A compression bomb: the unpacked size is limited.
    if shutil.which("zstd"):
        huge = subprocess.run("head -c 300000000 /dev/zero | zstd -q --stream-size=300000000",
                              shell=True, check=True, capture_output=True).stdout
        folder.write("damaged.json", kept.replace(packed, base64.b64encode(huge).decode()))
        refused("is damaged", "show", "damaged.json")
    folder.write("terminal.json", kept.replace('"label":"one"', '"label":"\\u001b[31mone"'))
    assert "?[31mone" in folder.baseline("show", "terminal.json").stdout
    for version in ("0", "-5", "null"):
        folder.write("newer.json", kept.replace('"version":1', '"version":' + version))
        refused("is not a baseline", "show", "newer.json")
    folder.write("damaged.json", kept[:100])
    refused("is not a baseline", "show", "damaged.json")


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "merge", "traces"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    for check in (check_size, check_content, check_merge, check_refusals):
        with tempfile.TemporaryDirectory() as folder:
            check(Folder(args, folder))
    print("all baseline tests passed")


if __name__ == "__main__":
    sys.exit(main())
