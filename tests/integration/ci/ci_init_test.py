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

from ci_test import Repository, parse_arguments

# Everything that a shell, YAML, GitHub or GitLab could interpret.
CHANGELOG = os.path.join(os.path.dirname(__file__), "..", "..", "..", "CHANGELOG.md")
NASTY = "it's \"$HOME\" `id` ${{ github.token }} #: {a} \\n é\ttab\nnext"
FROM = ["--xtrace", "/opt/xtrace"]
PROGRAM = "bench/step.sh"
WRITTEN = [".gitattributes", ".xtrace/ci/gate.sh", ".xtrace/rules"]
GITHUB = [".github/workflows/gpu-time.yml", ".xtrace/ci/github/action.yml"]
GITLAB = [".gitlab-ci.yml", ".xtrace/ci/gitlab/xtrace-gate.yml"]


class EmptyRepository(Repository):
    """A new repository that contains only the program to measure."""

    def __init__(self, args, folder):
        super().__init__(args, folder, has_tarball=False)
        subprocess.run(["git", "init", "-q", folder], check=True)
        os.mkdir(self.path("bench"))
        self.write_program(5)
        os.symlink(os.path.join(args.build, "bin", "xtrace"), self.path("bin", "xtrace"))
        self.at_first = self.files()

    def write_program(self, layers):
        """More layers launch more kernels: six layers 20 % more than five."""
        with open(self.path(PROGRAM), "w", encoding="utf-8") as file:
            file.write(f"printf %s \"$1\" >argument.txt\nexec {self.args.sample} "
                       f"--layers {layers} --dim 64 --tokens 40\n")

    def init(self, status, *arguments):
        done = subprocess.run(["xtrace", "ci", "init", *arguments], cwd=self.folder, text=True,
                              capture_output=True, env=self.environment())
        assert done.returncode == status, done
        return done.stdout if not status else done.stderr

    def shell(self, status, line):
        done = subprocess.run(line, shell=True, cwd=self.folder, text=True, capture_output=True,
                              env=self.environment())
        assert done.returncode == status, (line, done)
        return done.stdout

    def record_baseline(self, said):
        """Runs the commands that xtrace ci init printed."""
        block = re.search(r"GPU of the runner:\n\n(.*?)\n\nRead", said, re.S)[1]
        assert [line.split()[:2] for line in block.splitlines() if line[:8] == "  xtrace"] == \
            [["xtrace", "bench"], ["xtrace", "baseline"]], block
        self.shell(0, "set -e\n" + block)

    def files(self):
        """The contents of all files, without those of git and of this test."""
        found = {}
        for top, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in (".git", "bin")]
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
    """The baseline and all rules can be read, also those that are comments."""
    lines = repo.read(".xtrace", "rules").splitlines()
    commented = [line[2:] for line in lines if re.match(r"# .*(> \d+%|until 2030)", line)]
    assert len(commented) == 3, commented
    with open(repo.path("rules"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines + commented))
    repo.shell(0, "xtrace diff --check --rules rules .xtrace/baseline.json")
    assert max(map(len, lines)) <= 100, lines


def check_github(repo):
    said = repo.init(0, "github", "--simulate", "--xtrace", repo.args.build, "--", "sh", PROGRAM,
                     NASTY)
    assert sorted(set(repo.files()) - set(repo.at_first)) == sorted(WRITTEN + GITHUB)
    assert "git add .gitattributes .xtrace .github\n" in said and "git push" in said, said
    repo.record_baseline(said)
    check_rules(repo)
    (job,) = yaml.safe_load(repo.read(GITHUB[0]))["jobs"].values()
    assert job["runs-on"] == "ubuntu-latest", job
    checkout, gate, upload = job["steps"]
    assert gate["uses"] == "./.xtrace/ci/github" and "checkout" in checkout["uses"], job
    assert upload["if"] == "always()", job
    given = {name: literal(value) for name, value in gate["with"].items()}
    assert shlex.split(given["command"]) == ["sh", PROGRAM, NASTY], given
    assert given["bench-options"] == "--simulate" and given["xtrace"] == repo.args.build, given

    verdict, report, _ = repo.github(0, **given, profile_options="")
    assert verdict == "pass", report
    assert repo.read("argument.txt") == NASTY
    # The last printed command runs the same check.
    trial = said[said.index("  XTRACE_GATE_COMMAND="):]
    repo.shell(0, trial)
    repo.write_program(6)
    verdict, report, _ = repo.github(1, **given, profile_options="")
    assert verdict == "regression" and "launches" in report and "matmul" in report, report
    repo.shell(1, trial)


def check_gitlab(repo):
    said = repo.init(0, "gitlab", "-s", "--xtrace=" + repo.args.build, "sh", PROGRAM, NASTY)
    assert sorted(set(repo.files()) - set(repo.at_first)) == sorted(WRITTEN + GITLAB)
    repo.record_baseline(said)
    document = yaml.safe_load(repo.read(GITLAB[0]))
    job = document["gpu-time"]
    assert document["include"] == [{"local": GITLAB[1]}], document
    assert job["extends"] == ".xtrace-gate" and job["image"] == "python:3.12", job
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


def check_real_gpu(repo):
    """Without --simulate, the jobs ask for a GPU."""
    said = repo.init(0, "github", *FROM, "--", "sh", PROGRAM)
    assert "--simulate" not in said and "bench -n 5 -- " in said, said
    (job,) = yaml.safe_load(repo.read(GITHUB[0]))["jobs"].values()
    assert job["runs-on"] == ["self-hosted", "gpu"], job
    assert job["steps"][1]["with"]["bench-options"] == "", job
    repo.init(0, "gitlab", "--force", *FROM, "--", "sh", PROGRAM)
    job = yaml.safe_load(repo.read(GITLAB[0]))["gpu-time"]
    assert job["tags"] == ["gpu"] and job["variables"]["XTRACE_GATE_BENCH_OPTIONS"] == "", job


def check_existing(repo):
    """Existing files stay."""
    with open(repo.path(GITLAB[0]), "w", encoding="utf-8") as file:
        file.write("stages: [test]\n")
    with open(repo.path(".gitattributes"), "w", encoding="utf-8") as file:
        file.write("*.bin -diff")
    said = repo.init(0, "gitlab", *FROM, "--", "sh", PROGRAM)
    assert "exists and was not changed" in said and "\n  extends: .xtrace-gate\n" in said, said
    assert repo.read(GITLAB[0]) == "stages: [test]\n"
    assert repo.read(".gitattributes") == "*.bin -diff\n.xtrace/baseline.json merge=union\n"
    before = repo.files()
    for kept in (".xtrace/rules", ".xtrace/ci/gate.sh"):
        said = repo.init(2, "github", *FROM, "--", "sh", PROGRAM)
        assert f"cannot write '{kept}': it exists" in said and repo.files() == before, said
        os.unlink(repo.path(kept))
        del before[kept]
    with open(repo.path(".xtrace", "rules"), "w", encoding="utf-8") as file:
        file.write("gpu-time > 50%\n")
    repo.init(0, "github", "--force", *FROM, "--", "sh", PROGRAM)
    assert "gpu-time > 3%\n" in repo.read(".xtrace", "rules")
    assert repo.read(".gitattributes").count("merge=union") == 1
    assert 'xtrace: "/opt/xtrace"' in repo.read(GITHUB[0])


def check_pip(repo):
    """The job installs a released version with pip. Another version is refused."""
    with open(CHANGELOG, encoding="utf-8") as file:
        version, state = re.search(r"^## (\S+) (.*)", file.read(), re.M).groups()
    if state == "(unreleased)":
        said = repo.init(2, "gitlab", "-s", "--", "sh", PROGRAM)
        assert f"version {version} is not released" in said and "--xtrace" in said, said
        assert repo.files() == repo.at_first
        return
    repo.init(0, "github", "-s", "--", "sh", PROGRAM)
    assert f'xtrace: "xtrace-gpu=={version}"' in repo.read(GITHUB[0])


def check_refused(repo):
    """Each of these ends with status 2, a reason, and nothing written."""
    for arguments, says in ((["github", "-n", "3", *FROM, "--", "true"], "--runs was removed"),
                            (["github", *FROM, "--", "no-such-program"], "command not found"),
                            (["githup", "--", "true"], "unknown CI system 'githup'"),
                            (["github", "-s"], "no program given"),
                            ([], "no CI system given")):
        said = repo.init(2, *arguments)
        assert says in said and repo.files() == repo.at_first, (arguments, said)
    os.rename(repo.path(".git"), repo.path("bin", "git"))
    assert "git init" in repo.init(2, "github", *FROM, "--", "sh", PROGRAM)
    assert repo.files() == repo.at_first
    os.rename(repo.path("bin", "git"), repo.path(".git"))
    with open(repo.path(".github"), "w", encoding="utf-8") as file:
        file.write("not a folder\n")
    said = repo.init(2, "github", *FROM, "--", "sh", PROGRAM)
    assert f"to '{GITHUB[0]}': Not a directory" in said, said


def check_guide(repo):
    """The commands at the beginning of the guide set up a check that passes."""
    with open(os.path.join(repo.args.ci, "..", "..", "docs", "CI.md"), encoding="utf-8") as file:
        block = re.search(r"## Set up a check\n\n.*\n\n((?:    .*\n)+)", file.read())[1]
    with open(repo.path("bench", "step.py"), "w", encoding="utf-8") as file:
        file.write(f"import os\nos.execl('{repo.args.sample}', 'step', '--tokens', '40')\n")
    lines = [line for line in block.splitlines() if " xtrace " in line]
    assert len(lines) == 3 and lines[0].split()[:3] == ["xtrace", "ci", "init"], lines
    lines[0] = lines[0].replace("github", f"github --xtrace {repo.args.build}")
    repo.shell(0, "set -e\n" + "\n".join(lines).replace("bench -n", "bench --simulate -n"))
    assert 'command: "python3 bench/step.py"' in repo.read(GITHUB[0]), repo.read(GITHUB[0])
    repo.shell(0, "XTRACE_GATE_COMMAND='python3 bench/step.py' "
                  "XTRACE_GATE_BENCH_OPTIONS=--simulate .xtrace/ci/gate.sh")


def main():
    args = parse_arguments()
    for check in (check_github, check_gitlab, check_real_gpu, check_existing, check_pip,
                  check_refused, check_guide):
        with tempfile.TemporaryDirectory() as folder:
            check(EmptyRepository(args, folder))
    print("xtrace ci init sets up both CI systems")


if __name__ == "__main__":
    sys.exit(main())
