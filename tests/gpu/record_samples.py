#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the sample traces of samples/traces that this machine can record.

    tests/gpu/record_samples.py --xtrace ROOT/bin/xtrace OUT
    tests/gpu/record_samples.py --list samples/traces

The traces get the name of the GPU: OUT/h200-pytorch.xtr. Programs and xtrace are copied into a
neutral folder first, so that the logs contain no path of a checkout. Each log gets its symbols and
is checked: closed and complete, with a call path for each kernel, without a private path, and not
larger than --max-kib. At the end, the traces that this machine cannot record are listed, with the
versions of those in samples/traces. --list only prints the versions. A busy machine is refused,
because its load would show in the traces.

Exit status: 0 all that can be recorded was, 1 not, 2 usage.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from compare_runs import gpu_names

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
TRACES = os.path.join(CHECKOUT, "samples", "traces")
LIMIT_S = 180
BUSY_SHARE = 0.2  # of the processors
# Where a log may have files from: the system, installed packages, and the neutral folder.
PUBLIC = ("/usr/", "/lib/", "/lib64/", "/opt/", "/bin/", "/proc/", "/sys/", "/dev/", "/etc/", "/run/",
          "/tmp/torchinductor", "/build/", "/rustc/", "/pytorch/", "/var/lib/", "/nix/")
PATH = re.compile(r"(?<![\w.:/<>-])/[A-Za-z][\w.+-]*(?:/[\w.+-]+)+")


class Sample:
    """One trace. options: of `xtrace record`. needs: packages. files: copied from the checkout.

    A trace with CPU samples, or of several ranks, is a folder. Others are the log of one process.
    """

    def __init__(self, name, command, options=(), needs=(), files=(), gpus=1, ranks=None):
        self.name, self.command, self.options = name, command, list(options)
        self.needs, self.files, self.gpus, self.ranks = needs, files, gpus, ranks
        self.is_folder = ranks is not None or "--cpu" in self.options
        self.has_backward = name not in ("triton", "idle")


TRAINING, WORK = "tests/gpu/training.py", "samples/python_work.py"
TRAIN = "samples/pytorch_train.py"
RANKS = ("tests/gpu/ranks.py", "tests/gpu/ranks_work.py", "tests/gpu/gpu_results.py")
SAMPLES = (
    Sample("training", ["python3", "training.py", "transformer", "--steps", "20"], [],
           ["torch"], [TRAINING]),
    Sample("gpt2", ["python3", "training.py", "gpt2", "--steps", "5"], [],
           ["torch", "transformers"], [TRAINING]),
    Sample("pytorch", ["python3", "pytorch_train.py", "--steps", "20"], [], ["torch"],
           [TRAIN]),
    Sample("pytorch-graph", ["python3", "pytorch_train.py", "--steps", "20", "--graph"],
           [], ["torch"], [TRAIN]),
    Sample("pytorch-work", ["python3", "torch_work.py"], [], ["torch"],
           ["tests/gpu/torch_work.py"]),
    Sample("compile", ["python3", "python_work.py", "compile", "--steps", "20"], [],
           ["torch", "triton"], [WORK]),
    Sample("jax", ["python3", "python_work.py", "jax", "--steps", "20"], [], ["jax"], [WORK]),
    Sample("triton", ["python3", "triton_double.py"], [], ["torch", "triton"],
           ["tests/gpu/triton_double.py"]),
    Sample("cupy", ["python3", "-c", "import cupy; print(cupy.arange(1000).astype('f').sum())"], [],
           ["cupy"]),
    Sample("llm", ["./llm_inference", "--threads", "2", "--streams", "2"]),
    Sample("idle", ["python3", "pytorch_idle.py", "--case", "slow_collate", "--seconds", "1.5"],
           ["--cpu", "--capture-range", "cudaProfilerApi"], ["torch"],
           ["samples/idle/pytorch_idle.py"]),
    Sample("work", ["./work"]),
    Sample("ddp", ["--kind", "ddp", "--slow", "none"], needs=["torch"], files=RANKS, gpus=4,
           ranks=4),
    Sample("ddp-loader", ["--kind", "ddp", "--slow", "loader"], needs=["torch"], files=RANKS,
           gpus=4, ranks=4),
)


def rows_of(dump, log, *kinds):
    options = [text for kind in kinds for text in ("--kind", kind)]
    done = subprocess.run([sys.executable, dump, "--format", "json", *options, log],
                          capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row.get("record") == "row":
            yield row


def facts_of(dump, logs):
    """What the logs of a trace say of themselves, for the list of versions."""
    meta, counts = {}, {"AUTOGRAD": 0, "CPU_SAMPLE": 0, "KERNEL": 0}
    for log in logs:
        for row in rows_of(dump, log, "META", *counts):
            if row["kind"] == "META":
                meta[row["key"]] = row["value"]
            else:
                counts[row["kind"]] += 1
    return meta, counts


def print_versions(dump, folder, names=None):
    """Prints a table of the traces in a folder."""
    print("| trace | GPU | xtrace | CUPTI | PyTorch | kernels | backward lines | multiprocessors "
          "| CPU samples |\n|" + " --- |" * 9)
    for path in sorted(glob.glob(os.path.join(folder, "*"))):
        name = os.path.basename(path).replace(".xtr", "")
        logs = sorted(glob.glob(os.path.join(path, "*.xtr"))) if os.path.isdir(path) else [path]
        if not logs or not logs[0].endswith(".xtr") or (names is not None and name not in names):
            continue
        meta, counts = facts_of(dump, logs)
        print("| %s | %s | %s | %s | %s | %d | %s | %s | %s |" % (
            name, meta.get("gpu.0.name", "?"), meta.get("xtrace.version", "?"),
            meta.get("cupti.version", "-"), meta.get("torch.version", "-"), counts["KERNEL"],
            "yes" if counts["AUTOGRAD"] else "no", meta.get("gpu.0.multiprocessors", "not known"),
            "yes" if counts["CPU_SAMPLE"] else "no"))


class Recorder:
    def __init__(self, options):
        self.options, self.folder = options, options.folder
        self.out = os.path.abspath(options.out)
        os.makedirs(self.out, exist_ok=True)
        os.makedirs(self.folder)
        root = os.path.dirname(os.path.dirname(os.path.abspath(shutil.which(options.xtrace))))
        self.root = os.path.join(self.folder, "xtrace")
        for part in ("bin", "lib", "libexec"):
            if os.path.isdir(os.path.join(root, part)):
                shutil.copytree(os.path.join(root, part), os.path.join(self.root, part),
                                symlinks=True, ignore=shutil.ignore_patterns("test*", "*.a"))
        self.xtrace = os.path.join(self.root, "bin", "xtrace")
        self.dump = os.path.join(CHECKOUT, "tests", "tools", "xtrace-dump")
        for sample in (os.path.join(root, "share", "xtrace", "samples", "llm_inference"),
                       os.path.join(root, "bin", "samples", "llm_inference")):
            if os.path.exists(sample):
                shutil.copy2(sample, self.folder)
                break
        self.gpus = gpu_names() or ["unknown"]
        found = re.search(r"\b([A-Z]+\d+\w*)", self.gpus[0] if self.gpus else "")
        self.prefix = options.prefix or (found.group(1).lower() if found else "gpu")
        # Caches of compiled code would be in the home folder.
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", HOME=self.folder,
                                TRITON_CACHE_DIR=os.path.join(self.folder, "triton"))

    def why_not(self, sample):
        """The reason why a sample cannot be recorded here, or None."""
        if len(self.gpus) < sample.gpus and not self.options.simulate:
            return "needs %d GPUs, here are %d" % (sample.gpus, len(self.gpus))
        code = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, %r)))"
        if sample.needs and subprocess.run([self.options.python, "-c", code % list(sample.needs)],
                                           check=False).returncode:
            return "needs " + ", ".join(sample.needs)
        if sample.command[0] == "./work" and not self.compile_work():
            return "cannot compile work.c"
        if sample.command[0] == "./llm_inference" and not os.path.exists(
                os.path.join(self.folder, "llm_inference")):
            return "the installation has no llm_inference"
        return None

    def compile_work(self):
        cuda = self.options.cuda
        shutil.copy2(os.path.join(CHECKOUT, "tests/gpu/work.c"), self.folder)
        return subprocess.run(
            ["cc", "-O2", "-g", "-fno-optimize-sibling-calls", "-I", cuda + "/include", "-o",
             "work", "work.c", "-L", cuda + "/lib64/stubs", "-Wl,-z,lazy", "-lcuda", "-ldl"],
            cwd=self.folder, capture_output=True, check=False).returncode == 0

    def command_of(self, sample, trace):
        if sample.ranks:  # this script starts one recorder for each rank
            return [self.options.python, "ranks.py", os.path.join(self.root, "bin"), "--ranks",
                    str(sample.ranks), *sample.command, "--steps", "12", "-k", trace]
        command = [self.options.python if word == "python3" else word for word in sample.command]
        simulate = ["--simulate"] if self.options.simulate else []
        return [self.xtrace, "record", *simulate, *sample.options, "-o", trace, "--", *command]

    def record(self, sample):
        """Returns the problems of a sample. Moves its logs to the output."""
        for file in sample.files:
            shutil.copy2(os.path.join(CHECKOUT, file), self.folder)
        trace = os.path.join(self.folder, "trace-" + sample.name)
        environment = dict(self.environment)
        if not sample.ranks:  # the same on a machine with several GPUs
            environment["CUDA_VISIBLE_DEVICES"] = "0"
        done = subprocess.run(self.command_of(sample, trace), cwd=self.folder, capture_output=True,
                              env=environment, text=True, timeout=LIMIT_S, check=False)
        said = [line for line in done.stderr.splitlines() if line.startswith("xtrace: ")]
        print("%s: %s" % (sample.name, "; ".join(said) or done.stdout.strip()[-200:]), flush=True)
        if done.returncode:
            return ["%s ends with %d: %s" % (sample.name, done.returncode,
                                             (done.stdout + done.stderr).strip()[-600:])]
        logs = sorted(glob.glob(os.path.join(trace, "**", "*.xtr"), recursive=True),
                      key=os.path.getsize)
        if not logs:
            return ["%s: no log" % sample.name]
        name = os.path.join(self.out, "%s-%s" % (self.prefix, sample.name))
        targets = {logs[-1]: name + ".xtr"}
        if sample.is_folder:
            shutil.rmtree(name, ignore_errors=True)
            os.makedirs(name)
            targets = {log: os.path.join(name, self.name_of(sample, log, trace)) for log in logs}
        for log, target in targets.items():
            shutil.copy2(log, target)
            os.chmod(target, 0o644)
        return self.finish(sample, list(targets.values()))

    def name_of(self, sample, log, trace):
        """The name of a log in a folder, without the host."""
        if sample.ranks:
            rank = re.search(r"(\d+)$", os.path.relpath(os.path.dirname(log), trace))
            return "rank-%s.xtr" % (rank.group(1) if rank else os.path.basename(log))
        return re.sub(r"^.*?\.(\d+(\.cpu)?\.xtr)$", r"\1", os.path.basename(log))

    def finish(self, sample, logs):
        """Embeds symbols into the copied logs of a trace, and checks them."""
        embedded = subprocess.run([self.xtrace, "merge", "-q", "--embed-symbols", "--text",
                                   os.devnull, *logs], capture_output=True, text=True, check=False)
        problems = ["merge: " + embedded.stderr.strip()] if embedded.returncode else []
        single = tempfile.mkdtemp(dir=self.folder)
        for log in logs:
            shutil.copy2(log, single)
        checked = subprocess.run(
            [sys.executable, os.path.join(CHECKOUT, "tests", "tools", "check-trace.py"), single, "--dump",
             self.dump, "--merge", os.path.join(self.root, "bin", "xtrace-merge")],
            capture_output=True, text=True, check=False)
        if checked.returncode:
            problems.append("check-trace: " + (checked.stdout + checked.stderr).strip()[-400:])
        meta, counts = facts_of(self.dump, logs)
        for log in logs:
            problems += self.private_paths(log)
        if "torch" in sample.needs and sample.has_backward and not counts["AUTOGRAD"]:
            problems.append("no backward lines")
        if "gpu.0.multiprocessors" not in meta:
            problems.append("the number of multiprocessors is missing")
        if "--cpu" in sample.options and not counts["CPU_SAMPLE"]:
            problems.append("no CPU samples")
        if sample.command[0].startswith("./"):
            folded = subprocess.run([self.xtrace, "merge", "-q", "--folded", "-", *logs],
                                    capture_output=True, text=True, check=False).stdout
            if os.path.basename(sample.command[0]) + "+0x" in folded:
                problems.append("the program has no symbols: install it without --strip")
        size = sum(map(os.path.getsize, logs))
        largest = max(map(os.path.getsize, logs)) if sample.ranks else size
        if largest > self.options.max_kib << 10:
            problems.append("%.0f KiB is too large" % (largest / 1024))
        name = "%s-%s" % (self.prefix, sample.name)
        print("    %s: %d logs, %.1f KiB" % (name, len(logs), size / 1024), flush=True)
        return ["%s: %s" % (name, problem) for problem in problems]

    def private_paths(self, log):
        """Paths in a log that belong to no package and not to the neutral folder."""
        text = "\n".join(str(value) for row in rows_of(self.dump, log) for value in row.values()
                         if isinstance(value, str))
        found = {path for path in PATH.findall(text)
                 if not path.startswith((*PUBLIC, self.folder + "/")) and path != self.folder}
        return ["private path: " + path for path in sorted(found)[:5]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", help="a folder for the traces")
    parser.add_argument("--xtrace", help="the command, in an installed tree")
    parser.add_argument("--list", action="store_true", help="only list the traces in OUT")
    parser.add_argument("--python", default="python3", help="the Python that has the packages")
    parser.add_argument("--folder", default="/opt/samples", help="neutral folder (/opt/samples)")
    parser.add_argument("--cuda", default="/usr/local/cuda", help="the CUDA toolkit")
    parser.add_argument("--prefix", help="of the names (the name of the GPU)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only samples of this name")
    parser.add_argument("--max-kib", type=int, default=300, help="limit of a log (300)")
    parser.add_argument("--simulate", action="store_true", help="use the simulated GPU")
    options = parser.parse_args()
    dump = os.path.join(CHECKOUT, "tests", "tools", "xtrace-dump")
    if options.list:
        names = {name.replace(".xtr", "") for name in os.listdir(options.out)}
        print_versions(dump, options.out, {name for name in names if re.search(options.only, name)})
        return 0
    if not options.xtrace or not shutil.which(options.xtrace):
        parser.error("--xtrace must name the command")
    if os.getloadavg()[0] > os.cpu_count() * BUSY_SHARE and not options.simulate:
        parser.error("the machine is busy")
    if os.path.exists(options.folder):
        parser.error("%s exists; choose another --folder" % options.folder)
    problems, missing = [], {}
    try:
        recorder = Recorder(options)
        print("%s, prefix %s" % (", ".join(recorder.gpus) or "no GPU", recorder.prefix))
        for sample in SAMPLES:
            if not re.search(options.only, sample.name):
                continue
            reason = recorder.why_not(sample)
            if reason:
                missing[sample.name] = reason
                continue
            try:
                problems += recorder.record(sample)
            except subprocess.TimeoutExpired:
                problems.append("%s: not finished after %d s" % (sample.name, LIMIT_S))
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)
    print("\nrecorded:")
    print_versions(dump, recorder.out)
    for name, reason in missing.items():
        print("not recorded: %s: %s" % (name, reason))
    print("\nothers in samples/traces:")
    recorded = {os.path.basename(path).replace(".xtr", "")
                for path in glob.glob(os.path.join(recorder.out, "*"))}
    print_versions(dump, TRACES, {
        os.path.basename(path).replace(".xtr", "")
        for path in glob.glob(os.path.join(TRACES, "*"))} - recorded)
    for problem in problems:
        print("WRONG: " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
