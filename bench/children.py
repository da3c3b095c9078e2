# SPDX-License-Identifier: Apache-2.0
"""Running the programs that are measured: each with a limit of time, none able to take the rest of
the benchmark down with it.
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time


class Failed(Exception):
    """A run that gave no figures; the text says why in one line."""


class Done:
    """A run that ended well."""

    def __init__(self, said, wall_s, cpu_s, ended_ns, peak_kib):
        self.said = said
        self.wall_s = wall_s
        self.cpu_s = cpu_s
        self.ended_ns = ended_ns
        self.peak_kib = peak_kib

    def report(self):
        """The last line of JSON that the program printed."""
        for line in reversed(self.said.splitlines()):
            if line.startswith("{"):
                try:
                    return json.loads(line)
                except ValueError:
                    break
        raise Failed("printed no figures")


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:160] if lines else "said nothing"


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


class PeakWatch(threading.Thread):
    """The most memory that a process has had, as it says itself: what wait4() tells begins with
    what its parent had.
    """

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path = f"/proc/{pid}/status"
        self.ended = threading.Event()
        self.peak_kib = None
        self.start()

    def run(self):
        while not self.ended.wait(0.005):
            try:
                with open(self.path, encoding="ascii", errors="replace") as file:
                    peaks = [line for line in file if line.startswith("VmHWM")]
            except OSError:
                return
            if peaks:
                self.peak_kib = int(peaks[0].split()[1])


def run(command, limit_s, environment=None, directory=None, watch_peak=False):
    """Runs the command, in a process group of its own, to its end or to the limit.

    What it prints goes to a file: a pipe that is full would be part of what is measured.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        begin = time.monotonic()
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=dict(os.environ, **(environment or {})),
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise Failed(str(error)) from error
        timer = threading.Timer(limit_s, kill_group, (child.pid,))
        timer.start()
        watch = PeakWatch(child.pid) if watch_peak else None
        # wait4() rather than wait(): it tells what this one child took.
        _, status, usage = os.wait4(child.pid, 0)
        ended_ns = time.monotonic_ns()
        timed_out = not timer.is_alive()
        timer.cancel()
        if watch:
            watch.ended.set()
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if timed_out:
        raise Failed(f"took more than {limit_s:.0f} s")
    if child.returncode:
        raise Failed(f"exit status {child.returncode}: {last_line(text)}")
    return Done(
        text,
        time.monotonic() - begin,
        usage.ru_utime + usage.ru_stime,
        ended_ns,
        watch.peak_kib if watch else None,
    )
