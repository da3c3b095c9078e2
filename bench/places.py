# SPDX-License-Identifier: Apache-2.0
"""Where benchmarks, and checks on a GPU, find xtrace, its programs and their sources.

The scripts run from a checkout. xtrace and the programs are in a build, or in an installation of
both parts: `cmake --install BUILD --prefix DIR` installs xtrace, and the same with `--component
tests` the programs."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(HERE)


def add_xtrace_option(parser):
    parser.add_argument("--xtrace", metavar="PATH",
                        default=os.path.join(SOURCE, "build", "bin", "xtrace"),
                        help="the program to check, built or installed (build/bin/xtrace)")


class Places:
    """Paths of all parts. PATH is that of the program xtrace."""

    def __init__(self, path):
        self.xtrace = os.path.abspath(path)
        folder = os.path.dirname(self.xtrace)
        root = os.path.dirname(folder)
        self.merge = os.path.join(folder, "xtrace-merge")
        self.library = os.path.join(root, "lib")
        self.injected = os.path.join(self.library, "libxtrace_inject.so")
        self.simulator = os.path.join(self.library, "xtrace", "simgpu")
        self.programs = os.path.join(root, "libexec", "xtrace")
        if not os.path.isdir(self.programs):
            self.programs = folder
        self.sample = os.path.join(self.programs, "samples", "llm_inference")
        self.floor = self.program("libbench_cupti_floor.so")
        self.samples = os.path.join(SOURCE, "samples")
        self.dump = os.path.join(SOURCE, "tests", "tools", "xtrace-dump")
        self.nsys = None
        self.environment = {}

    def program(self, name):
        return os.path.join(self.programs, "bench", name)

    @staticmethod
    def script(name):
        return os.path.join(HERE, name)

    def simulated(self):
        """The environment that selects the simulated GPU."""
        return {
            "LD_LIBRARY_PATH": self.simulator,
            "XTRACE_CUPTI": os.path.join(self.simulator, "libcupti.so"),
        }
