#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs a build as a Debian package, and checks its files, fields and bytes."""

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD_DIR, VERSION = sys.argv.pop(1), sys.argv.pop(1)


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, **options).stdout


def pack(folder):
    output("cpack", "-G", "DEB", "-B", folder, cwd=BUILD_DIR)
    (name,) = [name for name in os.listdir(folder) if name.endswith(".deb")]
    return os.path.join(folder, name)


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.deb = pack(os.path.join(cls.scratch, "first"))
        cls.lintian = None
        if shutil.which("lintian"):  # takes seconds, while the other tests run
            options = ["--allow-root"] if os.getuid() == 0 else []
            cls.lintian = subprocess.Popen(
                ["lintian", *options, "--fail-on", "error,warning", cls.deb],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            cls.addClassCleanup(cls.lintian.communicate)
        cls.tar = tarfile.open(fileobj=io.BytesIO(output("dpkg-deb", "--fsys-tarfile", cls.deb)))
        cls.addClassCleanup(cls.tar.close)
        cls.members = {member.name[1:]: member for member in cls.tar.getmembers()}
        cls.tree = os.path.join(cls.scratch, "tree")
        output("dpkg-deb", "-x", cls.deb, cls.tree)
        cls.triplet = output("dpkg-architecture", "-qDEB_HOST_MULTIARCH", text=True).strip()

    def read(self, path):
        content = self.tar.extractfile(self.members[path]).read()
        return (gzip.decompress(content) if path.endswith(".gz") else content).decode()

    def field(self, name):
        return output("dpkg-deb", "--field", self.deb, name, text=True).strip()

    def test_same_input_gives_same_bytes(self):
        again = pack(os.path.join(self.scratch, "a longer name"))
        self.assertEqual(os.path.basename(self.deb), os.path.basename(again))
        with open(self.deb, "rb") as first, open(again, "rb") as second:
            self.assertTrue(first.read() == second.read())

    def test_has_fields(self):
        self.assertEqual(self.field("Package"), "xtrace-gpu")
        self.assertEqual(self.field("Version"), VERSION + "-1")
        self.assertEqual(self.field("Conflicts"), "xtrace")
        self.assertEqual(self.field("Provides") + self.field("Replaces"), "")
        depends = {re.split("[ :]", part)[0] for part in self.field("Depends").split(", ")}
        self.assertLessEqual({"libc6", "libunwind8", "libzstd1", "python3"}, depends)
        self.assertTrue(any(name.startswith("libdw1") for name in depends), depends)

    def test_has_files_in_debian_places(self):
        private = "/usr/lib/%s/xtrace-gpu" % self.triplet
        doc = "/usr/share/doc/xtrace-gpu"
        wanted = {
            "/usr/bin/xtrace", "/usr/bin/xtrace-merge",
            private + "/libxtrace_inject.so", private + "/samples/llm_inference",
            private + "/xtrace/simgpu/libcuda.so.1", private + "/xtrace/simgpu/libcupti.so",
            "/usr/share/bash-completion/completions/xtrace",
            "/usr/share/bash-completion/completions/xtrace-merge",
            "/usr/share/zsh/vendor-completions/_xtrace",
            "/usr/share/man/man1/xtrace.1.gz",
            doc + "/copyright", doc + "/changelog.gz", doc + "/changelog.Debian.gz",
            doc + "/docs/INSTALL.md", "/usr/share/xtrace-gpu/ci/gate.sh",
            "/usr/share/xtrace-gpu/grafana/xtrace.json",
            "/usr/share/xtrace-gpu/samples/traces/h200-llm.xtr",
        }
        self.assertEqual(wanted - set(self.members), set())

    def test_has_no_other_folders(self):
        folders = ("/usr/bin/", "/usr/lib/%s/xtrace-gpu/" % self.triplet, "/usr/share/xtrace-gpu/",
                   "/usr/share/doc/xtrace-gpu/", "/usr/share/man/man1/xtrace",
                   "/usr/share/bash-completion/", "/usr/share/zsh/vendor-completions/",
                   "/usr/share/lintian/overrides/")
        files = [path for path, member in self.members.items() if not member.isdir()]
        self.assertEqual([path for path in files if not path.startswith(folders)], [])

    def test_has_no_copies_of_debian_libraries(self):
        names = {os.path.basename(path) for path in self.members if ".so" in path}
        self.assertEqual({name.split(".")[0] for name in names},
                         {"libxtrace_inject", "libcuda", "libcupti", "libnvidia-ml"})

    def test_files_belong_to_root_and_only_root_may_write(self):
        for path, member in self.members.items():
            with self.subTest(path):
                self.assertEqual((member.uid, member.gid), (0, 0))
                if not member.issym():
                    self.assertIn(member.mode, (0o755,) if member.isdir() else (0o644, 0o755))

    def test_binaries_search_only_where_the_loader_does(self):
        for path in ("usr/bin/xtrace", "usr/lib/%s/xtrace-gpu/libxtrace_inject.so" % self.triplet):
            dynamic = output("readelf", "-d", os.path.join(self.tree, path), text=True)
            self.assertNotRegex(dynamic, "RPATH|RUNPATH")

    def test_records_outside_the_build_tree(self):
        sample = os.path.join(self.tree, "usr/lib", self.triplet, "xtrace-gpu/samples/llm_inference")
        run = subprocess.run([os.path.join(self.tree, "usr/bin/xtrace"), "record", "--simulate", "-o",
                              os.path.join(self.scratch, "data"), sample, "--tokens", "4"],
                             capture_output=True, text=True)
        self.assertIn("288 launches, 288 kernels, 0 lost", run.stderr)

    def test_changelogs_and_copyright(self):
        doc = "/usr/share/doc/xtrace-gpu/"
        self.assertTrue(self.read(doc + "changelog.gz").startswith("# Changelog\n"))
        self.assertTrue(self.read(doc + "changelog.Debian.gz").startswith(
            "xtrace-gpu (%s-1) " % VERSION))
        copyright_file = self.read(doc + "copyright")
        self.assertTrue(copyright_file.startswith("Format: https://www.debian.org/doc/"))
        self.assertNotIn("@", re.sub(r"<.*@.*>", "", copyright_file))

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_without_errors_and_warnings_of_lintian(self):
        out, error = self.lintian.communicate()
        self.assertEqual((self.lintian.returncode, out), (0, ""), error)


if __name__ == "__main__":
    os.umask(0o022)  # cpack stores its effect
    unittest.main(verbosity=2)
