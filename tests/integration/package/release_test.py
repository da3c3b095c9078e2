#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/release.sh names all that it needs before it starts, and all that is missing at once."""
import os
import pathlib
import subprocess
import tempfile
import unittest

RELEASE = pathlib.Path(__file__).resolve().parents[3] / "tools/release.sh"


def release(*arguments):
    """Returns the exit status and the errors."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "XTRACE_MAINTAINER"}
    done = subprocess.run([RELEASE, *arguments], env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


class Test(unittest.TestCase):
    def test_usage_names_all_needs(self):
        for arguments in ((), ("--help",), ("1", "2", "3")):
            status, text = release(*arguments)
            self.assertEqual(status, 2)
            for need in ("XTRACE_MAINTAINER=", "VERSION", "OUT_DIR", "root", "Debian 12",
                         "CMakeLists.txt", "CHANGELOG.md", "committed", "install-deps.sh --release"):
                self.assertIn(need, text)

    def test_missing_needs_are_listed_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "file").touch()
            status, text = release("--no-check", "99.9", folder)
            self.assertEqual(status, 1)
            for problem in ("XTRACE_MAINTAINER is not set", "another version than 99.9",
                            "no section '## 99.9'", f"{folder} is not an empty folder"):
                self.assertIn(problem, text)
            self.assertNotIn("only root", text)
            self.assertEqual(os.listdir(folder), ["file"])


if __name__ == "__main__":
    unittest.main()
