#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/gpu/held_out bare and under xtrace, and compares status and output.

The programs use what tracers break most easily: conditional graphs of JAX's loops and branches,
custom calls, graphs and streams of CuPy and PyTorch, threads, and memory that processes share. Each
runs three times bare, then with the default options, with --cpu and with --api all. Some of JAX run
again with XLA_FLAGS for more graphs, and for loops and branches as conditional nodes of graphs.
compare_runs.py has the rules of the comparison.

Exit status: 0 no differences, 1 differences, 2 usage.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import compare_runs

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {"default": [], "cpu": ["--cpu"], "api all": ["--api", "all"]}
GRAPHS = "--xla_gpu_graph_min_graph_size=1"
XLA_FLAGS = {
    "graphs": GRAPHS,
    "loops": GRAPHS + " --xla_gpu_enable_command_buffer="
                      "FUSION,CUBLAS,CUBLASLT,CUDNN,WHILE,CONDITIONAL",
}
PROGRAMS = (
    ("jax_control", "jax"), ("jax_control graphs", "jax"), ("jax_control loops", "jax"),
    ("jax_train", "jax"), ("jax_train graphs", "jax"), ("jax_train loops", "jax"),
    ("cupy_graphs", "cupy"), ("jax_calls", "jax"), ("jax_ffi", "jax"), ("jax_parallel", "jax"),
    ("jax_profiler", "jax"), ("jax_profiler loops", "jax"), ("cupy_kernels", "cupy"),
    ("cupy_processes", "cupy"), ("torch_graphs", "torch"))


def environment_of(folder, variant):
    """Several programs share the GPU, so that none may take most of its memory."""
    environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false",
                       HELD_OUT_FFI=os.path.join(folder, "ffi.so"), PYTHONDONTWRITEBYTECODE="1",
                       TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"),
                       CUPY_CACHE_DIR=os.path.join(folder, "cupy"))
    flags = filter(None, [os.environ.get("XLA_FLAGS"), XLA_FLAGS.get(variant)])
    environment["XLA_FLAGS"] = " ".join(flags)
    return environment


def has_package(python, package):
    code = "import importlib.util, sys; sys.exit(not importlib.util.find_spec(%r))" % package
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def build_ffi(python, folder):
    """Builds the library of jax_ffi.py. Without it, the program only says so."""
    done = subprocess.run([python, os.path.join(HERE, "held_out", "jax_ffi.py"), "--build"],
                          env=environment_of(folder, None), capture_output=True, text=True,
                          check=False)
    if done.returncode:
        print("jax_ffi: no custom call: " + done.stderr.strip()[-400:])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xtrace", required=True, help="the command")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    parser.add_argument("--python", default="python3", help="the Python that has the packages")
    parser.add_argument("--jobs", type=int, default=6, help="programs at once (6)")
    parser.add_argument("--limit", type=float, default=90, help="seconds of one bare run (90)")
    parser.add_argument("--total", type=float, default=400, help="seconds of everything (400)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only programs of this name")
    parser.add_argument("--keep", metavar="DIR", help="keep the traces in DIR")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    python = shutil.which(options.python) or options.python
    folder = tempfile.mkdtemp(prefix="held_out")
    comparison = compare_runs.Comparison(
        os.path.abspath(options.xtrace), MODES, options.total, options.jobs,
        lambda text: print(text, flush=True), options.keep)
    packages = {package: has_package(python, package) for _, package in PROGRAMS}
    groups, reasons = [], {}
    for name, package in PROGRAMS:
        if not re.search(options.only, name):
            continue
        if not packages[package]:
            reasons[name] = "no " + package
            continue
        if name == "jax_ffi":
            build_ffi(python, folder)
        script = os.path.join(HERE, "held_out", name.split()[0] + ".py")
        groups.append([compare_runs.Program(name, [python, script], folder,
                                            environment_of(folder, name.split()[-1]),
                                            options.limit)])
    rows = comparison.run(groups)
    shutil.rmtree(folder, ignore_errors=True)
    for name, reason in reasons.items():
        print("not run: %s: %s" % (name, reason))
    return compare_runs.summarise(rows, MODES, {"not_run": reasons}, print, options.output)


if __name__ == "__main__":
    sys.exit(main())
