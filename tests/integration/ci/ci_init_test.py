#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""xtrace ci init: from an empty repository to a check that passes, and fails for a slower program."""

import os
import re
import shlex
import subprocess
import sys
import tempfile

import yaml

from ci_test import UNSURE, Repository, parse_arguments

# Everything that a shell, YAML, GitHub or GitLab could interpret.
CHANGELOG = os.path.join(os.path.dirname(__file__), "..", "..", "..", "CHANGELOG.md")
NASTY = "it's \"$HOME\" `id` ${{ github.token }} #: {a} \\n é\ttab\nnext"
FROM = ["--xtrace", "/opt/xtrace"]
PROGRAM = "bench/step.sh"
WRITTEN = [".gitattributes", ".xtrace/baseline.json", ".xtrace/ci/gate.sh",
           ".xtrace/ci/github/action.yml", ".xtrace/ci/gitlab/xtrace-gate.yml", ".xtrace/rules"]
GITHUB = ".github/workflows/gpu-time.yml"
GITLAB = ".gitlab-ci.yml"


class EmptyRepository(Repository):
    """A new repository that contains only the program to measure."""

    def __init__(self, args, folder):
        super().__init__(args, folder, has_tarball=False)
        subprocess.run(["git", "init", "-q", folder], check=True)
        os.mkdir(self.path("bench"))
        os.mkdir(self.path("tmp"))
        self.write_program(5)
        self.at_first = self.files()

    def write_program(self, layers):
        """More layers launch more kernels: six layers 20 % more than five."""
        with open(self.path(PROGRAM), "w", encoding="utf-8") as file:
            file.write(f"printf %s \"$1\" >argument.txt\nexec {self.args.sample} "
                       f"--layers {layers} --dim 64 --tokens 40\n")

    def init(self, status, *arguments):
        done = subprocess.run([os.path.join(self.args.build, "bin", "xtrace"), "ci", "init",
                               *arguments], cwd=self.folder, text=True, capture_output=True,
                              env=self.environment(TMPDIR=self.path("tmp")))
        assert done.returncode == status, done
        return done.stdout if not status else done.stderr

    def files(self):
        """The contents of all files, without those of git and of this test."""
        found = {}
        for top, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in (".git", "tmp", "bin")]
            for name in names:
                path = os.path.relpath(os.path.join(top, name), self.folder)
                if path != "argument.txt":
                    with open(self.path(path), "rb") as file:
                        found[path] = file.read()
        return found


def literal(text):
    """The value that GitHub gives to an action."""
    return text.replace("${{ '${{' }}", "${{")


def check_rules(repo):
    rules = repo.read(".xtrace", "rules")
    lines = [line for line in rules.splitlines() if line and line[0] != "#"]
    assert {"launches > 0", "call(*).count > 0", "peak-memory > 5%"} <= set(lines), rules
    for start in ("gpu-time > ", "path(*) > "):
        assert any(line.startswith(start) for line in lines), rules
    assert max(map(len, rules.splitlines())) <= 100, rules
    # Each rule has a comment with a measurement. The program has no NVTX ranges.
    for block in rules.split("\n\n")[1:]:
        assert block.startswith("# ") and "\n# - measured: " in block, block
    assert "range(" not in rules, rules
    checked = subprocess.run([os.path.join(repo.args.build, "bin", "xtrace"), "diff", "--check",
                              "--rules", ".xtrace/rules", ".xtrace/baseline.json"],
                             cwd=repo.folder, capture_output=True, text=True)
    assert checked.returncode == 0, checked


def check_github(repo):
    said = repo.init(0, "github", "--simulate", "-n", "3", "--xtrace", repo.args.build, "--", "sh",
                     PROGRAM, NASTY)
    assert sorted(set(repo.files()) - set(repo.at_first)) == sorted([*WRITTEN, GITHUB])
    assert "git add .gitattributes .xtrace .github\n" in said and "git push" in said, said
    assert "XTRACE_GATE_BENCH_OPTIONS=--simulate .xtrace/ci/gate.sh\n" in said, said
    assert not os.listdir(repo.path("tmp"))
    check_rules(repo)
    (job,) = yaml.safe_load(repo.read(GITHUB))["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest", job
    assert "runs-on: [self-hosted, gpu]" in repo.read(GITHUB)
    checkout, gate, upload = job["steps"]
    assert gate["uses"] == "./.xtrace/ci/github" and "checkout" in checkout["uses"], job
    assert upload["if"] == "always()", job
    given = {name: literal(value) for name, value in gate["with"].items()}
    assert shlex.split(given["command"]) == ["sh", PROGRAM, NASTY], given
    assert given["bench-options"] == "--simulate" and given["xtrace"] == repo.args.build, given

    verdict, report, _ = repo.github(0, **given, profile_options="")
    assert verdict == "pass", report
    assert repo.read("argument.txt") == NASTY
    repo.write_program(6)
    verdict, report, _ = repo.github(1, **given, profile_options="")
    assert verdict == "regression" and "launches" in report and "matmul" in report, report


def check_gitlab(repo):
    repo.init(0, "gitlab", "-s", "--xtrace=" + repo.args.build, "-n3", "sh", PROGRAM, NASTY)
    assert sorted(set(repo.files()) - set(repo.at_first)) == sorted([*WRITTEN, GITLAB])
    check_rules(repo)
    document = yaml.safe_load(repo.read(GITLAB))
    job = document["gpu-time"]
    assert document["include"] == [{"local": ".xtrace/ci/gitlab/xtrace-gate.yml"}], document
    assert job["extends"] == ".xtrace-gate" and job["image"] == "python:3.12", job
    assert "tags: [gpu]" in repo.read(GITLAB)
    given = {}
    for name, value in job["variables"].items():
        assert isinstance(value, dict) or "$" not in value, value
        given[name] = value["value"] if isinstance(value, dict) else value
    assert shlex.split(given["XTRACE_GATE_COMMAND"]) == ["sh", PROGRAM, NASTY], given
    repo.template = {**repo.template, "script": job["script"]}
    repo.gitlab(0, **given, XTRACE_GATE_PROFILE_OPTIONS="")
    repo.write_program(6)
    log = repo.gitlab(1, **given, XTRACE_GATE_PROFILE_OPTIONS="")
    assert "REGRESSION" in log, log


def check_existing(repo):
    """Existing files stay."""
    with open(repo.path(GITLAB), "w", encoding="utf-8") as file:
        file.write("stages: [test]\n")
    with open(repo.path(".gitattributes"), "w", encoding="utf-8") as file:
        file.write("*.bin -diff")
    said = repo.init(0, "gitlab", "-s", "-n", "2", *FROM, "--", "sh", PROGRAM)
    assert "exists and was not changed" in said and "\n  extends: .xtrace-gate\n" in said, said
    assert repo.read(GITLAB) == "stages: [test]\n"
    assert repo.read(".gitattributes") == "*.bin -diff\n.xtrace/baseline.json merge=union\n"
    before = repo.files()
    for kept in (".xtrace/rules", ".xtrace/baseline.json", ".xtrace/ci/gate.sh"):
        said = repo.init(2, "github", "-s", "-n", "2", *FROM, "--", "sh", PROGRAM)
        assert f"cannot write '{kept}': it exists" in said and repo.files() == before, said
        os.unlink(repo.path(kept))
        del before[kept]
    with open(repo.path(".xtrace", "rules"), "w", encoding="utf-8") as file:
        file.write("gpu-time > 50%\n")
    repo.init(0, "github", "-s", "-n", "2", "--force", *FROM, "--", "sh", PROGRAM)
    check_rules(repo)
    assert repo.read(".gitattributes").count("merge=union") == 1
    assert 'xtrace: "/opt/xtrace"' in repo.read(GITHUB)
    # The same again changes no workflow, and has nothing to say about it.
    said = repo.init(0, "github", "-s", "-n", "2", "--force", *FROM, "--", "sh", PROGRAM)
    assert "was not changed" not in said, said


def check_pip(repo):
    """The job installs a released version with pip. Another one is refused before it is measured."""
    with open(CHANGELOG, encoding="utf-8") as file:
        version, state = re.search(r"^## (\S+) (.*)", file.read(), re.M).groups()
    if state == "(unreleased)":
        said = repo.init(2, "gitlab", "-s", "--", "sh", PROGRAM)
        assert f"version {version} is not released" in said and "--xtrace" in said, said
        assert repo.files() == repo.at_first and not os.listdir(repo.path("tmp"))
        return
    repo.init(0, "gitlab", "-s", "-n", "2", "--", "sh", PROGRAM)
    assert f"pip install xtrace-gpu=={version}" in repo.read(GITLAB)
    repo.init(0, "github", "-s", "-n", "2", "--force", "--", "sh", PROGRAM)
    assert "xtrace: ${{ runner.temp }}/xtrace" in repo.read(GITHUB)


def check_refused(repo):
    """Each of these ends with status 2, a reason, and nothing written."""
    noisy = UNSURE % ("tmp/n", "tmp/n", repo.command)
    for arguments, says in ((["github", "-s", "-n", "1", "--", "true"], "must be a number from 2"),
                            (["github", "-s", "-n2", *FROM, "--", "true"], "no GPU work"),
                            (["github", "-s", "-n2", *FROM, "--", "sh", "-c", "exit 3"],
                             "'sh -c 'exit 3'' ended with exit status 3"),
                            (["gitlab", "-s", "-n2", *FROM, "--", "sh", "-c", noisy], "too noisy"),
                            (["github", "-s", *FROM, "--", "no-such-program"], "command not found"),
                            (["githup", "-s", "--", "true"], "did you mean 'github'"),
                            (["github", "-s"], "no program given"),
                            ([], "no CI system given")):
        said = repo.init(2, *arguments)
        assert says in said and repo.files() == repo.at_first, (arguments, said)
    # A failure in the middle of writing removes what was written before.
    with open(repo.path(".github"), "w", encoding="utf-8") as file:
        file.write("not a folder\n")
    said = repo.init(2, "github", "-s", "-n2", *FROM, "--", "sh", PROGRAM)
    os.unlink(repo.path(".github"))
    assert f"cannot write '{GITHUB}'" in said and repo.files() == repo.at_first, said
    os.rename(repo.path(".git"), repo.path("tmp", "git"))
    assert "git init" in repo.init(2, "github", "-s", *FROM, "--", "sh", PROGRAM)
    assert repo.files() == repo.at_first


def check_guide(repo):
    """The guide begins with four commands, and the second one has the form that works here."""
    with open(os.path.join(repo.args.ci, "..", "..", "docs", "CI.md"), encoding="utf-8") as file:
        block = re.search(r"## Four commands\n\n.*\n\n((?:    .*\n)+)", file.read())[1]
    commands = [shlex.split(line) for line in block.splitlines()]
    assert len(commands) == 4 and commands[1][:2] == ["xtrace", "ci"], commands
    with open(repo.path("bench", "step.py"), "w", encoding="utf-8") as file:
        file.write(f"import os\nos.execl('{repo.args.sample}', 'step', '--tokens', '40')\n")
    repo.init(0, "-n2", "--simulate", *FROM, *commands[1][3:])
    assert 'command: "python3 bench/step.py"' in repo.read(GITHUB), repo.read(GITHUB)


def main():
    args = parse_arguments()
    for check in (check_github, check_gitlab, check_existing, check_pip, check_refused, check_guide):
        with tempfile.TemporaryDirectory() as folder:
            check(EmptyRepository(args, folder))
    print("xtrace ci init sets up both CI systems")


if __name__ == "__main__":
    sys.exit(main())
