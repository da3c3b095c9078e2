# SPDX-License-Identifier: Apache-2.0
"""Shows the report of a recording."""
from __future__ import annotations

import html
import os
import pathlib
import tempfile

from ._program import check_options, run


class Report:
    """A report. Jupyter shows it as a page, and print() as text."""

    def __init__(self, recording: str | os.PathLike[str], options: tuple[object, ...],
                 height: int) -> None:
        self._recording = recording
        self._options = check_options(options)
        self._height = height
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "report.html")
            run("merge", "-q", "--html", page, *self._options, "--", recording,
                accepts_incomplete=True)
            self.html: str = page.read_text(encoding="utf-8")
            """The page, which needs no other file and no network."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def __str__(self) -> str:
        return run("report", "--text", *self._options, "--", self._recording,
                   accepts_incomplete=True)

    def __repr__(self) -> str:
        return f"<report of {os.fspath(self._recording)}: print() shows it as text>"

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles and scripts of page and notebook apart.
        return (f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="{self._height}" '
                'style="border: 0"></iframe>')


def report(recording: str | os.PathLike[str] = "xtrace.data", *options: object,
           height: int = 800) -> Report:
    """Makes the report of a recording: a directory that `xtrace record` wrote, or a log.

    In Jupyter, as the last expression of a cell, the page appears in the notebook. height is in
    pixels. `options` are those of `xtrace merge` that choose a part or a view, such as
    "--from", "2s". Raises Error.
    """
    return Report(recording, options, height)
