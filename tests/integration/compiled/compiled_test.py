# SPDX-License-Identifier: Apache-2.0
"""usage: compiled_test.py XTRACE PROGRAM

Records a stand-in for torch.compile on the simulated GPU, and checks that the user's lines replace
the generated code in the call paths.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

GENERATED = "cab" + "x" * 49 + ".py"
FUSED = "forward (model.py:25);block (model.py:13) [fused: model.py:13 model.py:15]"
ADDMM = "forward (model.py:26);block (model.py:14)"
WITHOUT_LINES = "Runner.call (%s:19) [aten.gelu]" % GENERATED
OTHER_CALL = "Runner.call (%s:20)" % GENERATED
REMEDY = "TORCHINDUCTOR_CACHE_DIR"


class Case:
    def __init__(self, xtrace, program, folder):
        self.xtrace, self.program, self.folder = xtrace, program, folder

    def record(self, name, options=(), status=0, cache="cache", folder=None, **environment):
        self.data = os.path.join(self.folder, "data")
        known = {key: value for key, value in os.environ.items()
                 if key not in ("TORCH_TRACE", "INDUCTOR_PROVENANCE")}
        done = subprocess.run(
            [self.xtrace, "record", "--simulate", *options, "-o", self.data, "--", sys.executable,
             self.program, name, os.path.join(self.folder, cache)],
            env=dict(known, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=folder)
        assert done.returncode == status, (name, done)
        return done.stdout

    def merge(self, *options):
        done = subprocess.run([self.xtrace, "merge", "--quiet", self.data, *options],
                              stdout=subprocess.PIPE, text=True)
        assert done.returncode in (0, 1), done  # 1: the log of a killed process
        return done.stdout

    def paths(self, *options):
        return [line.rsplit(" ", 1)[0] for line in self.merge("--folded", "-", *options).splitlines()]

    def unknown_ns(self):
        return json.loads(self.merge("--summary", "-"))["compiled"]["unknown_gpu_time_ns"]

    def torch_logs(self, folder=None):
        return glob.glob(os.path.join(folder or self.data, "*torch_trace*"))


def has(paths, frames):
    return sum(frames in path for path in paths)


def check_lines(case):
    paths = case.paths()
    assert has(paths, FUSED) == 1, paths
    assert has(paths, ADDMM) == 1, paths
    assert has(paths, WITHOUT_LINES) == 1, paths
    assert has(paths, OTHER_CALL) == 1 and not has(paths, OTHER_CALL + " ["), paths
    assert case.unknown_ns() == 0
    assert REMEDY not in case.merge("--text", "-", "--all")


def test_shows_lines_and_deletes_source(case):
    said = case.record("cold")
    assert said == "INDUCTOR_PROVENANCE=1 TORCH_TRACE=%s\n" % os.path.realpath(case.data), said
    check_lines(case)
    left = sorted(os.listdir(case.data))
    assert all(name == "info.json" or name.endswith(".xtr") for name in left), left


def test_keeps_logs_of_user(case):
    own = os.path.join(case.folder, "own")
    said = case.record("cold", TORCH_TRACE=own, INDUCTOR_PROVENANCE="2")
    assert said == "INDUCTOR_PROVENANCE=2 TORCH_TRACE=%s\n" % own, said
    check_lines(case)
    assert len(case.torch_logs(own)) == 1
    assert not case.torch_logs()


def test_relative_folder_of_user_is_found(case):
    said = case.record("cold", TORCH_TRACE="own", folder=case.folder)
    assert "TORCH_TRACE=%s/own\n" % os.path.realpath(case.folder) in said, said
    check_lines(case)


def test_empty_setting_counts_as_unset(case):
    assert "INDUCTOR_PROVENANCE=1" in case.record("cold", TORCH_TRACE="", INDUCTOR_PROVENANCE="")
    check_lines(case)


def test_reads_comments_without_logs(case):
    said = case.record("cold", options=["--no-torch-trace"])
    assert said == "INDUCTOR_PROVENANCE=None TORCH_TRACE=None\n", said
    paths = case.paths()
    assert has(paths, "Runner.call (%s:12) [gelu, x]" % GENERATED) == 1, paths
    assert has(paths, "Runner.call (%s:16) [linear]" % GENERATED) == 1, paths
    assert has(paths, WITHOUT_LINES) == 1, paths
    assert case.unknown_ns() > 0
    assert "unknown for 100.0 % of GPU time" in re.sub(r"\s+", " ", case.merge("--text", "-", "--all"))


def test_warm_cache_states_share_and_remedy(case):
    case.record("warm")
    paths = case.paths()
    assert has(paths, "Runner.call (%s:16) [linear]" % GENERATED) == 1, paths
    assert case.unknown_ns() > 0
    assert REMEDY in case.merge("--text", "-", "--all")
    assert REMEDY in " ".join(json.loads(case.merge("--summary", "-"))["trust"]["reasons"])
    assert not case.torch_logs()


def test_lines_of_unchanged_source_are_shown(case):
    case.record("fresh")
    check_lines(case)


def check_no_lines(case):
    paths = case.paths()
    assert not has(paths, "forward (model.py"), paths
    assert has(paths, "Runner.call (%s:16) [linear]" % GENERATED) == 1, paths
    assert case.unknown_ns() > 0


def test_lines_of_changed_source_are_unknown(case):
    case.record("moved")
    check_no_lines(case)


def test_lines_of_two_functions_are_unknown(case):
    case.record("twins")
    check_no_lines(case)


def test_tells_compilations_apart(case):
    case.record("interleaved")
    check_lines(case)


def test_lines_of_other_files_are_not_taken(case):
    case.record("foreign")
    check_lines(case)


def test_survives_broken_records(case):
    case.record("broken")
    check_lines(case)


def test_killed_program_keeps_lines(case):
    case.record("killed", status=128 + 9)
    check_lines(case)
    assert not case.torch_logs()


def test_each_process_has_its_lines(case):
    case.record("processes")
    paths = case.paths("--by", "process")
    assert has(paths, ADDMM) == 1, paths
    assert has(paths, "forward (model.py:77);block (model.py:78)") == 1, paths
    assert has(paths, FUSED) == 2, paths


def test_program_without_pytorch_leaves_nothing(case):
    case.record("plain")
    left = sorted(os.listdir(case.data))
    assert left[0].endswith(".xtr") or left[0] == "info.json", left
    assert len(left) == 2, left


def test_no_torch_trace_leaves_logs_of_user_alone(case):
    own = os.path.join(case.folder, "own")
    os.mkdir(own)
    case.record("cold", options=["--no-torch-trace"], TORCH_TRACE=own)
    assert len(case.torch_logs(own)) == 1
    assert not has(case.paths(), FUSED)


def main():
    xtrace, program = sys.argv[1:]
    tests = [(name, test) for name, test in sorted(globals().items()) if name.startswith("test_")]
    for name, test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(Case(xtrace, program, folder))
        print("ok %s" % name)


main()
