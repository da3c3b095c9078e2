#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The GitHub action and the GitLab template: their shell steps, run as the CI systems run them."""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree

import yaml

# Detected warm-up depends on the load of the machine, so fix it.
PROFILE_OPTIONS = "--warmup 4"
# Every other run of a side takes twice as long, so the result is inconclusive.
UNSURE = ("echo >>%s.txt; n=$(($(wc -l <%s.txt) %% 2 * 10000 + 10000)); "
          "XTRACE_SIMGPU_KERNEL_NS=$n:$n exec %s")
SHIPPED = ("bin/xtrace", "bin/xtrace-merge",
           "lib/libxtrace_inject.so", "lib/xtrace/simgpu")
# Comments are files named by their number. It evaluates --jq itself.
FAKE_GH = """#!/bin/sh
echo "$@" >>"$GH_LOG"
mkdir -p "$GH_LOG.comments"
cd_from=$PWD
cd "$GH_LOG.comments"
case "$*" in
*PATCH*comments/*)
	number=$(echo "$*" | sed 's,.*comments/\\([0-9]*\\).*,\\1,')
	test -e "$number" && cat "$cd_from/${*##*body=@}" >"$number"
	;;
"api --paginate repos/{owner}/{repo}/issues/42/comments --jq .[] | select(.body | startswith("*)
	grep -l '^<!-- xtrace gate -->' * /dev/null || true
	;;
"pr comment 42 --body-file "*)
	cat "$cd_from/$5" >"$(($(ls | wc -l) + 1))"
	;;
*)
	exit 1
	;;
esac
"""


def make_tarball(args, path):
    """A release with what the gate needs."""
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name in SHIPPED:
            tar.add(os.path.join(args.build, name), "xtrace-0/" + name)
        tar.add(args.ci, "xtrace-0/share/xtrace/ci")


class Repository:
    """A checkout in which jobs run."""

    def __init__(self, args, folder, has_tarball=True):
        self.args, self.folder = args, folder
        self.tarball = os.path.join(folder, "release.tar.gz")
        if has_tarball:
            make_tarball(args, self.tarball)
        self.command = args.sample + " --layers 1 --dim 64 --tokens 40"
        os.mkdir(os.path.join(folder, "bin"))
        with open(os.path.join(folder, "bin", "gh"), "w", encoding="utf-8") as file:
            file.write(FAKE_GH)
        os.chmod(os.path.join(folder, "bin", "gh"), 0o755)
        with open(os.path.join(args.ci, "github", "action.yml"), encoding="utf-8") as file:
            self.action = yaml.safe_load(file)
        with open(os.path.join(args.ci, "gitlab", "xtrace-gate.yml"), encoding="utf-8") as file:
            self.template = yaml.safe_load(file)[".xtrace-gate"]

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def read(self, *parts):
        with open(self.path(*parts), encoding="utf-8") as file:
            return file.read()

    def environment(self, **more):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("XTRACE", "GITHUB", "CI_"))}
        return {**keep, "PATH": self.path("bin") + ":" + os.environ["PATH"],
                "GH_LOG": self.path("gh.log"), **more}

    def github(self, status, **inputs):
        """Runs the action. Returns its outputs and the files it wrote."""
        given = {name: spec.get("default", "") for name, spec in self.action["inputs"].items()}
        given.update({"xtrace": self.tarball, "runs": "3", "warmup": "0",
                      "bench-options": "--simulate", "command": self.command,
                      "profile-options": PROFILE_OPTIONS})
        given.update({name.replace("_", "-"): value for name, value in inputs.items()})
        assert set(given) == set(self.action["inputs"]), given
        for name in ("output.txt", "summary.md"):
            open(self.path(name), "w", encoding="utf-8").close()
        environment = self.environment(
            GITHUB_ACTIONS="true", GITHUB_SHA="0123abcd", GITHUB_OUTPUT=self.path("output.txt"),
            GITHUB_STEP_SUMMARY=self.path("summary.md"),
            GITHUB_ACTION_PATH=os.path.join(self.args.ci, "github"))
        failed, log = 0, ""
        for step in self.action["runs"]["steps"]:
            condition = step.get("if", "")
            if condition and not evaluate(condition, given) or failed and "always()" not in condition:
                continue
            assert step["shell"] == "sh"
            env = {k: str(evaluate(v, given)) for k, v in step["env"].items()}
            done = subprocess.run(["sh", "-e", "-c", step["run"]], cwd=self.folder, text=True,
                                  capture_output=True, env={**environment, **env})
            log += done.stdout + done.stderr
            failed = failed or done.returncode
        assert failed == status, (failed, log)
        outputs = dict(line.split("=", 1) for line in self.read("output.txt").splitlines())
        assert set(self.action["outputs"]) == set(outputs), outputs
        assert self.read("summary.md") == self.read(outputs["report"])
        return outputs["verdict"], self.read(outputs["report"]), log

    def gitlab(self, status, **variables):
        given = {**self.template["variables"], "XTRACE_GATE_XTRACE": self.tarball,
                 "XTRACE_GATE_COMMAND": self.command, "XTRACE_GATE_RUNS": "3",
                 "XTRACE_GATE_WARMUP": "0", "XTRACE_GATE_BENCH_OPTIONS": "--simulate",
                 "XTRACE_GATE_PROFILE_OPTIONS": PROFILE_OPTIONS,
                 "CI_COMMIT_SHA": "4567cdef", **variables}
        environment = self.environment(**{k: str(v) for k, v in given.items()})
        script = "set -e\n" + "\n".join(self.template["script"])
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, text=True,
                              capture_output=True, env=environment)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr


def evaluate(text, inputs):
    """Evaluates the subset of GitHub's expressions that the action uses."""

    def value(expression):
        expression = expression.strip()
        if expression.startswith("inputs.") and " " not in expression:
            return inputs[expression[len("inputs."):]]
        if expression == "github.token":
            return "token"
        if expression == "github.event.pull_request.number":
            return "42"
        match = re.fullmatch(r"inputs\.([\w-]+) == 'true' && '1' \|\| ''", expression)
        if match:
            return "1" if inputs[match[1]] == "true" else ""
        match = re.fullmatch(r"always\(\) && inputs\.([\w-]+) == 'true'", expression)
        assert match, expression
        return inputs[match[1]] == "true"

    whole = re.fullmatch(r"\$\{\{(.*)\}\}", str(text))
    assert whole or "${{" not in str(text), text
    return value(whole[1]) if whole else text


def check_junit(repo, failures, errors):
    suites = xml.etree.ElementTree.fromstring(repo.read("xtrace-gate", "junit.xml"))
    (suite,) = suites
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests")) > 0
    assert len(suite.findall("testcase/failure")) == int(suite.get("failures")), suite.attrib
    assert len(suite.findall("testcase/error")) == int(suite.get("errors")), suite.attrib
    assert (suite.get("failures") != "0", suite.get("errors") != "0") == (failures, errors)


def check_github(repo):
    verdict, report, log = repo.github(2)
    assert verdict == "unsure" and "there is no baseline" in report, report
    assert "::error title=GPU time::" in log

    verdict, report, _ = repo.github(0, update_baseline="true")
    assert verdict == "pass" and "the baseline was written" in report
    assert '"label":"0123abcd"' in repo.read(".xtrace", "baseline.json")

    verdict, report, _ = repo.github(0)
    assert verdict == "pass" and ("no regression" in report or "no rule failed" in report), report
    check_junit(repo, False, False)

    # More work of the same kind. The comment is made although the gate fails.
    slower = repo.command.replace("--layers 1", "--layers 2")
    verdict, report, log = repo.github(1, command=slower, comment="true")
    assert verdict == "regression" and "matmul" in report and "llm_inference.c:" in report, report
    assert "::error title=GPU time::" in log and "REGRESSION" in log
    has_page = subprocess.run([os.path.join(repo.args.build, "bin", "xtrace"), "diff", "--check",
                               "--html", "x"], cwd=repo.folder, capture_output=True).returncode == 0
    assert os.path.exists(repo.path("xtrace-gate", "flame.html")) == has_page
    check_junit(repo, True, False)
    assert repo.read("gh.log.comments", "1") == report
    # After a comment by somebody else, only ours changes.
    with open(repo.path("gh.log.comments", "2"), "w", encoding="utf-8") as file:
        file.write("Oh no.\n")
    _, again, _ = repo.github(0, comment="true")
    assert repo.read("gh.log.comments", "1") == again != report
    assert repo.read("gh.log.comments", "2") == "Oh no.\n"
    assert sorted(os.listdir(repo.path("gh.log.comments"))) == ["1", "2"]

    # Rules from the file at its default path, and from the input, one per line.
    with open(repo.path(".xtrace", "rules"), "w", encoding="utf-8") as file:
        file.write("gpu-time > 90000%\n")
    assert repo.github(0, command=slower)[0] == "pass"
    verdict, report, _ = repo.github(1, command=slower, fail_on="launches > 0\ngpu-time < 1ns\n")
    assert "gpu-time < 1ns" in report and "launches > 0" in report
    # A rule that matches nothing is not noise: it never passes.
    for unsure in ("fail", "pass"):
        verdict, report, _ = repo.github(2, fail_on="path(no_such_function) > 1%", unsure=unsure)
        assert verdict == "unsure" and "no_such_function" in report, report
    check_junit(repo, False, True)
    # A syntax error is shown with its position.
    verdict, report, _ = repo.github(2, fail_on="launches >> 0", unsure="pass")
    assert verdict == "unsure" and "launches >> 0" in report and "^" in report, report
    # It is reported before anything runs.
    verdict, report, log = repo.github(2, fail_on="launches >> 0", command="echo it was run >&2")
    assert "launches >> 0" in report and "it was run" not in log, log
    os.unlink(repo.path(".xtrace", "rules"))
    # An unreadable baseline is reported too, for a comparison and for an update.
    baseline = repo.read(".xtrace", "baseline.json")
    for text, says in ((baseline.replace('"version":1', '"version":9'), "version 9"),
                       (baseline[:-200], "baseline")):
        assert text != baseline
        with open(repo.path(".xtrace", "baseline.json"), "w", encoding="utf-8") as file:
            file.write(text)
        for update in ("false", "true"):
            verdict, report, log = repo.github(2, command="echo it was run >&2", unsure="pass",
                                               update_baseline=update)
            assert verdict == "unsure" and "cannot be read" in report and says in report, report
            assert "it was run" not in log, log
    with open(repo.path(".xtrace", "baseline.json"), "w", encoding="utf-8") as file:
        file.write(baseline)

    # Noisy runs cannot show a small change.
    noisy = {"runs": "2", "fail_on": "gpu-time > 1%",
             "command": UNSURE % ("new", "new", repo.command),
             "base_command": UNSURE % ("base", "base", repo.command)}
    assert repo.github(2, **noisy)[0] == "unsure"
    verdict, report, log = repo.github(0, unsure="pass", **noisy)
    assert verdict == "unsure" and "::warning title=GPU time::" in log, log

    verdict, report, _ = repo.github(2, command="exit 3")
    assert verdict == "unsure" and "ended with exit status 3" in report, report
    verdict, report, _ = repo.github(2, xtrace="/no/such/place")
    assert "there is no `/no/such/place`" in report

    # Both sides in one job, without the baseline.
    os.unlink(repo.path(".xtrace", "baseline.json"))
    assert repo.github(0, base_command=repo.command)[0] == "pass"
    assert repo.github(1, base_command=repo.command, command=slower)[0] == "regression"

    checksum = hashlib.sha256(open(repo.tarball, "rb").read()).hexdigest()
    assert repo.github(0, base_command=repo.command, sha256=checksum)[0] == "pass"
    verdict, report, _ = repo.github(2, base_command=repo.command, sha256="0" * 64)
    assert "has another checksum" in report


def check_guide(repo):
    """The rules in the guide can be read."""
    with open(os.path.join(repo.args.ci, "..", "..", "docs", "CI.md"), encoding="utf-8") as file:
        block = re.search(r"one per line:\n\n((?:    .*\n)+)", file.read())[1]
    with open(repo.path("rules"), "w", encoding="utf-8") as file:
        file.write("".join(line[4:] + "\n" for line in block.splitlines()))
    repo.gitlab(0, XTRACE_GATE_UPDATE="1")
    done = subprocess.run([os.path.join(repo.args.build, "bin", "xtrace"), "diff", "--rules", "rules",
                           ".xtrace/baseline.json", "xtrace-gate/bench"], cwd=repo.folder, text=True,
                          capture_output=True)
    assert len(block.splitlines()) > 5 and "gpu-time > 3%" in done.stdout, done
    # An unreadable rule is shown with a caret below it.
    assert not re.search(r"^ *\^$", done.stdout + done.stderr, re.M), done


def check_pip(repo):
    """A version of the package is installed with pip. The stand-in for venv makes such a pip."""
    with open(repo.path("bin", "python3"), "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nmkdir -p "$3/bin"\ncat >"$3/bin/pip" <<EOF\n#!/bin/sh\n'
                   'echo "\\$*" >pip.txt\n'
                   f'ln -sf {repo.args.build}/bin/xtrace "$PWD/$3/bin/xtrace"\nEOF\n'
                   'chmod +x "$3/bin/pip"\n')
    os.chmod(repo.path("bin", "python3"), 0o755)
    verdict, report, _ = repo.github(0, xtrace="xtrace-gpu==1.2.3", update_baseline="true")
    assert verdict == "pass" and repo.read("pip.txt") == "install --quiet xtrace-gpu==1.2.3\n", report
    with open(repo.path("bin", "python3"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 1\n")
    verdict, report, _ = repo.github(2, xtrace="xtrace-gpu==1.2.3")
    assert "pip cannot install `xtrace-gpu==1.2.3`" in report, report


def check_refused(repo):
    """An error of the shell or an unknown word is no verdict."""
    gate = os.path.join(repo.args.ci, "gate.sh")
    for more, says in (({"XTRACE_GATE_OUTPUT": "gh.log/x"}, ""),
                       ({"XTRACE_GATE_UPDATE": "1", "XTRACE_GATE_BASELINE": "gh.log/x/b",
                         "XTRACE_GATE_XTRACE": repo.args.build}, "cannot be written to"),
                       ({"XTRACE_GATE_UNSURE": "psas"}, "is fail or pass"),
                       ({"XTRACE_GATE_UPDATE": "true"}, "is 1 or nothing")):
        open(repo.path("gh.log"), "w", encoding="utf-8").close()
        done = subprocess.run(["sh", gate], cwd=repo.folder, text=True, capture_output=True,
                              env=repo.environment(XTRACE_GATE_COMMAND="true", **more))
        assert done.returncode == 2 and says in done.stderr, done


def check_gitlab(repo):
    checksum = hashlib.sha256(open(repo.tarball, "rb").read()).hexdigest()
    log = repo.gitlab(2, XTRACE_GATE_UPDATE="1", XTRACE_GATE_SHA256="0" * 64)
    assert "has another checksum" in log
    assert not os.listdir(repo.path("xtrace-gate", "release"))
    repo.gitlab(0, XTRACE_GATE_UPDATE="1", XTRACE_GATE_SHA256=checksum)
    assert '"label":"4567cdef"' in repo.read(".xtrace", "baseline.json")
    repo.gitlab(0, XTRACE_GATE_UPDATE="1", XTRACE_GATE_LABEL="again")
    assert repo.read(".xtrace", "baseline.json").count('"label"') == 2
    repo.gitlab(0)
    log = repo.gitlab(1, XTRACE_GATE_COMMAND=repo.command.replace("--layers 1", "--layers 2"))
    assert "xtrace gate: " in log and "::error" not in log, log
    artifacts = repo.template["artifacts"]
    for path in artifacts["paths"] + [artifacts["reports"]["junit"]]:
        assert os.path.exists(repo.path(path)) or path.endswith(".html"), path
    check_junit(repo, True, False)


def parse_arguments():
    parser = argparse.ArgumentParser()
    for name in ("build", "ci", "sample"):
        parser.add_argument("--" + name, required=True)
    return parser.parse_args()


def main():
    args = parse_arguments()
    for check in (check_github, check_gitlab, check_guide, check_pip, check_refused):
        with tempfile.TemporaryDirectory() as folder:
            check(Repository(args, folder))
    print("the gate works in both CI systems")


if __name__ == "__main__":
    sys.exit(main())
