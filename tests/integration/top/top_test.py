#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests xtrace top on the simulated GPU, with a pseudo-terminal."""

import argparse
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time

LEAVE_SCREEN = "\033[?1049l"


class Terminal:
    """xtrace top on a terminal."""

    def __init__(self, arguments, columns, lines):
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            time.sleep(0.1)  # until the size is set
            os.execv(arguments[0], arguments)
        self.resize(columns, lines)
        self.output = ""
        self.before = termios.tcgetattr(self.terminal)

    def resize(self, columns, lines):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.columns, self.lines = columns, lines

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def read(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.terminal], [], [], left)[0]:
                return
            try:
                self.output += os.read(self.terminal, 65536).decode()
            except OSError:
                return  # xtrace has ended

    def frames(self):
        """Complete frames, each a list of lines as the terminal shows them."""
        texts = re.findall(r"\033\[H(.*?)\033\[J", self.output, re.S)
        return [re.sub(r"\033\[[0-9;]*[a-zA-Z]", "", text).split("\r\n") for text in texts]

    def wait(self, wanted, what):
        """Waits for a new frame for which wanted() is true."""
        self.output = ""
        until = time.monotonic() + 10
        while time.monotonic() < until:
            self.read(0.05)
            for frame in self.frames():
                if wanted("\n".join(frame)):
                    assert len(frame) <= self.lines, frame
                    assert all(len(line) <= self.columns for line in frame), frame
                    return frame
        raise AssertionError("no frame with %s: %r" % (what, self.output[-3000:]))


class Test:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def top(self, *words, status=0):
        done = subprocess.run([self.args.xtrace, "top", *words], capture_output=True, text=True,
                              cwd=self.folder, timeout=20, stdin=subprocess.DEVNULL)
        assert done.returncode == status, done
        return done.stdout + done.stderr

    def ps(self):
        return subprocess.run([self.args.xtrace, "ps", "--json", "data"], capture_output=True,
                              cwd=self.folder, text=True).stdout or '{"processes": []}'

    def check_once(self, pid):
        text = self.top("--once", "--interval", "300ms", "--filter", "MATMUL", "data")
        assert "llm_inference" in text and "matmul_kernel" in text, text
        assert re.search(r"\nGPU idle %: \d+\.\d [a-zA-Z ()]+[,\n]", text), text
        assert "softmax" not in text and "\033" not in text, text
        document = json.loads(self.top("--json", "--interval", "1500ms", pid))
        process, = document["processes"]
        assert process["pid"] == int(pid) and process["state"] == "recording", process
        assert process["launches_per_second"] > 1000 and 0 < process["busy_ratio"] <= 1, process
        idle = process["idle_ratios"]
        assert len(idle) == 9 and idle["CPU blocked in sync"] > 0, idle
        assert abs(process["busy_ratio"] + sum(idle.values()) - 1) < 1e-6, process
        assert process["allocated_bytes"] > 0 and process["lost"] == 0, process
        kernels = [row["name"] for row in document["kernels"]]
        assert kernels[0] == "matmul_kernel" and len(kernels) == len(set(kernels)), kernels
        times = [row["gpu_ns"] for row in document["paths"]]
        assert times == sorted(times, reverse=True), times
        assert any("decode;forward" in row["name"] for row in document["paths"]), document

    def check_terminal(self, pid):
        words = [self.args.xtrace, "top", "--interval", "300ms", pid]
        terminal = Terminal(words, 80, 24)
        frame = terminal.wait(lambda text: "matmul_kernel" in text, "a kernel")
        assert "1 process" in frame[0] and "llm_inference" in frame[2], frame
        terminal.resize(40, 12)
        terminal.wait(lambda text: "CALL PATH" in text, "40 columns")
        terminal.resize(1, 1)
        terminal.read(0.2)
        terminal.resize(100, 30)
        terminal.press("/Softmax\r")
        frame = terminal.wait(lambda text: "filter: Softmax  q quit" in text, "a filter")
        assert not [line for line in frame if "matmul" in line], frame
        terminal.press("/x\033")
        terminal.wait(lambda text: "matmul_kernel" in text, "no filter")
        terminal.press("p")
        terminal.wait(lambda text: "[paused]" in text, "a pause")
        terminal.read(0.1)
        terminal.output = ""
        terminal.read(0.5)
        assert not terminal.output, "a paused display must not change: " + terminal.output
        terminal.press("p\033[A")  # an arrow does nothing
        terminal.wait(lambda text: "paused" not in text, "the end of the pause")
        terminal.output = ""
        terminal.press("q")
        terminal.read(0.3)
        assert terminal.output.endswith(LEAVE_SCREEN), repr(terminal.output)
        assert termios.tcgetattr(terminal.terminal) == terminal.before
        assert os.waitpid(terminal.pid, 0)[1] == 0

    def check_signal(self):
        terminal = Terminal([self.args.xtrace, "top"], 80, 24)
        terminal.wait(lambda text: "xtrace top" in text, "a heading")
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.read(0.5)
        assert terminal.output.endswith(LEAVE_SCREEN), repr(terminal.output)
        assert os.waitpid(terminal.pid, 0)[1] == 0

    def run(self):
        self.top(status=2)
        assert "no trace directory" in self.top("--once", "nowhere", status=2)
        assert "no running process" in self.top("--once", "--interval", "1ms", self.folder)
        command = [self.args.xtrace, "record", "--simulate", "-o", "data", "--", self.args.sample,
                   "--tokens", "1000000", "--dim", "64"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as recorded:
            try:
                until = time.monotonic() + 10
                while not (found := json.loads(self.ps())["processes"]):
                    assert time.monotonic() < until, "nothing is recorded"
                pid = str(found[0]["pid"])
                self.check_once(pid)
                self.check_terminal(pid)
                self.check_signal()
            finally:
                recorded.terminate()


def main():
    parser = argparse.ArgumentParser()
    for name in ("xtrace", "sample"):
        parser.add_argument("--" + name, required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="xtrace-top.") as folder:
        Test(args, folder).run()


if __name__ == "__main__":
    main()
