#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code that must go on when memory runs out refers to nothing of src/base, which ends the process.

usage: memory_test.py BUILD

Reads the symbols of the injected library, of the libraries of the sampler, of attach and of live
figures, and of the files of other folders that long-running commands use.
"""
import os
import subprocess
import sys

ENDING = {'xt_out_of_memory', 'xt_malloc', 'xt_calloc', 'xt_reallocarray', 'xt_strdup', 'xt_strndup',
          'xt_asprintf', 'xt_vasprintf', 'xt_open_memstream', 'xt_close_memstream'}
LIBRARIES = ['inject.so', 'inject_parts.a', 'log.a', 'python.a', 'sampler.a', 'attach.a', 'live.a',
             'idle.a', 'cli.a']
# xtrace top and serve name call paths with these files of the merge.
OBJECTS = {
    'src/merge/CMakeFiles/xtrace_merge.dir': [
        'base/names', 'naming/demangle', 'symbolize/debug_files', 'symbolize/module_cache',
        'symbolize/symbols'],
    'src/base/CMakeFiles/xtrace_base.dir': ['text'],
    'tools/xtrace/CMakeFiles/xtrace.dir': [
        'attach', 'control', 'data_dir', 'finish_logs', 'gpu_watch', 'http_server',
        'live_processes', 'processes', 'program', 'record', 'rotation', 'sample',
        'serve', 'top'],
}


def ending_symbols(path):
    """The symbols of a file, also local ones, that end the process."""
    output = subprocess.run(['nm', path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in output.splitlines() if line} & ENDING


def main():
    build = sys.argv[1]
    files = [os.path.join(build, 'lib', 'libxtrace_' + name) for name in LIBRARIES]
    files += [os.path.join(build, folder, name + '.c.o') for folder, names in OBJECTS.items()
              for name in names]
    # Otherwise the names above are wrong.
    if ending_symbols(os.path.join(build, 'lib', 'libxtrace_base.a')) != ENDING:
        sys.exit('libxtrace_base.a does not define what this test looks for')
    breaches = ['%s: %s' % (path, ' '.join(sorted(found))) for path in files
                if (found := ending_symbols(path))]
    print('\n'.join(breaches) or '%d files end no process' % len(files))
    return bool(breaches)


if __name__ == '__main__':
    sys.exit(main())
