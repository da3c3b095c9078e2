#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds large structures that files of several folders use: shared state that belongs to no one.

Counts the fields of each structure that a header declares, those of unnamed structures and unions
inside included. A file uses a structure if it names it and includes its header, even indirectly.

usage: check-structures.py [--all]
- --all: print all shared structures, the largest first
"""
import collections
import importlib.util
import os
import re
import sys

FIELDS_MAX = 15
# Larger ones, with their present number of fields, which may only fall. Those of CUPTI and of the
# crash buffer are layouts that others define, and those of the injected library are read on the hot
# path as one block of memory.
LIMITS = {
    'thread_buffer': 51, # src/inject/capture/thread_buffer.h
    'model': 37, # src/merge/read/model.h
    'python_layout': 48, # src/python/python_layout.h
    'cupti_activity_kernel': 42, # src/cuda_abi/cupti_abi.h
    'callsite': 39, # src/merge/sums/callsite_stats.h
    'python_walk': 34, # src/inject/python/python_walk.h
    'input': 28, # src/merge/read/inputs.h
    'xt_crash_buffer_header': 25, # include/xtrace/crash_buffer_format.h
    'cupti_activity_device': 26, # src/cuda_abi/cupti_abi.h
    'cupti_activity_memcpy': 22, # src/cuda_abi/cupti_abi.h
    'cupti_activity_memcpy_peer': 22, # src/cuda_abi/cupti_abi.h
    'stack_walk': 20, # src/inject/unwind/stack_walk.h
    'cupti_activity_memset': 19, # src/cuda_abi/cupti_abi.h
    'xt_ring_header': 17, # include/xtrace/crash_buffer_format.h
}

STRUCT = re.compile(r'\bstruct\s+(\w+)\s*\{')


def load_cycles():
    """The module of check-cycles.py, whose name is not one of Python."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'check-cycles.py')
    spec = importlib.util.spec_from_file_location('check_cycles', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def body_at(text, start):
    """The text between the brace at start and its partner."""
    depth = 0
    for at in range(start, len(text)):
        depth += {'{': 1, '}': -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1:at]
    return text[start + 1:]


def fields_of(body):
    """The number of fields of the body of a structure."""
    count, at = 0, 0
    while at < len(body):
        end = re.search(r'[;{]', body[at:])
        if not end:
            break
        head, stop = body[at:at + end.start()], at + end.start()
        if body[stop] == ';':
            count += 1 + without_brackets(head).count(',')
            at = stop + 1
            continue
        inner = body_at(body, stop)
        after = stop + len(inner) + 2
        tail = re.match(r'[^;]*;', body[after:])
        names = tail.group(0)[:-1].strip() if tail else ''
        count += 1 + names.count(',') if names else fields_of(inner)
        at = after + (tail.end() if tail else 0)
    return count


def without_brackets(text):
    """The text without what is in parentheses: the parameters of a function."""
    while re.search(r'\([^()]*\)', text):
        text = re.sub(r'\([^()]*\)', ' ', text)
    return text


def included(path, includes, known):
    """The file and all headers that it includes, even indirectly."""
    if path not in known:
        known[path] = {path}
        for found in includes[path]:
            known[path] |= included(found, includes, known)
    return known[path]


def shared_structures(cycles):
    """Yields (fields, name, header, folders) of the structures that several folders use."""
    texts, declared, includes, known = {}, collections.defaultdict(dict), {}, {}
    for path in cycles.sources():
        with open(path, encoding='utf-8') as file:
            texts[path] = file.read()
    roots = {os.path.relpath(path, root): path for path in texts for root in ('src', 'include', 'tools')
             if path.startswith(root + '/')}
    for path, text in texts.items():
        near = os.path.dirname(path)
        names = ((os.path.normpath(os.path.join(near, name)), name) for name in cycles.INCLUDE.findall(text))
        includes[path] = [found for found in (one if one in texts else roots.get(name) for one, name in names)
                          if found]
        texts[path] = text = cycles.DIRECTIVE.sub(' ', cycles.strip_noise(text))
        for found in STRUCT.finditer(text) if path.endswith('.h') else ():
            declared[found.group(1)][path] = fields_of(body_at(text, found.end() - 1))
    users = collections.defaultdict(set)
    for path, text in texts.items():
        for name in set(re.findall(r'\bstruct\s+(\w+)', text)) & declared.keys():
            for header in declared[name].keys() & included(path, includes, known):
                users[name, header].add(os.path.dirname(path))
    for (name, header), folders in users.items():
        if len(folders) > 1:
            yield declared[name][header], name, header, sorted(folders)


def main(arguments):
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    found = sorted(shared_structures(load_cycles()), key=lambda row: (-row[0], row[1:]))
    breaches = 0
    for count, name, header, folders in found:
        limit = LIMITS.get(name, FIELDS_MAX)
        if arguments == ['--all']:
            print('%s: struct %s: %d fields, in %d folders' % (header, name, count, len(folders)))
        elif count > limit or (name in LIMITS and count < limit):
            print('%s: struct %s has %d fields; %s' % (header, name, count,
                  'lower its limit in LIMITS' if count < limit else 'at most %d may be shared' % limit))
            breaches += 1
    print('check-structures: %d shared structures, %d breaches' % (len(found), breaches))
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
