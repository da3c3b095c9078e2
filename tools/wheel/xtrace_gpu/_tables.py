# SPDX-License-Identifier: Apache-2.0
"""Reads a recording as tables."""
from __future__ import annotations

import collections.abc
import difflib
import html
import json
import os
import pathlib
import sqlite3
import tempfile
from typing import Any

from ._program import Error, check_options, run

SHOWN_ROWS = 20  # in a notebook


class Table(list):
    """A list of rows. A row is a dict from column to value."""

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame with the same rows and columns. Needs pandas."""
        import pandas

        return pandas.DataFrame.from_records(self)

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return Table(found) if isinstance(place, slice) else found

    def _repr_html_(self) -> str:
        columns = list(self[0]) if self else []

        def row(tag: str, cells: collections.abc.Iterable[object]) -> str:
            return "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)

        lines = [row("th", columns), *(row("td", one.values()) for one in self[:SHOWN_ROWS])]
        more = f"<p>{len(self):,} rows</p>" if len(self) > SHOWN_ROWS else ""
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"


class Tables(collections.abc.Mapping):
    """The tables of a recording by name: those of docs/SQLITE.md, and `findings`.

    Each is a Table. Columns of times end in `_ns`.
    """

    def __init__(self, database: sqlite3.Connection, summary: dict[str, Any]) -> None:
        self._database = database
        self.summary = summary
        """All sums of the report, as docs/SUMMARY.md describes them."""

    def query(self, sql: str, parameters: Any = ()) -> Table:
        """Returns the rows of an SQL query, such as the examples of docs/SQLITE.md. Raises Error."""
        try:
            cursor = self._database.execute(sql, parameters)
        except sqlite3.Error as error:
            raise Error(f"SQL: {error}") from None
        columns = [column[0] for column in cursor.description or ()]
        return Table(dict(zip(columns, row)) for row in cursor)

    def __getitem__(self, name: str) -> Table:
        if name == "findings":
            return Table(self.summary["findings"]["rows"])
        if name not in self._names():
            near = difflib.get_close_matches(str(name), list(self), 1)
            raise KeyError(f"{name}{f': did you mean {near[0]}?' if near else ''}")
        return self.query(f'SELECT * FROM "{name}"')

    def __repr__(self) -> str:
        return f"<tables: {', '.join(self)}>"

    def __iter__(self) -> collections.abc.Iterator[str]:
        return iter(["findings", *self._names()])

    def __len__(self) -> int:
        return 1 + len(self._names())

    def _names(self) -> list[str]:
        return [row[0] for row in self._database.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name")]


def load(recording: str | os.PathLike[str] = "xtrace.data", *options: object) -> Tables:
    """Reads a recording: a directory that `xtrace record` wrote, or a log.

    `options` are those of `xtrace merge` that choose a part or a view, such as "--from", "2s".
    The table `warning` and `summary["trust"]` say what is missing in it. It may still be recorded:
    the tables have what is in it so far. Raises Error.
    """
    words = check_options(options)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run.db")
        summary = pathlib.Path(folder, "summary.json")
        run("merge", "-q", "--sqlite", path, "--summary", summary, *words, "--", recording,
            accepts_incomplete=True)
        # The file can be deleted while it is open.
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1",
                                   uri=True, check_same_thread=False)
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return Tables(database, json.loads(summary.read_text(encoding="utf-8")))
