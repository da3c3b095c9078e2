#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the image of Containerfile and runs the Pod of docs/CONTAINERS.md on the simulated GPU.

TREE is an output of tools/portable.sh. debootstrap makes the base image, so no registry is needed.
Needs root, buildah, debootstrap, Debian's mirror and python3-yaml.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import recipes

SIMULATOR = "/opt/xtrace/lib/xtrace/simgpu"
TRAIN = """import subprocess
subprocess.run(["/opt/xtrace/share/xtrace/samples/llm_inference", "--tokens", "4"], check=True)
"""


def run(*command, accepted=(0,)):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode not in accepted:
        sys.exit("check: %s:\n%s" % (" ".join(command), result.stdout))
    return result.stdout.strip()


class Images:
    """A store of images, which disappears with its folder."""

    def __init__(self, folder):
        self.store = ["--root", folder + "/store", "--runroot", folder + "/run",
                      "--storage-driver", "vfs"]

    def buildah(self, command, *arguments):
        return run("buildah", *self.store, command, *arguments)

    def import_tree(self, tree, name):
        container = self.buildah("from", "scratch")
        self.buildah("copy", "-q", container, tree, "/")
        self.buildah("commit", "-q", container, name)

    def build(self, file, context, name, *arguments):
        self.buildah("bud", "-q", "--isolation", "chroot", "--pull-never", "-t", name, "-f", file,
                     *arguments, context)

    def run(self, image, command, volumes=(), env=()):
        container = self.buildah("from", "--pull-never", image)
        options = [part for volume in volumes for part in ("-v", volume)]
        options += [part for item in dict(env).items() for part in ("-e", "%s=%s" % item)]
        return self.buildah("run", "--isolation", "chroot", *options, container, "--", *command)


def make_base(images, scratch, systems):
    """Makes the image `my-image` with Python and train.py, and the base of our image."""
    root = os.path.join(systems, "bookworm-container")
    run("sh", "-euc", '. "$0/tools/portable/chroot.sh"; make_system "$1" bookworm python3-minimal',
        recipes.SOURCE, root)
    images.import_tree(root, "localhost/base")
    os.mkdir(scratch + "/mine")
    with open(scratch + "/mine/train.py", "w", encoding="utf-8") as file:
        file.write(TRAIN)
    with open(scratch + "/mine/Containerfile", "w", encoding="utf-8") as file:
        file.write("FROM localhost/base\nWORKDIR /app\nCOPY train.py .\n")
    images.build(scratch + "/mine/Containerfile", scratch + "/mine", "localhost/my-image")


def run_pod(images, pod, command, folders):
    """Runs all containers of the Pod with these folders as volumes. `command` replaces the main one."""
    def volumes(container):
        return ["%s:%s%s" % (folders[mount["name"]], mount["mountPath"],
                             ":ro" if mount.get("readOnly") else "")
                for mount in container["volumeMounts"]]

    for container in pod["spec"]["initContainers"]:
        images.run("localhost/" + container["image"], container["command"], volumes(container))
    (main,) = pod["spec"]["containers"]
    env = {**recipes.environment(main), "LD_LIBRARY_PATH": SIMULATOR,
           "XTRACE_CUPTI": SIMULATOR + "/libcupti.so"}
    images.run("localhost/" + main["image"], command or main["command"], volumes(main), env)


def check_pod(images, tree, scratch, command):
    """Returns whether the functions in the Pod's trace have names on this machine."""
    pod, _ = recipes.pod()
    folders = {volume["name"]: os.path.join(scratch, volume["name"])
               for volume in pod["spec"]["volumes"]}
    for folder in folders.values():
        run("rm", "-rf", folder)
        os.mkdir(folder)
    run_pod(images, pod, command, folders)
    xtrace = tree + "/bin/xtrace"
    data = folders["traces"] + "/run"
    # Status 1: some names are missing.
    text = run(xtrace, "report", "--text", "--all", data, accepted=(0, 1))
    folded = run(xtrace, "merge", "--folded", "-", data, accepted=(0, 1))
    if "launches                                                          288" not in text:
        sys.exit("check: the Pod's trace lacks launches:\n" + text)
    return "main;run;converse;chat;" in folded


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-d", dest="systems", metavar="DIR",
                        default=os.path.join(recipes.SOURCE, "build-systems"),
                        help="folder for the system, which is set up once (default: build-systems)")
    parser.add_argument("tree", metavar="TREE")
    arguments = parser.parse_args()
    tree = os.path.abspath(arguments.tree)
    with tempfile.TemporaryDirectory() as scratch:
        images = Images(scratch)
        make_base(images, scratch, os.path.abspath(arguments.systems))
        containerfile = os.path.join(recipes.SOURCE, "tools", "container", "Containerfile")
        images.build(containerfile, tree, "localhost/xtrace", "--build-arg", "BASE=localhost/base")
        version = run(tree + "/bin/xtrace", "version")
        if images.run("localhost/xtrace", ["xtrace", "version"]) != version:
            sys.exit("check: the image has another version than the tree")

        (line,) = recipes.blocks("An image with xtrace")[1:]
        with open(scratch + "/layer", "w", encoding="utf-8") as file:
            file.write("FROM localhost/base\n" + line)
        images.build(scratch + "/layer", scratch + "/mine", "localhost/layer")
        if images.run("localhost/layer", ["/opt/xtrace/bin/xtrace", "version"]) != version:
            sys.exit("check: an image that copies xtrace has another version")

        _, complete = recipes.pod()
        if check_pod(images, tree, scratch, None):
            sys.exit("check: the logs have names without the documented command")
        if not check_pod(images, tree, scratch, complete):
            sys.exit("check: the documented command does not add the names")
    print("check: the image was built, and the Pod was recorded")


if __name__ == "__main__":
    main()
