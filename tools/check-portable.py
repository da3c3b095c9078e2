#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which systems the given programs and libraries, or those in the given folders, run on.

  tools/check-portable.py [--glibc VERSION] FILE|DIR...

A file may need symbols up to that glibc (default: 2.34), and the libraries of glibc, of the driver
and those that are given, too. It may search for libraries only relative to itself.
"""
import argparse
import os
import re
import subprocess
import sys

# Every Linux system with glibc has these.
GLIBC = re.compile(r'^(lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d+|ld-linux-[a-z0-9_-]+\.so\.\d+)$')
# The driver and CUPTI. The simulated GPU has libraries of the same names.
NVIDIA = re.compile(r'^lib(cuda|cupti|nvidia-ml)\.so(\.\d+)?$')
VERSION = re.compile(r'Name: (GLIBC_(\S+))')


def elf_files(paths):
    for path in paths:
        if os.path.isfile(path):
            names = [path]
        else:
            names = (os.path.join(folder, name) for folder, _, files in os.walk(path)
                     for name in files)
        for name in sorted(names):
            if os.path.isfile(name):
                with open(name, 'rb') as file:
                    if file.read(4) == b'\x7fELF':
                        yield name


def number(version):
    return tuple(int(part) for part in version.split('.'))


def breaches(file, newest, given):
    text = subprocess.run(['readelf', '--wide', '--dynamic', '--version-info', file], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    needs = text.partition("Version needs section")[2]
    for name, version in sorted(set(VERSION.findall(needs))):
        if not re.fullmatch(r'[0-9.]+', version):
            yield f'needs {name}'
        elif number(version) > newest:
            symbols = subprocess.run(['objdump', '-T', file], check=True, stdout=subprocess.PIPE,
                                     text=True).stdout
            for line in symbols.splitlines():
                if '*UND*' in line and name in re.split(r'[\s()]+', line):
                    yield f'needs {line.split()[-1]} of glibc {version}'
    for tag, value in re.findall(r'\((NEEDED|RPATH|RUNPATH)\).*\[(.*)\]', text):
        if tag != 'NEEDED':
            for place in value.split(':'):
                if not place.startswith('$ORIGIN'):
                    yield f'searches {place or "the current folder"} for libraries'
        elif not (GLIBC.match(value) or NVIDIA.match(value) or value in given):
            yield f'needs the library {value}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--glibc', default='2.34', metavar='VERSION', help='the oldest glibc')
    parser.add_argument('paths', nargs='+', metavar='FILE|DIR')
    options = parser.parse_args()
    files = list(elf_files(options.paths))
    if not files:
        sys.exit(f'check-portable: there is no program or library in: {" ".join(options.paths)}')
    given = {os.path.basename(file) for file in files}
    found = [f'{file}: {what}' for file in files
             for what in breaches(file, number(options.glibc), given)]
    if found:
        print('\n'.join(found))
        sys.exit(1)
    print(f'check-portable: {len(files)} programs and libraries need no glibc newer than '
          f'{options.glibc}')


if __name__ == '__main__':
    main()
