#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds NVIDIA's cuda-samples for tests/gpu/cuda_samples_run.py, and packs them.

SOURCE is a checkout of https://github.com/NVIDIA/cuda-samples, or a folder with the archives that
--pack-sources makes of it, for a machine without a network. OUT gets a changed copy of it, the
build directory, and the archives part-1.tar.xz, part-2.tar.xz and so on. Each archive is smaller
than --part-mib. It contains the programs, stripped, with the files that they read, and the small
libraries that a GPU machine may lack, such as libglut. part-1 also has index.json: the arguments of
each program, and the reason for each sample that was not built. A second call continues a build.

The samples are linked against the shared CUDA runtime, which keeps the archives small. Samples that
need a missing library are left out one by one.

Exit status: 0 if the archives were written, 1 if not.
"""

import argparse
import glob
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile

LEFT_OUT = re.compile(r"Error at (?:Samples/)?([0-9]_\w+/[\w-]+)/CMakeLists\.txt")
MISSING_VARIABLE = re.compile(r'linked by target ".*" in directory \S*/Samples/([0-9]_\w+/[\w-]+)')
MISSING_TARGET = re.compile(r"links to:\s+(\S+)")
NOT_FOUND = re.compile(r"-- (.+) not found - will not build sample '([\w-]+)'")
BUILD_FILES = {"CMakeFiles", "cmake_install.cmake", "Makefile", "CTestTestfile.cmake"}
# Libraries of the system, of CUDA and of the driver are on the GPU machine.
PRESENT = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|z|udev|cuda|cudart|cublas|cublasLt|"
                     r"cufft|cufftw|curand|cusolver|cusparse|nvrtc|nvJitLink|nvvm|nvjpeg|npp\w+)"
                     r"\.so")
SMALL_LIBRARY_BYTES = 4 << 20
OTHER_PLATFORM = re.compile("^8_Platform_Specific$|D3D1|Vulkan|^vulkan|NvSci|^EGLStream")
# In this order, so that --pack-only has the most interesting ones of an unfinished build.
CATEGORIES = ("3_CUDA_Features", "0_Introduction", "2_Concepts_and_Techniques", "6_Performance",
              "4_CUDA_Libraries", "1_Utilities", "7_libNVVM", "5_Domain_Specific")
ARCHIVE_PRESET = 3


def toolkit():
    """The folder of the CUDA toolkit that is on PATH, or the usual one."""
    nvcc = shutil.which("nvcc")
    if nvcc and not os.path.exists("/usr/local/cuda/bin/nvcc"):
        return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return "/usr/local/cuda"


def say(text):
    print(text, flush=True)


def run(command, log, **more):
    with open(log, "w", encoding="utf-8") as file:
        return subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False,
                              **more).returncode


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def copy_sources(source, copy, architecture):
    """Copies the samples, and makes each build for one architecture."""
    if os.path.exists(copy):
        return
    archives = [os.path.join(source, name) for name in os.listdir(source)
                if name.endswith(".tar.xz")]
    if archives:
        source = copy + ".unpacked"
        for path in archives:
            with tarfile.open(path) as archive:
                archive.extractall(source, filter="fully_trusted")

    others = {}

    def left_out(folder, names):
        foreign = [name for name in names if OTHER_PLATFORM.search(name) and
                   os.path.isdir(os.path.join(folder, name))]
        others.update((name, "for another platform or a display server") for name in foreign)
        return foreign + [name for name in names if name in (".git", "doc", "win64", "bin") or
                          name.endswith((".doc", ".docx", ".sln", ".vcxproj", ".png"))]
    shutil.copytree(source, copy + ".new", ignore=left_out)
    shutil.rmtree(copy + ".unpacked", ignore_errors=True)
    if not archives:
        with open(os.path.join(copy + ".new", "left_out.json"), "w", encoding="utf-8") as file:
            json.dump(others, file)
    # Some samples, or a part of the archives, may be missing.
    for path in glob.glob(os.path.join(copy + ".new", "Samples", "*", "CMakeLists.txt")) + [
            os.path.join(copy + ".new", "Samples", "CMakeLists.txt")]:
        for name in re.findall(r"add_subdirectory\(([\w-]+)\)", read(path)):
            if not os.path.isdir(os.path.join(os.path.dirname(path), name)):
                remove_subdirectory(path, name)
    for folder, _, names in os.walk(copy + ".new"):
        if "CMakeLists.txt" in names:
            path = os.path.join(folder, "CMakeLists.txt")
            text = re.sub(r"(set\(CMAKE_CUDA_ARCHITECTURES) [^)]*\)", r"\1 %s)" % architecture,
                          read(path)).replace(" -lineinfo", "")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    os.rename(copy + ".new", copy)


def leave_out(copy, sample):
    """Removes a sample from the build. Returns False if it was removed before."""
    category, name = sample.split("/")
    return remove_subdirectory(os.path.join(copy, "Samples", category, "CMakeLists.txt"), name)


def remove_subdirectory(path, name):
    text = read(path)
    changed = re.sub(r"(?m)^\s*add_subdirectory\(%s\)\s*$" % re.escape(name), "", text)
    if changed == text:
        return False
    with open(path, "w", encoding="utf-8") as file:
        file.write(changed)
    return True


def configure(options, copy, build):
    """Returns the reasons by sample, or None if the build cannot be configured."""
    known = os.path.join(options.out, "left_out.json")
    if os.path.exists(known):
        return json.loads(read(known))
    reasons = json.loads(read(os.path.join(copy, "left_out.json")))
    library = os.path.join(options.cuda, "lib64", "libnvvm.so")
    if not os.path.exists(library):
        library = os.path.join(options.cuda, "nvvm", "lib64", "libnvvm.so")
    header = os.path.join(options.cuda, "include", "nvvm.h")
    if not os.path.exists(header):
        header = os.path.join(options.cuda, "nvvm", "include", "nvvm.h")
    command = ["cmake", "-S", copy, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
               "-DCMAKE_CUDA_COMPILER=" + os.path.join(options.cuda, "bin", "nvcc"),
               "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared", "-DCUDAToolkit_ROOT=" + options.cuda]
    if os.path.exists(library) and os.path.exists(header):
        command += ["-DNVVM_LIB=" + library, "-DNVVM_H=" + header]
    log = os.path.join(options.out, "configure.log")
    while True:
        say("configure, without %d samples" % len(reasons))
        status = run(command, log)
        text = read(log)
        for missing, name in NOT_FOUND.findall(text):
            reasons[name] = "the build machine lacks %s" % missing
        if status == 0:
            with open(known, "w", encoding="utf-8") as file:
                json.dump(reasons, file)
            return reasons
        is_changed = False
        for part in re.split(r"(?=CMake Error)", text):
            targets = MISSING_TARGET.findall(part)
            for sample in LEFT_OUT.findall(part) + MISSING_VARIABLE.findall(part):
                if leave_out(copy, sample):
                    reasons[sample.split("/")[1]] = "the build machine lacks %s" % (
                        targets[0] if targets else "a library")
                    is_changed = True
        if not is_changed:
            say(text[-3000:])
            return None


def build_all(options, build):
    """Builds what can be built, until the limit. Returns the errors by sample."""
    log, errors = os.path.join(options.out, "build.log"), {}
    say("build with %d jobs for at most %.0f s" % (options.jobs, options.limit))
    command = ["cmake", "--build", build, "-j", str(options.jobs), "--target",
               *("Samples/%s/all" % category for category in CATEGORIES), "--", "-k", "0"]
    # timeout(1) signals the whole group, so that ninja ends its compilers.
    status = run(["timeout", "--signal=INT", "--kill-after=20", str(options.limit), *command], log)
    say("build: status %d%s" % (status, ", limit reached" if status == 124 else ""))
    for part in read(log).split("FAILED: ")[1:]:
        found = re.match(r"(?:\[code=\d+\] )?\S*Samples/[0-9]_\w+/([\w-]+)/", part)
        lines = [line for line in part.splitlines() if re.search(
            r"error|Error|undefined reference|No such file|cannot", line)]
        if found and "interrupted" not in part[:2000]:
            errors.setdefault(found.group(1), "does not compile: %s" % (
                lines[0].strip()[:160] if lines else "see " + log))
    return errors


def is_program(path):
    if os.path.islink(path) or not os.path.isfile(path) or not os.access(path, os.X_OK):
        return False
    with open(path, "rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and head[16:17] in (b"\x02", b"\x03") and ".so" not in path


def small_libraries(program):
    """The paths of a program's libraries that a GPU machine may lack, by name."""
    libraries = {}
    for name, path in re.findall(r"(\S+) => (/\S+)", subprocess.run(
            ["ldd", program], capture_output=True, text=True, check=False).stdout):
        if not PRESENT.match(name) and os.path.getsize(path) < SMALL_LIBRARY_BYTES:
            libraries[name] = path
    return libraries


def pack_sample(source, built, target):
    """Copies what a sample needs at run time. Returns its programs."""
    programs = []
    os.makedirs(target)
    for name in sorted(os.listdir(built)):
        path = os.path.join(built, name)
        if name in BUILD_FILES or name.endswith((".o", ".a", ".cmake", ".ninja")):
            continue
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(target, name), dirs_exist_ok=True)
            continue
        shutil.copy2(path, target)
        if is_program(path):
            programs.append(name)
            subprocess.run(["strip", "--strip-unneeded", os.path.join(target, name)], check=False)
    # The samples search their own folder and its folder "data".
    data = os.path.join(source, "data")
    if programs and os.path.isdir(data):
        os.makedirs(os.path.join(target, "data"), exist_ok=True)
        for name in os.listdir(data):
            copied = os.path.join(target, name)
            if os.path.isfile(copied) and not os.path.isdir(os.path.join(data, name)):
                os.link(copied, os.path.join(target, "data", name))
            elif os.path.isfile(os.path.join(data, name)):
                shutil.copy2(os.path.join(data, name), os.path.join(target, "data"))
    for name in os.listdir(source):
        if programs and name.endswith((".ll", ".ptx", ".bin", ".dat", ".txt", ".cuh", ".h")):
            if name != "CMakeLists.txt":
                shutil.copy2(os.path.join(source, name), target)
    return programs


def samples_in(root):
    """Yields (category, name) of each folder with a CMakeLists.txt."""
    for category in sorted(os.listdir(root)):
        folder = os.path.join(root, category)
        if not re.match(r"[0-9]_", category):
            continue
        for name in sorted(os.listdir(folder)):
            if os.path.exists(os.path.join(folder, name, "CMakeLists.txt")):
                yield category, name


def runs_of(config, name):
    """The lists of arguments with which NVIDIA's own run_tests.py starts a sample."""
    entry = config.get(name, {})
    if "runs" in entry:
        return [run.get("args", []) for run in entry["runs"]]
    return [entry.get("args", [])]


def pack(options, copy, build, reasons):
    tree = os.path.join(options.out, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    os.makedirs(os.path.join(tree, "lib"))
    config, index, libraries = json.loads(read(os.path.join(copy, "test_args.json"))), [], {}
    for category, name in samples_in(os.path.join(copy, "Samples")):
        built = os.path.join(build, "Samples", category, name)
        target = os.path.join(tree, "Samples", category, name)
        programs = []
        if name not in reasons and os.path.isdir(built):
            programs = pack_sample(os.path.join(copy, "Samples", category, name), built, target)
        if not programs:
            shutil.rmtree(target, ignore_errors=True)
            reasons.setdefault(name, "the build made no program")
            continue
        for program in programs:
            own = small_libraries(os.path.join(built, program))
            libraries.update(own)
            for arguments in runs_of(config, program):
                index.append({"name": program, "folder": "Samples/%s/%s" % (category, name),
                              "arguments": arguments, "needs_lib": bool(own),
                              "gpus": config.get(program, {}).get("min_gpus", 1)})
    for name, path in libraries.items():
        shutil.copy2(path, os.path.join(tree, "lib", name))
    common = os.path.join(copy, "Common", "data")
    if os.path.isdir(common):
        shutil.copytree(common, os.path.join(tree, "Common", "data"))
    with open(os.path.join(tree, "index.json"), "w", encoding="utf-8") as file:
        json.dump({"runs": index, "not_built": reasons}, file, indent=1)
    return tree, index


class Archives:
    """Archives of limited size. A sample is never divided between two."""

    def __init__(self, folder, limit, name="part"):
        self.folder, self.limit, self.name = folder, limit, name
        self.paths, self.archive, self.pending = [], None, 0

    def add(self, tree, name):
        single = os.path.join(self.folder, "sample.tar.xz")
        with tarfile.open(single, "w:xz", preset=ARCHIVE_PRESET) as archive:
            archive.add(os.path.join(tree, name), name)
        size = os.path.getsize(single)
        os.remove(single)
        if self.archive is None or self.pending + size > self.limit:
            self.close()
            self.paths.append(os.path.join(self.folder, "%s-%d.tar.xz" % (
                self.name, len(self.paths) + 1)))
            self.archive, self.pending = tarfile.open(self.paths[-1], "w:xz",
                                                      preset=ARCHIVE_PRESET), 0
        self.pending += size
        self.archive.add(os.path.join(tree, name), name)

    def close(self):
        if self.archive:
            self.archive.close()


def pack_sources(options):
    """Packs what a build needs, for a machine that cannot fetch it."""
    copy = os.path.join(options.out, "src")
    copy_sources(os.path.abspath(options.source), copy, options.architecture)
    archives = Archives(options.out, options.part_mib << 20, "sources")
    for name in sorted(os.listdir(copy)):
        if name != "Samples":
            archives.add(copy, name)
    for name in sorted(os.listdir(os.path.join(copy, "Samples"))):
        archives.add(copy, os.path.join("Samples", name))
    archives.close()
    return archives


def pack_tree(options, tree, index):
    archives = Archives(options.out, options.part_mib << 20)
    for name in ["index.json", "lib", "Common"] + sorted({run["folder"] for run in index}):
        if os.path.exists(os.path.join(tree, name)):
            archives.add(tree, name)
    archives.close()
    return archives


def say_sizes(archives):
    for path in archives.paths:
        say("%s: %.1f MiB" % (path, os.path.getsize(path) / (1 << 20)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SOURCE")
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("--cuda", default=toolkit(), help="the CUDA toolkit (%(default)s)")
    parser.add_argument("--architecture", default="90", help="of the GPU (90)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--part-mib", type=int, default=60, help="limit of an archive (60)")
    parser.add_argument("--limit", type=float, default=36000, help="seconds of the build")
    parser.add_argument("--pack-sources", action="store_true", help="pack SOURCE, build nothing")
    parser.add_argument("--no-archives", action="store_true",
                        help="leave the programs in the folder OUT/tree, for this machine")
    parser.add_argument("--pack-only", action="store_true", help="pack what is built")
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    if options.pack_sources:
        say_sizes(pack_sources(options))
        return 0
    copy, build = os.path.join(options.out, "src"), os.path.join(options.out, "build")
    copy_sources(os.path.abspath(options.source), copy, options.architecture)
    reasons = configure(options, copy, build)
    if reasons is None:
        say("cuda_samples_build: cannot configure the samples")
        return 1
    if not options.pack_only:
        reasons.update(build_all(options, build))
    tree, index = pack(options, copy, build, reasons)
    for name, reason in sorted(reasons.items()):
        say("not built: %s: %s" % (name, reason))
    say("%d programs in %d runs, %d samples not built" % (
        len({run["name"] for run in index}), len(index), len(reasons)))
    if not options.no_archives:
        say_sizes(pack_tree(options, tree, index))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, lzma.LZMAError) as error:
        sys.exit("cuda_samples_build: %s" % error)
