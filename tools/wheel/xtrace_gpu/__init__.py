# SPDX-License-Identifier: Apache-2.0
"""xtrace: which line of your code causes which GPU time.

The commands `xtrace` and `python -m xtrace_gpu` record programs and report on them. This module is
for programs and notebooks:

    recording()     records a part of a program that `xtrace record --paused` runs
    report("dir")   the report of a recording, shown in Jupyter
    load("dir")     the tables of a recording
"""
import importlib.metadata

from ._program import DISTRIBUTION, Error
from ._recording import recording
from ._report import Report, report
from ._tables import Table, Tables, load

__all__ = ["Error", "Report", "Table", "Tables", "load", "recording", "report"]

try:
    __version__ = importlib.metadata.version(DISTRIBUTION)
except importlib.metadata.PackageNotFoundError:
    __version__ = "0"  # imported from a source tree
