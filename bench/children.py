# SPDX-License-Identifier: Apache-2.0
"""Runs the measured programs. Each has a time limit, and none can stop the rest of the benchmark."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time


class Failed(Exception):
    """A failed run. The text gives the reason in one line."""


class Done:
    """A successful run."""

    def __init__(self, said, wall_s, cpu_s, ended_ns, peak_kib):
        self.said = said
        self.wall_s = wall_s
        self.cpu_s = cpu_s
        self.ended_ns = ended_ns
        self.peak_kib = peak_kib

    def report(self):
        """The last line of JSON in the program's output."""
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
    """Polls the peak memory of a process in /proc, because wait4() includes its parent's."""

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
    """Runs the command in its own process group, to its end or to the time limit.

    The output goes to a file, because waiting for a full pipe would distort the measurement.
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
        # wait4() gives the resources of this child only.
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
