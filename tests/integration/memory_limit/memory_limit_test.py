#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An offline command that runs out of memory says so in one line and replaces no output.

usage: memory_limit_test.py XTRACE LOG

Merges a log with less and less address space. Each run either writes the whole output, or prints
the line and leaves the old output as it was. It never takes the log for damaged.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile

MIB = 1 << 20
NOT_LOADED = 127 # the libraries did not fit
LINE = re.compile(r'xtrace: (cannot allocate \d+ bytes: )?out of memory\n')


def run(command, limit):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


def check(command, output, folder):
    """Returns how many runs ended with the line."""
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    with open(output, 'rb') as file:
        whole = file.read()
    ended = 0
    for quarter in range(256, 32, -2):
        with open(output, 'wb') as file:
            file.write(b'old')
        done = run(command, quarter * MIB // 4)
        with open(output, 'rb') as file:
            content = file.read()
        assert os.listdir(folder) == [os.path.basename(output)], (os.listdir(folder), done)
        if content == whole:
            assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr), done
            continue
        assert content == b'old', (quarter, content[:200])
        if done.returncode != NOT_LOADED:
            line = LINE.search(done.stderr)
            assert done.returncode == 2 and line and line.end() == len(done.stderr), done
            assert plain.stderr.startswith(done.stderr[:line.start()]), done
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
