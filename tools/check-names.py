#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds names that functions of many files have. Such a name says little in a backtrace, in a profile
or in a search.

usage: check-names.py [--all]
- --all: print all names that several files define, the most frequent first
"""
import collections
import os
import re
import runpy
import sys

FILES_MAX = 8
DEFINITION = re.compile(r'^[a-z][^\n;{}#/=]*?\b(\w+)\([^;{}]*\)\n\{', re.M)
EXEMPT = {'main', '__attribute__'}


def main(arguments):
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    cycles, files = runpy.run_path('tools/check-cycles.py'), collections.defaultdict(set)
    for path in cycles['sources']():
        if path.endswith('.c'):
            with open(path, encoding='utf-8') as file:
                for name in DEFINITION.findall(cycles['strip_noise'](file.read())):
                    files[name].add(path)
    shared = {name: paths for name, paths in files.items() if len(paths) > 1 and name not in EXEMPT}
    breaches = 0
    for name, paths in sorted(shared.items(), key=lambda row: (-len(row[1]), row[0])):
        if len(paths) > FILES_MAX:
            breaches += 1
            print('%s(): defined in %d files, more than %d; put its object in front: %s'
                  % (name, len(paths), FILES_MAX, ', '.join(sorted(paths))))
        elif '--all' in arguments:
            print('%s(): defined in %d files' % (name, len(paths)))
    print('check-names: %d names of several files, %d breaches' % (len(shared), breaches))
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
