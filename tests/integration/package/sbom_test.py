#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials names every library with its version and checksum, and refuses others."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
LIBRARIES = ("cjson_1-2", "elfutils_0.188-2.1", "libevent_2.1.12-stable-8",
             "libiberty_20230104-1", "libunwind_1.6.2-3",
             "libzstd_1.5.4+dfsg2-5", "protobuf-c_1.4.1-1", "sqlite3_3.40.1-2+deb12u2",
             "xz-utils_5.4.1-1", "zlib_1.2.13.dfsg-1")


def sbom(libraries):
    """Returns the exit status, the output and the errors."""
    with tempfile.TemporaryDirectory() as tree:
        folder = pathlib.Path(tree, "share/doc/xtrace/private-libraries")
        folder.mkdir(parents=True)
        folder.joinpath("packages").write_text("".join(
            f"SHA256:{number:064x} {name}.dsc\nSHA256:{99:064x} {name}.orig.tar.gz\n"
            for number, name in enumerate(libraries)))
        done = subprocess.run([SOURCE / "tools/portable/sbom.py", tree, "abc",
                               "2026-01-31T12:00:00Z"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


class Test(unittest.TestCase):
    def test_document(self):
        document = json.loads(sbom(LIBRARIES)[1])
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        own, *packages = document["packages"]
        page = [package for package in packages if package["SPDXID"].startswith("SPDXRef-npm-")]
        self.assertEqual([package["name"] for package in page],
                         ["@preact/signals", "@preact/signals-core", "d3-array", "internmap",
                          "preact"])
        self.assertEqual(packages[-len(page):], page)
        self.assertEqual(len(packages) - len(page), len(LIBRARIES))
        self.assertEqual((own["name"], own["licenseDeclared"]), ("xtrace", "Apache-2.0"))
        for number, (name, package) in enumerate(zip(LIBRARIES, packages)):
            self.assertEqual(f"{package['name']}_{package['versionInfo']}", name)
            self.assertEqual(int(package["checksums"][0]["checksumValue"], 16), number)
        identifiers = {package["SPDXID"] for package in document["packages"]}
        self.assertEqual({one["relatedSpdxElement"] for one in document["relationships"]},
                         identifiers)

    def test_libraries_of_the_portable_tree(self):
        script = (SOURCE / "tools/portable.sh").read_text(encoding="utf-8")
        used = re.search(r"^source_packages='(.*)'$", script, re.M)[1].split()
        self.assertEqual(used, [name.partition("_")[0] for name in LIBRARIES])

    def test_refusal(self):
        for libraries, name in ((LIBRARIES[1:], "cjson"), (LIBRARIES + ("new_1",), "new")):
            status, output, errors = sbom(libraries)
            self.assertEqual((status, output, errors),
                             (1, "", f"sbom: not both used and listed: {name}\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
