#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs an installed tree of xtrace and the Python package into a wheel.

  tools/wheel/build.py [--glibc VERSION] TREE OUT_DIR

TREE is an output of tools/portable.sh, or of cmake --install with the --glibc that it needs. Prints
the name of the wheel. The same tree, commit and SOURCE_DATE_EPOCH give the same bytes.

pip installs the tree into the environment itself: bin/, lib/ and share/ below its prefix. So the
programs start without Python, they find their libraries as in any other installation, and man finds
its pages. The layout is that of the wheel specification (packaging.python.org).
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import struct
import subprocess
import sys
import time
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = "xtrace_gpu"
PYTHON = ">=3.9"
OLDEST_ZIP_S = 315532800  # 1980: zip files have no older dates
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF
# A wheel has no links, and a second copy of the program would double its size.
LINKS = {"bin/xtrace-merge": '#!/bin/sh\n# xtrace merge, under the name that scripts use\n'
                             'exec "$(dirname "$(readlink -f "$0")")/xtrace" merge "$@"\n'}

METADATA = """\
Metadata-Version: 2.1
Name: xtrace-gpu
Version: {version}
Summary: Which line of your code causes which GPU time
License: Apache-2.0, with libraries under their own licences
Platform: linux
Keywords: cuda,gpu,profiler,tracing,pytorch,flame graph
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Debuggers
Classifier: Topic :: System :: Monitoring
Requires-Python: {python}
Description-Content-Type: text/markdown

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: xtrace {version}
Root-Is-Purelib: false
Tag: {tag}
"""


def project_version():
    text = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(xtrace VERSION ([0-9.]+)", text).group(1)


def machine_of(program):
    header = program.read_bytes()[:20]
    return MACHINES[struct.unpack_from("<H", header, 18)[0]]


def commit_time():
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "-C", SOURCE, "log", "-1", "--format=%ct"], check=True, stdout=subprocess.PIPE,
        text=True).stdout
    return time.gmtime(max(int(seconds), OLDEST_ZIP_S))[:6]


def tree_files(tree):
    """Yields the name in the wheel, the content, and whether it can be executed."""
    data = f"{NAME}-{project_version()}.data"
    for path in tree.rglob("*"):
        name = path.relative_to(tree).as_posix()
        if path.is_dir():
            continue
        content = LINKS[name].encode() if name in LINKS else path.read_bytes()
        if name.startswith("bin/"):
            place = f"{data}/scripts/{name[4:]}"
        else:
            place = f"{data}/data/{name}"
        yield place, content, os.access(path, os.X_OK)


def package_files(tree, version, tag):
    for path in (SOURCE / "tools/wheel" / NAME).glob("*"):
        if path.is_file():
            yield f"{NAME}/{path.name}", path.read_bytes(), False
    info = f"{NAME}-{version}.dist-info"
    description = (SOURCE / "tools/wheel/README.md").read_text(encoding="utf-8")
    description = description.partition("-->\n")[2]
    yield f"{info}/METADATA", METADATA.format(
        version=version, python=PYTHON, description=description).encode(), False
    yield f"{info}/WHEEL", WHEEL.format(version=version, tag=tag).encode(), False
    licences = [SOURCE / "LICENSE", *(tree / "share/doc/xtrace/private-libraries").glob("copy*")]
    for path in licences:
        yield f"{info}/licenses/{path.name}", path.read_bytes(), False


def write(path, info, files, date):
    record = f"{info}/RECORD"
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, content, is_executable):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if is_executable else 0o100644) << 16
            wheel.writestr(entry, content)

        for name, content, is_executable in files:
            add(name, content, is_executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            lines.append(f"{name},sha256={digest.decode()},{len(content)}\n")
        add(record, "".join([*lines, f"{record},,\n"]).encode(), False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--glibc", default="2.28", metavar="VERSION", help="the oldest glibc")
    parser.add_argument("tree", type=pathlib.Path, metavar="TREE")
    parser.add_argument("out", type=pathlib.Path, metavar="OUT_DIR")
    options = parser.parse_args()
    program = options.tree / "bin/xtrace"
    if not program.is_file():
        sys.exit(f"build.py: there is no {program}")
    check = subprocess.run([SOURCE / "tools/check-portable.py", "--glibc", options.glibc,
                            options.tree], stdout=subprocess.PIPE, text=True, check=False)
    if check.returncode:
        sys.exit(check.stdout.rstrip())
    version = project_version()
    tag = f"py3-none-manylinux_{options.glibc.replace('.', '_')}_{machine_of(program)}"
    path = options.out / f"{NAME}-{version}-{tag}.whl"
    options.out.mkdir(parents=True, exist_ok=True)
    files = [*tree_files(options.tree), *package_files(options.tree, version, tag)]
    # The specification asks for .dist-info at the end.
    files.sort(key=lambda file: (".dist-info/" in file[0], file[0]))
    write(path, f"{NAME}-{version}.dist-info", files, commit_time())
    print(path)


if __name__ == "__main__":
    main()
