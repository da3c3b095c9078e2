#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the Python frames that the sampler reads of another process with what Python says.

usage: cpu_python_test.py --reader READER [--python PYTHON] [--reads COUNT] [UNITTEST_OPTION...]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMES_MAX = 1000
NAME_BYTES_MAX = 1024
FILE_CHARACTERS_MAX = 2048
SYSCALL_FUTEX = 202
options = None


class Reader:
    """The program under test, which started a Python program."""

    def __init__(self, script, *arguments):
        self.process = subprocess.Popen(
            [options.reader, *options.python.split(), os.path.join(HERE, script), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding='utf-8')
        self.pid = int(self.answer()[0])

    def answer(self):
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise EOFError('the reader ended')
            if line == '\n':
                return lines
            lines.append(line.rstrip('\n'))

    def ask(self, text):
        self.process.stdin.write(text + '\n')
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class FramesTest(unittest.TestCase):

    def start(self, script, *outputs):
        """Starts a script and waits for the last of its output files."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        paths = [os.path.join(folder.name, name) for name in outputs]
        reader = Reader(script, *paths)
        self.addCleanup(reader.close)
        end = time.time() + 60
        while not os.path.exists(paths[-1]):
            self.assertLess(time.time(), end)
            time.sleep(0.05)
        opened = reader.ask('open')[0].split('\t')
        self.assertEqual(opened[0], 'ok', opened)
        return reader, paths, opened[1]

    @staticmethod
    def expected(frame):
        name, file, first_line, line = frame
        name = name.encode('utf-8', 'surrogateescape')[:NAME_BYTES_MAX]
        return [name.decode(), file[-FILE_CHARACTERS_MAX:], first_line, line]

    def read(self, reader, tid):
        answer = [line.split('\t') for line in reader.ask('read %d 0' % tid)]
        frames = [[name, file, int(first), int(line)]
                  for name, file, first, line, _ in answer[1:]]
        return answer[0], frames, [int(row[4], 16) for row in answer[1:]]

    def test_frames_of_blocked_threads_are_those_that_python_reports(self):
        reader, paths, version = self.start('blocked.py', 'said')
        with open(paths[0], encoding='utf-8') as file:
            said = json.load(file)
        for _ in range(3):
            for name, thread in said.items():
                with self.subTest(name):
                    (result, is_truncated), frames, anchors = self.read(reader, thread['tid'])
                    self.assertEqual(result, 'ok')
                    expected = [self.expected(frame) for frame in thread['frames']]
                    # Python cuts no name in the middle; the reader keeps whole characters.
                    self.assertEqual(is_truncated, str(int(len(expected) > FRAMES_MAX)))
                    for got, wanted in zip(frames, expected):
                        if len(wanted[0]) > 1000:
                            self.assertEqual(got[0][:1000], wanted[0][:1000])
                            got[0] = wanted[0]
                        if len(wanted[1]) > 1000:
                            self.assertEqual(got[1][-1000:], wanted[1][-1000:])
                            got[1] = wanted[1]
                    self.assertEqual(frames, expected[:FRAMES_MAX])
                    if not version.startswith('3.9') and is_truncated == '0':
                        self.assertTrue(all(anchors))
        cost = reader.ask('time %d 2000' % said['recursion']['tid'])[0].split('\t')
        print('%s: %s ns for a read of %s frames' % (version, cost[0], cost[2]))
        cost = reader.ask('time %d 2000' % said['coroutine']['tid'])[0].split('\t')
        print('%s: %s ns for a read of %s frames' % (version, cost[0], cost[2]))

    def function_of(self, frame):
        """The function that a comprehension is part of counts as the function."""
        name, line, _ = frame.split(':')
        return self.lines.get(line, name) if name[0] == '<' else name.split('.')[0]

    def futex_of(self, pid, tid):
        with open('/proc/%d/task/%d/syscall' % (pid, tid), encoding='ascii') as file:
            words = file.read().split()
        return int(words[1], 16) if words[0] == str(SYSCALL_FUTEX) else None

    def test_interpreter_lock_and_its_holder_are_known(self):
        reader, paths, _ = self.start('gil.py', 'ids')
        with open(paths[0], encoding='utf-8') as file:
            ids = dict(part.split('=') for part in file.read().split())
        ids = {name: int(tid) for name, tid in ids.items()}
        time.sleep(0.3)
        waits = 0
        for _ in range(2000):
            time.sleep(0.001)
            if waits == 50:
                break
            address = self.futex_of(reader.pid, ids['waiter'])
            if address is None:
                continue
            waits += 1
            self.assertEqual(reader.ask('gil %x' % address), ['1'])
            self.assertEqual(reader.ask('holder'), [str(ids['holder'])])
            address = self.futex_of(reader.pid, ids['locked'])
            self.assertEqual(reader.ask('gil %x' % address), ['0'])
        self.assertEqual(waits, 50)

    def test_running_threads_have_no_wrong_frame(self):
        reader, paths, version = self.start('marked.py', 'marker', 'sites')
        with open(paths[1], encoding='utf-8') as file:
            about = json.load(file)
        lines = reader.ask('follow %d %d 0 %s' % (about['tid'], options.reads, paths[0]))
        reads, accepted = map(int, lines.pop().split('\t')[1:])
        self.lines = about['lines']
        compared, pairs, wrong = 0, 0, []
        for line in lines:
            self.assertNotEqual(line, 'failed')
            before, after, *frames = line.split('\t')
            function = int(before) % 65536
            if before == after and function:
                compared += 1
                if self.function_of(frames[0]) != 'f%d' % function:
                    wrong.append(line)
            for inner, outer in zip(frames, frames[1:]):
                outer = outer.rpartition(':')[0]
                if outer in about['sites']:
                    pairs += 1
                    name = self.function_of(inner)
                    if name[0] in 'fgh' and name != about['sites'][outer]:
                        wrong.append(line)
        print('%s: accepted %d of %d reads while running (%.1f %%), and %d others; '
              '%d compared with the marker, %d call sites checked, %d wrong' %
              (version, accepted, reads, 100 * accepted / reads, len(lines) - accepted, compared,
               pairs, len(wrong)))
        self.assertEqual(wrong[:5], [])
        # A function that is called again meanwhile changes the marker, but not the frames.
        self.assertGreater(compared + pairs, len(lines))

    def test_new_code_at_an_old_address_is_recognised(self):
        reader, paths, version = self.start('recompiled.py', 'marker', 'about')
        with open(paths[1], encoding='utf-8') as file:
            tid = json.load(file)['tid']
        compared, end = set(), time.time() + 30
        while len(compared) < options.reads // 2 and time.time() < end:
            lines = reader.ask('follow %d %d 1 %s' % (tid, options.reads, paths[0]))
            for line in lines[:-1]:
                before, after, *frames = line.split('\t')
                number, is_asleep = divmod(int(before), 65536)
                if before == after and is_asleep:
                    compared.add(number)
                    self.assertRegex(frames[0], 'f%d:[345]:file%d.py' % (number, number))
                    self.assertEqual(frames[1], '<module>:6:file%d.py' % number)
        print('%s: %d functions at old addresses compared' % (version, len(compared)))
        self.assertGreaterEqual(len(compared), options.reads // 2)


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument('--reader', required=True)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--reads', type=int, default=200)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == '__main__':
    main()
