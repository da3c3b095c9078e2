# SPDX-License-Identifier: Apache-2.0
"""Makes scratch git repositories whose program becomes slower at a known commit."""

import os
import random
import subprocess

# The tracked program. Each run has a seed of its own, so that runs differ, and slows down all
# kernels by a random factor with a standard deviation of `noise` percent.
RUN = """#!/bin/sh
test ! -e broken || exit 3
n=$(cat "$STATE")
echo $((n + 1)) >"$STATE"
set -- $(cat scale) $(cat "$STATE.noise")
XTRACE_SIMGPU_KERNEL_NS=$(awk -v n="$n" -v scale="$1" -v noise="$2" 'BEGIN {
	srand(n)
	for (i = 0; i < 12; i++)
		sum += rand()
	factor = scale / 100 * (1 + noise / 100 * (sum - 6))
	printf "%d:%d", 19600 * factor, 20400 * factor
}')
export XTRACE_SIMGPU_SEED="$n" XTRACE_SIMGPU_KERNEL_NS
exec "$SAMPLE" --prompt 2 --tokens 2 --dim 32 $(cat arguments)
"""


class History:
    """A repository with one commit that makes the program worse, and the tag `first`."""

    def __init__(self, folder, sample, noise=0.3, start=1):
        self.folder, self.state = folder, folder + ".state"
        self.environment = {**os.environ, "STATE": self.state, "SAMPLE": sample,
                            "TMPDIR": os.path.join(folder + ".tmp"),
                            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
                            **{"GIT_%s_%s" % (who, what): value
                               for who in ("AUTHOR", "COMMITTER")
                               for what, value in (("NAME", "A"), ("EMAIL", "a@example.com"))}}
        os.mkdir(folder)
        os.mkdir(folder + ".tmp")
        self.git("init", "-q", "-b", "main", ".")
        self.write({"run.sh": RUN, "scale": "100\n", "arguments": "--layers 2\n"})
        os.chmod(os.path.join(folder, "run.sh"), 0o755)
        for name, value in ((".state", start), (".state.noise", noise)):
            with open(folder + name, "w", encoding="utf-8") as file:
                file.write("%s\n" % value)
        self.commit("first version")
        self.git("tag", "first")
        self.bad = None

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.folder, env=self.environment, check=True,
                              text=True, stdout=subprocess.PIPE).stdout.strip()

    def write(self, files):
        for name, text in files.items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)

    def commit(self, subject, files=None):
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def grow(self, count, bad_at, change):
        """Adds commits on one branch. Commit number bad_at writes the files of `change`."""
        for number in range(1, count + 1):
            files = {"number": "%d\n" % number, **(change if number == bad_at else {})}
            commit = self.commit("change %d" % number, files)
            if number == bad_at:
                self.bad = commit


# Changes that make the program worse: a new call path, more work in one, slower kernels.
CHANGES = ({"arguments": "--layers 3\n"}, {"scale": "104\n"}, {"scale": "110\n"},
           {"arguments": "--layers 4\n"})


def seeded(folder, sample, seed, noise=None, count=32):
    """A history of `count` commits. Every other one has branches and merges."""
    chance = random.Random(seed)
    drawn = chance.choice((0.3, 0.6, 1.0))
    history = History(folder, sample, noise=noise or drawn, start=1000 * seed)
    bad_at = chance.randint(1, count)
    change = CHANGES[seed % len(CHANGES)]
    if seed % 2 == 0:
        history.grow(count, bad_at, change)
        return history
    number = 0
    while number < count:
        # Commits on a branch do not have those that main gets meanwhile. A merge is a commit, too.
        length = min(chance.randint(2, 5), count - number)
        if length < 3:
            parts = ["main"] * length
        else:
            parts = ["side"] * (length // 2) + ["main"] * (length - length // 2 - 1)
            history.git("branch", "-f", "side")
        for part in parts:
            number += 1
            history.git("checkout", "-q", part)
            files = {"number.%d" % number: "", **(change if number == bad_at else {})}
            commit = history.commit("change %d on %s" % (number, part), files)
            if number == bad_at:
                history.bad = commit
        history.git("checkout", "-q", "main")
        if len(parts) < length:
            number += 1
            if number == bad_at:
                bad_at += 1  # A merge brings no change of its own.
            history.git("merge", "-q", "--no-ff", "-m", "merge %d" % number, "side")
    if history.bad is None:
        history.bad = history.commit("late change", change)
    return history
