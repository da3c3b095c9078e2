#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test xtrace history on synthetic profiles, baselines and a git repository."""

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from history_profiles import DAY, profile

SPEED_RUNS = 1000
SPEED_PATHS = 300
SPEED_TEXTS = 20
CAUSES = {"hardware": "hardware or driver", "method": "method changed"}
APPEND_SECONDS_MAX = 3.0  # measured: 0.3 s; the machine of CI can be slow


class Folder:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *words, status=0):
        done = subprocess.run([self.args.xtrace, *words], cwd=self.folder, text=True,
                              capture_output=True)
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done

    def history(self, *words, status=0):
        return self.run("history", *words, status=status)

    def movements(self, *words, status=0):
        """The movements of the only group, and the whole document."""
        document = json.loads(self.history(*words, "--json", "-", status=status).stdout)
        (group,) = document["groups"]
        return group["movements"], document

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write_runs(self, folder, days, **model):
        """One profile for each day. Values of the model can be functions of the day."""
        for day in days:
            facts = {key: value(day) if callable(value) else value
                     for key, value in model.items()}
            self.write(f"{folder}/{day:04}.json", profile(day, day, **facts))


def slower_from(day):
    return lambda today: {3: 1.2 if today >= day else 1.0}


def check_outputs(folder):
    """Text, JSON, CSV and HTML name the same change."""
    folder.write_runs("runs", range(50), factors=slower_from(30))
    done = folder.history("runs", "--text", "-", "-o", "out/h.json", "-o", "h.csv", "-o",
                          "h.html", status=2)
    assert "cannot write 'out/h.json'" in done.stderr
    done = folder.history("runs", "--text", "-", "-o", "h.json", "-o", "h.csv", "-o", "h.html")
    assert re.search(r"slower, real\n.*gpu-time", done.stdout), done.stdout
    assert "path kernel_3 < layer_3 < main" in done.stdout
    # A run without a label is named by its file.
    assert re.search(r"\n  runs/0030.json \((after runs/0029.json\)|range runs/)", done.stdout), \
        done.stdout
    assert "runs/0000.json to runs/0049.json" in folder.history("./runs/").stdout
    long_path = os.path.join(*"abcdefgh") + "/" + "long" * 30
    folder.write_runs(long_path, range(2))
    labels = [p["label"] for p in json.loads(folder.history(f"./{long_path}/", "--json", "-").stdout)
              ["groups"][0]["points"]]
    assert [label[-9:] for label in labels] == ["0000.json", "0001.json"], labels
    assert all(label.startswith("...") and len(label) == 79 for label in labels), labels
    assert "values of whole runs" in done.stdout
    assert re.search(r"gpu-time .* over the newest (19|20|21) sets\n", done.stdout), done.stdout

    document = json.loads(folder.read("h.json"))
    assert (document["format"], document["version"]) == ("xtrace-history", 1)
    (group,) = document["groups"]
    assert len(group["points"]) == 50
    (movement,) = group["movements"]
    assert (movement["kind"], movement["cause"], movement["worse"]) == ("step", "real", True)
    assert abs(movement["place"] - 30) <= 1
    row = next(row for row in movement["rows"] if row["level"] == "path")
    assert row["low_ratio"] < 0.2 < row["high_ratio"], row
    assert any(noise["total"] == "wall" and 0.005 < noise["newest_ratio"] < 0.02
               for noise in group["noise"])

    lines = list(csv.DictReader(io.StringIO(folder.read("h.csv"))))
    assert len(lines) == 50 * 24, len(lines)
    (changed,) = [line for line in lines if line["changed"] == "1" and line["level"] == "path"]
    assert int(changed["run"]) == movement["place"] and "kernel_3" in changed["name"]

    page = folder.read("h.html")
    assert not re.search(r"(src|href)=|<script|url\(", page)
    charts = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(charts) == 3, len(charts)  # gpu-time, wall, and the path
    assert page.count("class='legend") == 1
    for chart in charts:
        xml.etree.ElementTree.fromstring(chart)
        # Lines do not reach the labels on the left.
        axis = float(re.search(r"class='axis' d='M([\d.]+)", chart)[1])
        lines = re.findall(r"class='(?:mean|dots|mark \w+)' d='M([\d.]+)", chart)
        assert len(lines) > 50 and all(axis <= float(x) for x in lines), chart


def check_gate(folder):
    folder.write_runs("runs", range(50), factors=slower_from(40))
    folder.history("runs", "--fail", status=1)
    folder.history("runs", "--fail", "--newest", "3")
    folder.write_runs("faster", range(50), factors=lambda day: {3: 0.8 if day > 40 else 1})
    folder.history("faster", "--fail")
    folder.write_runs("drift", range(60), everything=lambda day: 1 + 0.002 * day)
    movements, document = folder.movements("drift", "--fail", status=1)
    assert document["failed"] and movements[-1]["kind"] == "drift", movements
    folder.history("drift")


def check_index(folder):
    """Only new runs are read. An index that does not fit is ignored."""
    folder.write_runs("runs", range(40), factors=slower_from(20))
    first = folder.history("runs").stdout
    index = folder.read("runs/.xtrace-history")
    assert index.count("\nrun\t") == 40
    assert folder.history("runs").stdout == first
    folder.write_runs("runs", range(40, 60), factors=slower_from(20))
    longer = folder.history("runs").stdout
    assert longer == folder.history("runs", "--index", "none").stdout
    assert folder.history("runs", "--index", "other.index").stdout == longer
    assert os.path.exists(folder.path("other.index"))
    for damaged in (index[:-5], index.replace("\nrun\t", "\nrum\t", 1), "xtrace-history 9\n", "",
                    index.replace(" ", " x", 3)):
        folder.write("runs/.xtrace-history", damaged)
        done = folder.history("runs").stdout
        assert "all runs are read again" in done and done.startswith(longer.rstrip("\n")[:-1])
        assert folder.read("runs/.xtrace-history").count("\nrun\t") == 60
    # A changed file is read again; a deleted one is gone.
    os.unlink(folder.path("runs/0059.json"))
    folder.write("runs/0058.json", profile(77, 58, factors={3: 2}))
    assert len(folder.movements("runs")[1]["groups"][0]["points"]) == 59
    assert folder.read("runs/.xtrace-history").count("\nrun\t") == 59


def check_index_is_current(folder):
    """The index changes nothing but the time, and keeps nothing that is gone."""
    def values(*words):
        return folder.history(*words, "--csv", "-").stdout

    # A log of a directory is overwritten in place.
    def put_log(name):
        shutil.copyfile(os.path.join(folder.args.traces, name), folder.path("trace/1.xtr"))
        return folder.history("trace").stdout

    os.makedirs(folder.path("trace"))
    assert put_log("h200-work.xtr") != put_log("h200-cupy.xtr")
    index = folder.read("trace/.xtrace-history")
    assert folder.history("trace") and folder.read("trace/.xtrace-history") == index
    # Runs without a time are in the order of their names, whichever is read first.
    folder.write_runs("untimed", range(5, 10), start_realtime_ns=0)
    values("untimed")
    folder.write_runs("untimed", range(5), start_realtime_ns=0)
    assert values("untimed") == values("untimed", "--index", "none")
    # Rows of runs that were deleted are gone.
    folder.write_runs("runs", range(30), factors=slower_from(20))
    folder.history("runs", "--index", "new")
    folder.write_runs("runs", range(30, 40), names=lambda day: {4: "other", 5: f"once_{day}"})
    folder.history("runs", "--index", "old")
    for day in range(30, 40):
        os.unlink(folder.path(f"runs/{day:04}.json"))
    folder.history("runs", "--index", "old")
    old, new = (sorted(folder.read(name).splitlines()) for name in ("old", "new"))
    assert [line.split("\t")[:2] for line in old] == [line.split("\t")[:2] for line in new]


def git(folder, *words):
    return subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main",
         "-c", "commit.gpgsign=false", *words],
        cwd=folder.folder, check=True, capture_output=True, text=True).stdout.strip()


def commit_sets(folder, count, day_of, factors):
    """Commits a baseline that keeps few sets, once for each commit of the program."""
    commits = []
    git(folder, "init", "-q", "--initial-branch", "main", ".")
    for number in range(count):
        folder.write("code.txt", str(number))
        git(folder, "add", "code.txt")
        git(folder, "commit", "-qm", f"change {number}")
        commits.append(git(folder, "rev-parse", "HEAD"))
        for run in range(2):
            folder.write(f"new/{run}.json", profile(100 * number + run, day_of(number),
                                                    factors=factors(number)))
        folder.run("baseline", "update" if number else "save", "gpu.json",
                   "new/0.json,new/1.json", "--label", commits[-1][:10], "-q")
        git(folder, "add", "gpu.json")
        git(folder, "commit", "-qm", f"baseline {number}")
    return commits


def check_branch(folder):
    """Reads all versions of a baseline, in commit order, though clocks go back."""
    if not shutil.which("git"):
        print("branches were not tested: git is not installed")
        return
    commits = commit_sets(folder, 30, lambda n: 2 * n if n != 10 else 17, slower_from(18))
    movements, document = folder.movements("main:gpu.json")
    (group,) = document["groups"]
    assert [point["label"] for point in group["points"]] == [c[:10] for c in commits]
    (movement,) = movements
    assert movement["at"] == commits[18][:10], (movement, commits[18])
    assert any("order is that of the commits" in note for note in document["notes"])
    assert folder.movements("main:gpu.json") == (movements, document)
    folder.write(".xtrace-history", "damaged")
    again, said = folder.movements("main:gpu.json")
    assert again == movements and said["groups"] == document["groups"], again
    assert len(said["notes"]) == len(document["notes"]) + 1, said["notes"]
    folder.history("main:gpu.json", "--fail", status=1)
    label = json.loads(folder.read("gpu.json"))["sets"][0]["label"]
    done = folder.run("baseline", "accept", "gpu.json", "--reason", "x", "--by", "nothing",
                      status=2)
    assert "it has no set 'nothing'" in done.stderr
    folder.run("baseline", "accept", "gpu.json", "--reason", "more layers", "--by", label)
    git(folder, "commit", "-qam", "accept")
    folder.history("main:gpu.json", "--fail", status=1)  # accepts another commit's change
    # A set without a label is named after the commit that added it.
    folder.run("baseline", "save", "plain.json", "new/0.json", "-q")
    git(folder, "add", "plain.json")
    git(folder, "commit", "-qm", "plain")
    point = json.loads(folder.history("main:plain.json", "--json", "-").stdout)["groups"][0]
    assert point["points"][0]["label"] == git(folder, "rev-parse", "HEAD")[:12]
    # A damaged version is named by its commit.
    good = folder.read("plain.json")
    for text in (good[:-99], good):
        folder.write("plain.json", text)
        git(folder, "commit", "-qam", "plain")
    damaged = git(folder, "rev-parse", "HEAD~")[:12]
    done = folder.history("main:plain.json", status=2).stderr
    assert f"main:plain.json at {damaged} is not a baseline" in done, done
    assert "--skip-damaged ignores it" in done, done
    folder.history("main:plain.json", "--skip-damaged")
    for words, said in ((("main:none.json",), "git knows no file none.json"),
                        (("nowhere:gpu.json",), "on a branch nowhere"),
                        (("--", "-x:gpu.json"), "git knows no file")):
        assert said in folder.history(*words, status=2).stderr


def check_accept_finds_changes(folder):
    """gpu.json has 24 sets, and became slower at c14."""
    def accept(*words, file="try.json", status=0):
        return folder.run("baseline", "accept", file, *words, status=status).stderr

    shutil.copy(folder.path("gpu.json"), folder.path("try.json"))
    begins = "changes begin at c14 (gpu-time +"
    for words, said in ((("--by", "c3"), f"no change begins at c3; {begins}"),
                        (("--by", "c13"), "%): use --by c14"),
                        (("--row", "path(zzz)"), "the set 'c14' has no row path(zzz)"),
                        (("--row", "path(layer_5)"), "path(layer_5) does not change at c14; this "
                                                     "does: gpu-time +")):
        done = accept("--reason", "x", *words, status=2)
        assert said in done, (words, done)
    assert folder.read("try.json") == folder.read("gpu.json")
    # The only change is the default. Undo restores the file.
    done = accept("--reason", "deeper")
    assert re.search(r"accepted at c14: gpu-time \+0\.\d+ %, 1 call path.*: deeper\n", done), done
    folder.history("try.json", "--fail")
    assert "no longer accepted at c14: deeper" in accept("--undo", "--by", "c14")
    assert folder.read("try.json") == folder.read("gpu.json")
    folder.history("try.json", "--fail", status=1)
    assert "nothing is accepted at c14" in accept("--undo", "--by", "c14", status=2)
    # A new set can be accepted before a change is found.
    done = accept("--reason", "soon", "--by", "c22")
    assert "no change is detectable yet with 2 sets from c22; accepted at c22 in advance" in done
    assert f"note: {begins}" in done, done
    assert "accepted nevertheless" in accept("--reason", "y", "--by", "c3", "--force")
    assert "it has 2 accepted changes; choose with --by" in accept("--undo", status=2)
    accept("--undo", "--by", "c3")
    accept("--undo")
    assert folder.read("try.json") == folder.read("gpu.json")
    folder.run("baseline", "prune", "try.json", "--keep", "4")
    done = accept("--reason", "soon")
    assert "no change is detectable yet with 4 sets; accepted at c23 in advance: soon" in done
    # With two changes, one must be chosen.
    for day in range(30):
        folder.write("two/0.json", profile(day, 100 + day, factors={
            3: 1.2 if day >= 10 else 1, 5: 1.5 if day >= 20 else 1}))
        folder.run("baseline", "update" if day else "save", "two.json", "two/0.json", "--label",
                   f"d{day}", "-q", *(["--keep", "50"] if day else []))
    done = accept("--reason", "x", file="two.json", status=2)
    assert re.search(r"without --by: changes begin at d\d+ \(gpu-time \+\S+ %\), d20 \(.*\): choose "
                     r"one with --by", done), done
    assert "accepted at d20: gpu-time" in accept("--reason", "x", "--by", "d20", file="two.json")
    assert "accepted at d10: gpu-time" in accept("--reason", "y", file="two.json")
    folder.history("two.json", "--fail", "--newest", "30")


def check_accepting(folder):
    """`xtrace baseline accept` at the commit that made it slower."""
    for day in range(24):
        for run in range(2):
            folder.write(f"new/{run}.json", profile(100 * day + run, day,
                                                    factors=slower_from(14)(day)))
        folder.run("baseline", "update" if day else "save", "gpu.json", "new/0.json,new/1.json",
                   "--label", f"c{day}", "-q", *(["--keep", "50"] if day else []))
        os.makedirs(folder.path("runs"), exist_ok=True)
        folder.run("baseline", "save", f"runs/{day}.json", "new/0.json,new/1.json", "-q")
    folder.write("last.json", profile(8000, 25, factors={3: 1.2}))
    folder.history("gpu.json", "--fail", status=1)
    for words, said in ((["--row", "path(layer_3"], "it must be LEVEL(NAME)"),
                        (["--row", "road(layer_3)"], "it must be LEVEL(NAME)")):
        done = folder.run("baseline", "accept", "gpu.json", "--reason", "x", *words, status=2)
        assert said in done.stderr, done.stderr
    for by, said in (("c114", "it has no set 'c114'; did you mean 'c14'?"),
                     ("version", "its labels are c23, c22, c21, c20, c19, c18, c17, c16, c15, c14 "
                                 "and 14 more"),
                     ("c2x", "did you mean 'c23'?"), ("c", "several labels begin with it: c23")):
        done = folder.run("baseline", "accept", "gpu.json", "--reason", "x", "--by", by, status=2)
        assert said in done.stderr, done.stderr
    assert "did you mean 'c14'" in folder.run("baseline", "prune", "gpu.json", "--label", "c114",
                                              status=2).stderr
    assert "add --reason" in folder.run("baseline", "accept", "gpu.json", status=2).stderr
    check_accept_finds_changes(folder)
    # Accepting one path leaves the total open.
    accept = ("baseline", "accept", "gpu.json", "--by", "c14", "-q")
    folder.run(*accept, "--reason", "more\tlayers", "--row", "path(layer_3)")
    done = folder.history("gpu.json", "--fail", status=1).stdout
    assert "accepted: more?layers" in done, done
    folder.run(*accept, "--reason", "a larger <model>")
    movements, document = folder.movements("gpu.json", "--fail", "--html", "h.html")
    assert [m["cause"] for m in movements] == ["accepted"], movements
    assert movements[0]["why"] == "a larger <model>"
    assert "a larger &lt;model&gt;" in folder.read("h.html")
    assert "accepted at c14: a larger <model>" in folder.run("baseline", "show", "gpu.json").stdout
    folder.write("next.json", profile(9000, 30, factors={3: 1.2}))
    folder.write("more.json", profile(9001, 30, factors={3: 1.2}))
    done = folder.run("diff", "gpu.json", "next.json,more.json")
    assert "at c14 is accepted: a larger <model>" in done.stdout, done.stdout
    # Each run and other copies of the runs have other ids.
    for words in (("gpu.json", "--each-run"), ("runs", "gpu.json"), ("gpu.json", "runs")):
        movements, _ = folder.movements(*words, "--fail", "--newest", "100")
        assert [m["cause"] for m in movements] == ["accepted"], (words, movements)
    # Runs of a set that was pruned can still be elsewhere.
    shutil.copy(folder.path("gpu.json"), folder.path("few.json"))
    folder.run("baseline", "prune", "few.json", "--keep", "3")
    assert [m["cause"] for m in folder.movements("runs", "few.json", "--fail")[0]] == ["accepted"]
    folder.run("baseline", "update", "few.json", "last.json", "--keep", "2", "-q")
    assert "accepted at c14, path(layer_3): more?layers\naccepted at c14: a larger <model>\n" in \
        folder.run("baseline", "show", "few.json").stdout
    folder.run("baseline", "prune", "few.json", "--label", "c14")
    assert "accepted" not in folder.read("few.json")
    # A new set with the label of an old one keeps what was accepted.
    folder.run("baseline", "update", "gpu.json", "next.json,more.json", "--label", "c14",
               "--keep", "50")
    assert '"reason":"a larger <model>"' in folder.read("gpu.json")
    assert "accepted at c14: a larger" in folder.run("baseline", "show", "gpu.json").stdout
    (entry,) = [a for a in json.loads(folder.read("gpu.json"))["accepted"] if a and not a["row"]]
    assert int(entry["time_ns"]) // DAY == 20000 + 30, entry


def check_groups(folder):
    """Programs and machines are not mixed; a machine that is replaced is named."""
    folder.write_runs("mixed/a", range(0, 40), host=lambda day: "a" if day % 2 else "b",
                      everything=lambda day: 1 if day % 2 else 1.3)
    folder.write_runs("mixed/b", range(40, 60), name="other")
    document = json.loads(folder.history("mixed", "--json", "-").stdout)
    assert len(document["groups"]) == 3
    assert all(not group["movements"] for group in document["groups"])
    assert any("3 programs or machines" in note for note in document["notes"])

    for fact, first, second, cause, why in (
            ("driver", "12080", "13000", "hardware", "CUDA driver 12080 -> 13000"),
            ("gpu", "NVIDIA H100", "NVIDIA H200", "hardware", "GPU NVIDIA H100 -> NVIDIA H200"),
            ("command", "train", "train --big", "method", "--big added"),
            ("found_count", 50, 60, "method", "number of iterations 50 -> 60")):
        folder.write_runs(fact, range(40), everything=lambda day: 1 if day < 20 else 1.1,
                          **{fact: lambda day: first if day < 20 else second})
        (movement,), _ = folder.movements(fact, "--fail")
        detail = {"driver": "CUDA driver", "gpu": "GPU", "command": "arguments",
                  "found_count": "number of iterations"}[fact]
        done = folder.history(fact, "--fail").stderr
        assert f"--fail: 1 movement ignored ({CAUSES[cause]}: {detail})" in done, done
        assert "ignored" not in folder.history(fact, "--fail", "--newest", "5").stderr
        assert (movement["cause"], movement["why"], movement["place"]) == (cause, why, 20)
    folder.write_runs("slow", range(40), everything=lambda day: 1 if day < 20 else 1.1)
    (movement,), _ = folder.movements("slow", "--fail")
    assert (movement["cause"], movement["why"]) == ("hardware", "all call paths moved alike")
    assert ("--fail: 1 movement ignored (hardware or driver: all call paths moved alike)" in
            folder.history("slow", "--fail").stderr)
    folder.write_runs("seeds", range(40), command=lambda day: f"train --seed {day}")
    assert "command line differs at 39 of 40 runs" in folder.history("seeds").stdout


def check_oddities(folder):
    """Gaps, duplicates, renamed paths, runs without a time, and few runs."""
    folder.write_runs("gap", [*range(10), *range(300, 310)])
    assert "no runs for 291 days" in folder.history("gap").stdout
    folder.write_runs("twice", range(12))
    shutil.copy(folder.path("twice/0003.json"), folder.path("twice/copy.json"))
    folder.run("baseline", "save", "twice/b.json", folder.path("twice/0005.json"), "-q")
    done = folder.history("twice").stdout
    assert "occur in several sources" in done and "12 sets of runs" in done, done
    folder.write_runs("names", range(30), names=lambda day: {4: "renamed" if day > 14 else "old"})
    movements, document = folder.movements("names")
    assert not movements
    assert any("is called 'kernel_4 < renamed < main' from" in n for n in document["notes"])
    folder.write_runs("untimed", range(12), start_realtime_ns=0)
    assert "have no start time" in folder.history("untimed").stdout
    folder.run("baseline", "save", "untimed.json", "untimed/0000.json", "-q")
    done = folder.run("baseline", "accept", "untimed.json", "--reason", "x", status=2)
    assert "neither a start time nor a label" in done.stderr, done.stderr
    folder.write_runs("few", range(4))
    done = folder.history("few").stdout
    assert "too few for change points" in done and "over the newest 4 sets" in done, done
    folder.write("each/1.json", profile(1, 1))
    folder.run("baseline", "save", "each.json", "few/0000.json,few/0001.json,few/0002.json", "-q")
    assert "1 set of runs" in folder.history("each.json").stdout
    assert "3 sets of runs" in folder.history("each.json", "--each-run").stdout


def check_bad_input(folder):
    """Unreadable input is named and never passes."""
    folder.write_runs("runs", range(12))

    def refused(said, *words):
        done = folder.history(*words, status=2)
        assert said in done.stderr, (words, done.stderr)
        return done

    refused("no source given")
    refused("No such file", "nothing-there")
    os.makedirs(folder.path("empty"))
    refused("contain no baseline, profile or log", "empty")
    folder.write("text.txt", "hello")
    refused("cannot read text.txt", "text.txt")
    folder.write("damaged/r.json", profile(1, 1)[:-20])
    folder.write("newer/r.json", profile(1, 1).replace('"version": 2', '"version": 3'))
    folder.write("partial/r.json", profile(1, 1, trust="degraded"))
    for name, said in (("damaged", "is not a log, a run profile or a baseline"), ("newer", "of version 3"),
                       ("partial", "events are missing in it")):
        refused(said, name)
        # Readable runs are shown, but the status says that some are missing.
        done = refused(said, "runs", name)
        assert "12 sets of runs" in done.stdout and "--skip-damaged" in done.stderr
        done = folder.history("runs", name, "--skip-damaged")
        assert said in done.stderr
    folder.run("baseline", "save", "b.json", "runs/0000.json", "--label", "one", "-q")
    folder.run("baseline", "update", "b.json", "runs/0001.json", "--label", "two", "-q")
    text = folder.read("b.json")
    packed = re.search(r'"label":"one".*?"profiles":"([^"]*)"', text)[1]
    folder.write("b.json", text.replace(packed, packed[:-8]))
    done = refused("the set 'one' is damaged", "b.json")
    assert "1 set of runs" in done.stdout
    refused("the set 'one' is damaged", "b.json")  # not hidden by the index
    folder.write("b.json", text.replace('"version":1', '"version":2'))
    refused("baseline of version 2", "b.json")
    refused("it must be a number", "runs", "--newest", "0")
    refused("it must be a number of iterations", "runs", "--warmup", "many")
    folder.write_runs("hostile", range(12), names=lambda day: {1: "<script>\u001b[31m</script>"})
    done = folder.history("hostile", "--html", "-", "--csv", "h.csv")
    assert "<script" not in done.stdout and "\u001b" not in done.stdout + folder.read("h.csv")


def check_speed(folder):
    """Appending one run to a long history."""
    # Writing a profile takes longer than reading it: write some and change their start times.
    texts = [profile(seed, 0, paths=SPEED_PATHS) for seed in range(SPEED_TEXTS)]

    def write(day):
        start = '"start_realtime_ns": '
        text = re.sub(start + r"\d+", f"{start}{(20000 + day) * DAY}", texts[day % SPEED_TEXTS])
        folder.write(f"runs/{day:04}.json", text)

    for day in range(SPEED_RUNS):
        write(day)
    folder.history("runs")
    write(SPEED_RUNS)
    start = time.monotonic()
    folder.history("runs")
    seconds = time.monotonic() - start
    print(f"appending a run to {SPEED_RUNS} runs of {SPEED_PATHS} paths: {seconds:.2f} s")
    assert seconds < APPEND_SECONDS_MAX, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--xtrace", required=True)
    parser.add_argument("--traces", required=True)
    args = parser.parse_args()
    for check in (check_outputs, check_gate, check_index, check_index_is_current, check_branch,
                  check_accepting, check_groups, check_oddities, check_bad_input, check_speed):
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            check(Folder(args, folder))
        print(f"{check.__name__}: {time.monotonic() - start:.1f} s")
    print("all history tests passed")


if __name__ == "__main__":
    sys.exit(main())
