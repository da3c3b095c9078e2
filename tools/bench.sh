#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of xtrace. Works in a build tree, an installation or an unpacked tarball
# (share/xtrace/bench.sh), and installs nothing. --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
suites=$here/bench
[ -e "$suites/bench.py" ] || suites=$here/../bench
exec python3 "$suites/bench.py" "$@"
