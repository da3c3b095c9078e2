#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace bench --bisect on scratch repositories: the named commit, and invalid input."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import history


class Bisect:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.count = 0

    def new(self, **options):
        self.count += 1
        return history.History(os.path.join(self.folder, str(self.count)), self.args.sample,
                               **options)

    def command(self, repository, *words):
        return [self.args.xtrace, "bench", "--simulate", "-o", repository.folder + ".runs", *words]

    def run(self, repository, *words, status=0, cwd=None, **environment):
        """Runs a bisection, which must leave the repository as it is."""
        before = state(repository)
        done = subprocess.run(self.command(repository, *words), cwd=cwd or repository.folder,
                              text=True, capture_output=True,
                              env={**repository.environment, **environment})
        assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        assert state(repository) == before
        return done


def state(repository):
    """Everything that a bisection must not change."""
    return (repository.git("status", "--porcelain", "--branch"), repository.git("rev-parse", "HEAD"),
            repository.git("for-each-ref"), repository.git("worktree", "list"),
            os.listdir(repository.folder + ".tmp"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


FAST = ("--runs", "5", "--warmup", "0")


def finds_the_commit_and_the_path(bisect):
    """The command and the build run in the folder that the user is in."""
    repository = bisect.new()
    os.mkdir(os.path.join(repository.folder, "sub"))
    repository.write({"sub/run.sh": "cd .. && test -e built && exec ./run.sh\n"})
    repository.commit("add a folder")
    good = repository.git("rev-parse", "HEAD")
    repository.grow(4, 3, {"arguments": "--layers 3\n"})
    # A commit that does not build, and one whose program fails, need not prevent an answer.
    repository.commit("break the build", {"unbuildable": ""})
    repository.git("rm", "-q", "unbuildable")
    repository.commit("break the program", {"broken": ""})
    repository.git("rm", "-q", "broken")
    repository.commit("repair")
    document = repository.folder + ".json"
    done = bisect.run(repository, *FAST, "--bisect", good + "..main", "--json", document, "--build",
                      "test ! -e ../unbuildable && touch ../built", "--", "sh", "run.sh",
                      cwd=os.path.join(repository.folder, "sub"))
    assert "first bad commit: %s\n  change 3\n" % repository.bad in done.stdout, done.stdout
    assert "(llm_inference.c:" in done.stdout and "At most 1 %" in done.stdout, done.stdout
    found = read(document)
    assert found["format"] == "xtrace.bisect" and found["outcome"] == "found"
    assert found["first_bad"]["hash"] == repository.bad == found["candidates"][0]
    assert found["change"]["low_ratio"] > 0.1 and "llm_inference.c" in found["path"]["name"]
    assert {step["verdict"] for step in found["steps"]} <= {"good", "bad", "skip"}
    assert os.path.isdir(os.path.join(repository.folder + ".runs", "ends", "base", "run-001"))


def names_candidates_that_were_skipped(bisect):
    repository = bisect.new()
    suspects = [repository.commit("break the program", {"broken": ""})]
    repository.git("rm", "-q", "broken")
    suspects.append(repository.commit("repair and slow down", {"arguments": "--layers 3\n"}))
    done = bisect.run(repository, *FAST, "--bisect", "first..main", "--json", "-", "--", "./run.sh",
                      status=2)
    found = json.loads(done.stdout)
    assert found["outcome"] == "skipped" and sorted(found["candidates"]) == sorted(suspects)
    assert "the first bad commit is one of these 2" in done.stderr, done.stderr
    assert "skipped: CMD failed" in done.stderr, done.stderr


def names_candidates_if_good_fails(bisect):
    """GOOD does not run again after both ends were recorded."""
    repository = bisect.new()
    repository.grow(4, 3, {"arguments": "--layers 3\n"})
    command = ("test -e number || test $(cat $STATE) -lt 11 || { seq 9; echo no more; exit 3; }; "
               "exec ./run.sh")
    done = bisect.run(repository, *FAST, "--bisect", "first..main", "--json", "-", "--", "sh", "-c",
                      command, status=2)
    found = json.loads(done.stdout)
    why = "CMD failed three times in a row at GOOD, %.12s (first version)" % found["good"]["hash"]
    assert "cannot bisect: " + why in done.stderr and "\nno more\n" in done.stderr, done.stderr
    assert "the first bad commit is one of these 4" in done.stderr, done.stderr
    assert found["outcome"] == "failed" and found["reason"] == why, found
    assert found["output"][8:10] == ["9", "no more"], found["output"]
    assert len(found["candidates"]) == 4 and repository.bad in found["candidates"]
    (step,) = found["steps"]
    assert step["verdict"] == "undecided" and step["reason"] and "change" not in step


def names_the_commit_if_its_parent_fails(bisect):
    """The steps have an answer, but it cannot be confirmed."""
    repository = bisect.new()
    repository.grow(1, 1, {"arguments": "--layers 3\n"})
    command = "test -e number || test $(cat $STATE) -lt 11 || exit 3; exec ./run.sh"
    done = bisect.run(repository, *FAST, "--bisect", "first..main", "--json", "-", "--", "sh", "-c",
                      command, status=2)
    found = json.loads(done.stdout)
    assert found["outcome"] == "failed" and found["candidates"] == [repository.bad]
    assert repository.bad[:12] + " is the first commit nearer to BAD" in done.stderr, done.stderr
    assert "at %.12s (first version)" % found["good"]["hash"] in found["reason"], found


def rejects_equal_ends(bisect):
    repository = bisect.new()
    repository.grow(2, 0, {})
    done = bisect.run(repository, *FAST, "--bisect", "first..main", "--", "./run.sh", status=2)
    assert "BAD is not worse than GOOD by any rule" in done.stderr, done.stderr
    assert "smallest detectable change" in done.stdout, done.stdout
    done = bisect.run(repository, "--bisect", "main..HEAD", "--", "./run.sh", status=2)
    assert "both ends are commit" in done.stderr, done.stderr


def rejects_ranges_and_repositories(bisect):
    repository = bisect.new()
    repository.grow(2, 0, {})
    for words, said in (
            (("--bisect", "main..first"), "GOOD is not an ancestor of BAD"),
            (("--bisect", "main"), "it must be GOOD..BAD"),
            (("--bisect", "first...main"), "it must be GOOD..BAD"),
            (("--bisect", "first.."), "it must be GOOD..BAD"),
            (("--bisect", "nowhere..main"), "'nowhere' is not a commit"),
            (("--bisect", "--all..main"), "'--all' is not a commit"),
            (("--bisect", "first..main", "--vs", "true"), "cannot use --vs with --bisect"),
            (("--bisect", "first..main", "--fail-on", "gpu-time >> 1"), "gpu-time >> 1"),
            (("--bisect", "first..main", "--max-runs", "2"), "a number from 3 to 999"),
            (("--bisect", "first..main", "--error-rate", "1"), "a percentage above 0%"),
            (("--build", "make"), "cannot use --build: it needs --bisect"),
            (("--only-counts",), "cannot use --only-counts: there is no comparison")):
        done = bisect.run(repository, *words, "--", "./run.sh", status=2)
        assert said in done.stderr, (words, done.stderr)
    done = bisect.run(repository, *FAST, "--bisect", "first..main", "--build", "echo no; exit 1",
                      "--", "./run.sh", status=2)
    assert "no\n" in done.stderr and "the build failed at GOOD, " in done.stderr, done.stderr
    done = bisect.run(repository, *FAST, "--bisect", "first..main", "--json", "-", "--", "./absent",
                      status=2)
    assert "CMD failed three times in a row at GOOD, " in done.stderr, done.stderr
    assert json.loads(done.stdout)["outcome"] == "failed"
    done = bisect.run(repository, *FAST, "--bisect", "first..main", "--", "sh", "-c",
                      "test ! -e number && exec ./run.sh", status=2)
    assert "CMD failed at BAD, " in done.stderr, done.stderr
    done = bisect.run(repository, "--bisect", "first..main", "--", "./run.sh", status=2,
                      cwd=bisect.folder)
    assert "not in a git repository" in done.stderr, done.stderr
    done = bisect.run(repository, "--bisect", "first..main", "--", "./run.sh", status=2,
                      PATH="/nowhere")
    assert "git: command not found" in done.stderr, done.stderr
    repository.write({"scale": "120\n"})
    done = bisect.run(repository, "--bisect", "first..main", "--", "./run.sh", status=2)
    assert "the working tree has changes" in done.stderr, done.stderr
    assert not os.path.exists(repository.folder + ".runs/step-001")


def stops_if_noise_hides_a_step(bisect):
    """The rule sees a change, but three runs per step are too few."""
    repository = bisect.new(noise=1.5)
    repository.grow(3, 2, {"scale": "105\n"})
    done = bisect.run(repository, "--runs", "8", "--warmup", "0", "--max-runs", "3", "--bisect",
                      "first..main", "--", "./run.sh", status=2)
    assert "cannot decide step 1" in done.stderr, (done.stdout, done.stderr)
    assert "the first bad commit is one of these 3" in done.stdout, done.stdout


def restores_everything_after_ctrl_c(bisect):
    for number in (signal.SIGINT, signal.SIGTERM):
        repository = bisect.new()
        repository.grow(4, 2, {"arguments": "--layers 3\n"})
        before = state(repository)
        done = subprocess.Popen(bisect.command(repository, "--bisect", "first..main", "--",
                                               "./run.sh"), cwd=repository.folder, text=True,
                                stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=repository.environment, start_new_session=True)
        time.sleep(0.5)
        # Ctrl-C goes to the whole group, kill to one process.
        if number == signal.SIGINT:
            os.killpg(done.pid, number)
        else:
            os.kill(done.pid, number)
        _, errors = done.communicate()
        assert done.returncode == 2, (done.returncode, errors)
        assert "interrupted by signal %d" % number in errors, errors
        assert state(repository) == before


CHECKS = (finds_the_commit_and_the_path, names_candidates_that_were_skipped,
          names_candidates_if_good_fails, names_the_commit_if_its_parent_fails, rejects_equal_ends,
          rejects_ranges_and_repositories, stops_if_noise_hides_a_step,
          restores_everything_after_ctrl_c)


def run_histories(bisect, args):
    """Bisects long histories with known truth. A wrong answer fails. So does none, without --noise."""
    counts = {"right": 0, "WRONG": 0, "undecided": 0}
    for seed in range(args.first, args.first + args.histories):
        folder = os.path.join(bisect.folder, "seed%d" % seed)
        repository = history.seeded(folder, args.sample, seed, args.noise)
        began = time.monotonic()
        done = subprocess.run(bisect.command(repository, "--bisect", "first..main", "--json",
                                             folder + ".json", "--", "./run.sh"),
                              cwd=folder, text=True, capture_output=True, check=False,
                              env=repository.environment)
        found = read(folder + ".json") if os.path.exists(folder + ".json") else {}
        named = found.get("first_bad", {}).get("hash")
        word = "undecided" if not named else "right" if named == repository.bad else "WRONG"
        counts[word] += 1
        print("seed %d: %s, change %s, %d steps, %d runs, %.0f s %s" % (
            seed, word, found.get("ends", {}).get("ratio"), len(found.get("steps", ())),
            found.get("runs", 0), time.monotonic() - began, done.stderr.strip()), flush=True)
    print(counts)
    return counts["WRONG"] + (0 if args.noise else counts["undecided"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--xtrace", required=True)
    parser.add_argument("--sample", required=True)
    parser.add_argument("--histories", type=int, help="bisect only this many long histories")
    parser.add_argument("--first", type=int, default=1, help="seed of the first of them")
    parser.add_argument("--noise", type=float,
                        help="common factor in percent, so large that no answer is no failure")
    args = parser.parse_args()
    if args.histories:
        with tempfile.TemporaryDirectory() as folder:
            return run_histories(Bisect(args, folder), args) > 0
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            check(Bisect(args, folder))
            print("%s: %.1f s" % (check.__name__, time.monotonic() - began))
    print("all bisect tests passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
