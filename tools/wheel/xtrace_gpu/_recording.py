# SPDX-License-Identifier: Apache-2.0
"""Records a part of a program."""
from __future__ import annotations

import contextlib
import os
import threading
import warnings
from typing import Any

from . import _program

_lock = threading.Lock()
_depth = 0  # entered and not left, in all threads


def _is_controlled() -> bool:
    """Whether `xtrace record --paused` runs this process."""
    return bool(os.environ.get("XTRACE_DATA")) and "XTRACE_START" in os.environ


def _has_cuda_started() -> bool:
    """Whether the tracer records into its recovery file, which it opens when CUDA starts."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return any(line.rstrip("\n").endswith(".xtr.spool") for line in maps)


def _switch(command: str) -> None:
    """Never raises: a program must not fail because it is recorded."""
    if not _has_cuda_started():
        # The tracer reads this when CUDA starts.
        os.environ["XTRACE_START"] = "paused" if command == "pause" else ""
        return
    try:
        _program.run(command, str(os.getpid()))
    except _program.Error as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)


class recording(contextlib.ContextDecorator):
    """Records while the body of the `with` statement runs, or the decorated function.

    For programs that run under `xtrace record --paused`. In any other program it does nothing, so
    it can stay in the code. It records all threads of the process. If several are active, nested or
    in different threads, recording is on until the last one ends. Each switch takes about 10 ms.
    GPU work is recorded if it was launched in the body, even if it runs later.

    It never raises. Problems become Python warnings.
    """

    def __new__(cls, function: Any = None) -> Any:
        """`@recording` without parentheses decorates, too."""
        instance = super().__new__(cls)
        return instance(function) if callable(function) else instance

    def __enter__(self) -> recording:
        global _depth
        with _lock:
            if _depth == 0 and _is_controlled():
                _switch("resume")
            _depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        global _depth
        with _lock:
            _depth -= 1
            if _depth == 0 and _is_controlled():
                _switch("pause")
