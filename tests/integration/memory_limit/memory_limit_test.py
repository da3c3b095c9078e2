#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An offline command that runs out of memory says so in one line and replaces no output.

usage: memory_limit_test.py XTRACE LOG

Merges a log with less and less address space. Each run either writes the whole output or leaves
the old one as it was.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile

MIB = 1 << 20
LINE = re.compile(r'xtrace: (cannot allocate \d+ bytes: )?out of memory\n')


def run(command, limit):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


def check(command, output, folder):
    """Returns how many runs ended with the line."""
    subprocess.run(command, capture_output=True, check=False)
    with open(output, 'rb') as file:
        whole = file.read()
    ended = 0
    for quarter in range(256, 32, -2):
        with open(output, 'wb') as file:
            file.write(b'old')
        done = run(command, quarter * MIB // 4)
        with open(output, 'rb') as file:
            content = file.read()
        assert content in (b'old', whole), (quarter, content[:200])
        assert os.listdir(folder) == [os.path.basename(output)], os.listdir(folder)
        if done.returncode == 2 and LINE.search(done.stderr):
            assert LINE.fullmatch(done.stderr), done.stderr
            assert content == b'old'
            ended += 1
    return ended


def main():
    xtrace, log = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, 'output')
        for kind in ('folded', 'chrome', 'perfetto'):
            ended = check([xtrace, 'merge', '--' + kind, output, log], output, folder)
            print('%s: %d runs ran out of memory' % (kind, ended))
            assert ended >= 3
            os.unlink(output)


if __name__ == '__main__':
    main()
