# SPDX-License-Identifier: Apache-2.0
"""Records a part of a program."""
from __future__ import annotations

import contextlib
import functools
import inspect
import os
import threading
import warnings
from typing import Any

from . import _program

TRACER = "libxtrace_inject.so"

_lock = threading.Lock()
_depth = 0  # entered and not left, in all threads


def _reset() -> None:
    """A child of fork() has no other thread that could release the lock or leave a body."""
    global _lock, _depth
    _lock, _depth = threading.Lock(), 0


os.register_at_fork(after_in_child=_reset)


_initial = os.environ.get("XTRACE_START", "")  # "paused", "armed" or "armed-graphs"


def _is_controlled() -> bool:
    """Whether `xtrace record --paused` or `--armed` runs this process."""
    return bool(os.environ.get("XTRACE_DATA")) and "XTRACE_START" in os.environ


def _state() -> str:
    """"controlled": the tracer has mapped its recovery file, which it opens when CUDA starts.
    "lost": it runs without one. "before": CUDA has not started."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        files = {line.rstrip("\n").rpartition("/")[2] for line in maps}
    if any(file.endswith(".xtr.spool") for file in files):
        return "controlled"
    # CUDA_INJECTION64_PATH loads the tracer when CUDA starts, LD_PRELOAD at once.
    is_preloaded = TRACER in os.environ.get("LD_PRELOAD", "")
    return "lost" if TRACER in files and not is_preloaded else "before"


def _switch(command: str) -> None:
    """Never raises: a program must not fail because it is recorded."""
    try:
        state = _state()
        if state == "before" or command == "stop":
            # The tracer of this process reads this when CUDA starts, those of its children, too.
            os.environ["XTRACE_START"] = (_initial or "paused") if command == "stop" else ""
        if state == "lost":
            raise _program.Error(f"cannot {command} recording: the tracer has no recovery file, "
                                 "as on a full disk")
        if state == "controlled":
            _program.run(command, str(os.getpid()))
    except (_program.Error, OSError) as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)


class recording(contextlib.ContextDecorator):
    """Records while the body of the `with` statement runs, or the decorated function.

    For programs that run under `xtrace record --paused` or `--armed`. In any other program it does
    nothing, so it can stay in the code. It records all threads of the process. If several are
    active, nested or in different threads, recording is on until the last one ends. Each switch
    takes about 10 ms with `--paused`, and 30 ms with `--armed`. GPU work is recorded if it was
    launched in the body, even if it runs later.

    It never raises. Problems become Python warnings.
    """

    def __new__(cls, function: Any = None) -> Any:
        """`@recording` without parentheses decorates, too."""
        instance = super().__new__(cls)
        return instance(function) if callable(function) else instance

    def __call__(self, function: Any) -> Any:
        """Decorates a function or a coroutine function."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            warnings.warn(f"{function.__qualname__} is a generator: use 'with recording():' in it",
                          RuntimeWarning, stacklevel=2)
            return function
        if not inspect.iscoroutinefunction(function):
            return super().__call__(function)

        @functools.wraps(function)
        async def recorded(*arguments: Any, **options: Any) -> Any:
            with self:
                return await function(*arguments, **options)

        return recorded

    def __enter__(self) -> recording:
        global _depth
        with _lock:
            if _depth == 0 and _is_controlled():
                _switch("start")
            _depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        global _depth
        with _lock:
            _depth -= 1
            if _depth == 0 and _is_controlled():
                _switch("stop")
