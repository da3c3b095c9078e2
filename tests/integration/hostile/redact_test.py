#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--redact leaves no folder, host name, GPU identifier or argument in any format.

The same secrets are searched for without --redact, to know that the log has them.
"""

import argparse
import base64
import gzip
import os
import re
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "dump"))
sys.path.insert(0, HERE)
import log_maker as make  # noqa: E402
from log_maker import BYTES, CONST, DELTA, LIST, UVAR  # noqa: E402
from names_test import FORMATS  # noqa: E402

PID = b"3141592"
SECRETS = [b"alice", b"skunkworks", b"t0ken", b"GPU-5ecret", b"nightly", b"big plans",
           b"1dentity", b"b00t", b"4026531836", b"m00nshot", b"8675309", PID]
KEPT = [b"python3 train.py [arguments redacted]", b"libtorch.so", b"site-packages/torch"]
PYTHON_FILES = [b"/srv/alice/skunkworks/train.py", b"/data/nightly/train.py",
                b"/srv/alice/env/lib/python3.11/site-packages/torch/nn/linear.py",
                b"/tmp/torchinductor_alice/ab/cab.py", b"C:\\Users\\alice\\skunkworks\\win.py"]
MODULES = [b"/srv/alice/env/bin/python3", b"/srv/alice/skunkworks/libplugin.so",
           b"/srv/alice/env/lib/python3.11/site-packages/torch/lib/libtorch.so",
           b"./nightly/libmore.so"]
SOURCES = [b"/srv/alice/skunkworks/kernel.cu", b"../nightly/kernel.cu"]
FACTS = {
    b"process.cmdline": b"/srv/alice/env/bin/python3 /srv/alice/skunkworks/train.py --key t0ken",
    b"process.exe": MODULES[0], b"process.cwd": b"/srv/alice/skunkworks",
    b"process.identity": b"1dentity", b"process.pid_namespace": b"4026531836",
    b"process.id": PID, b"env.TORCHELASTIC_RUN_ID": b"m00nshot", b"env.SLURM_JOB_ID": b"8675309",
    b"env.RANK": b"0", b"env.WORLD_SIZE": b"2", b"host.boot": b"b00t", b"host.name": b"alice-laptop", b"gpu.0.name": b"NVIDIA H200",
    b"gpu.0.uuid": b"GPU-5ecret",
    b"python.path": MODULES[0], b"python.version": b"3.11.2",
    b"modules.missing": b"cannot read '/srv/big plans/skunkworks/torch.py'",
    b"torch.version": b"2.13", b"torch.missing": b"/srv/big plans/alice/libtorch.so: no such file",
    b"cupti.path": b"/srv/alice/cuda/libcupti.so",
}


def write_log(path):
    log = make.LogMaker(pid=int(PID))
    files, modules = len(PYTHON_FILES), list(range(1, len(MODULES) + 1))
    frames = list(range(1, files + 1))
    log.table(make.META, (1, BYTES, list(FACTS)), (2, BYTES, list(FACTS.values())))
    log.table(make.CLOCK, (1, DELTA, [1000]), (2, DELTA, [10 ** 18]))
    log.table(make.THREAD, (1, UVAR, [1]), (2, UVAR, [int(PID)]), (3, BYTES, [b"main"]),
              (4, DELTA, [1000]))
    log.table(make.MODULE, (1, UVAR, modules), (2, CONST, [1000] * len(modules)),
              (3, UVAR, [m << 24 for m in modules]),
              (4, UVAR, [(m << 24) + 0x10000 for m in modules]),
              (5, UVAR, [m << 24 for m in modules]), (6, BYTES, MODULES),
              (7, BYTES, [b"\1\2"] * len(modules)))
    strings = PYTHON_FILES + [b"step", b"a_kernel"]
    log.table(make.STRING, (1, UVAR, list(range(1, len(strings) + 1))), (2, BYTES, strings))
    log.table(make.PYTHON_FRAME, (1, UVAR, frames), (2, CONST, [files + 1] * files),
              (3, UVAR, frames), (4, UVAR, [10 + f for f in frames]), (5, CONST, [1] * files))
    log.table(make.STACK, (1, UVAR, frames), (2, CONST, [0] * files), (3, CONST, [1500] * files),
              (4, LIST, [[(m << 24) + 0x101 for m in modules]] * files),
              (5, LIST, [[f] for f in frames]), (6, LIST, [[1] for _ in frames]))
    launch = 1 << 16 | 307
    log.table(make.API, (1, UVAR, [launch]), (2, BYTES, [b"cuLaunchKernel"]), (3, UVAR, [1]))
    log.table(make.CALL, (1, UVAR, frames), (2, CONST, [launch] * files), (3, CONST, [1] * files),
              (4, UVAR, frames), (5, DELTA, [2000 + 10 * f for f in frames]),
              (6, CONST, [5] * files), (7, CONST, [0] * files))
    log.table(make.STREAM, (1, UVAR, [1]), (3, UVAR, [1]), (4, UVAR, [7]))
    log.table(make.SHAPE, (1, UVAR, [1]), (2, UVAR, [files + 2]),
              *((c, CONST, [1]) for c in range(3, 9)))
    log.table(make.KERNEL, (1, UVAR, frames), (2, CONST, [1] * files), (3, CONST, [1] * files),
              (4, DELTA, [3000 + 5000000 * f for f in frames]), (5, UVAR, [7 + f for f in frames]))
    log.account(calls__seen=files, calls__written=files, kernels__written=files, threads__seen=1)
    log.end()
    log.table(make.SYMBOL, (1, UVAR, [2, 4]), (2, CONST, [0x100] * 2), (3, CONST, [64] * 2),
              (4, BYTES, [b"_ZN1xL4workEv", b"_ZN1xL4workEv"]))
    log.table(make.SOURCE, (1, UVAR, [2, 4]), (2, CONST, [0x100] * 2), (3, BYTES, [b"work"] * 2),
              (4, BYTES, SOURCES), (5, UVAR, [3, 4]))
    with open(path, "wb") as file:
        file.write(log.end().data[:-3])  # truncated, for a warning that names the log


def contents(path):
    """All bytes of an output, unpacked."""
    if os.path.isdir(path):
        return b"".join(contents(os.path.join(path, name)) for name in sorted(os.listdir(path)))
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    for packed in re.findall(rb"[A-Za-z0-9+/]{100,}={0,2}", data):
        raw = base64.b64decode(packed + b"=" * (-len(packed) % 4))
        for window_bits in (47, -15):
            try:
                data += zlib.decompress(raw, window_bits)
            except zlib.error:
                pass
    return data


def merge(args, folder, name, log, *options):
    """The contents of each format, and what was printed."""
    outputs = {format_: os.path.join(folder, name + "." + format_) for format_ in FORMATS}
    words = [word for format_, path in outputs.items() for word in ("--" + format_, path)]
    done = subprocess.run([args.merge, log, *options, *words], capture_output=True, timeout=60,
                          check=False)
    if done.returncode == 2 and b"--html" in done.stderr:  # built without the page
        words = words[:words.index("--html")] + words[words.index("--html") + 2:]
        del outputs["html"]
        done = subprocess.run([args.merge, log, *options, *words], capture_output=True,
                              timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = {format_: contents(path) for format_, path in outputs.items()}
    found["stderr"] = done.stderr
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--merge", required=True)
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="xtrace-redact.") as folder:
        log = os.path.join(folder, "alice's big plans")
        os.mkdir(log)
        write_log(os.path.join(log, "alice-nightly.xtr"))
        with open(os.path.join(log, "no log of alice.xtr"), "wb") as file:
            file.write(b"nightly" * 40)
        for style in ([], ["--full-names", "--lines", "on"], ["--by", "process"]):
            plain = merge(args, folder, "plain", log, *style)
            redacted = merge(args, folder, "redacted", log, "--redact", *style)
            for format_, data in redacted.items():
                for secret in SECRETS:
                    for found in re.finditer(secret, data):
                        print("%s %s has %r" % (format_, style, data[max(
                            0, found.start() - 60):found.end() + 60]))
                        wrong += 1
                        break
            for secret in SECRETS:
                if not any(secret in data for data in plain.values()):
                    print("no format has %r without --redact" % secret)
                    wrong += 1
            for text in KEPT:
                if not any(text in data for data in redacted.values()):
                    print("no format has %r with --redact" % text)
                    wrong += 1
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
