#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What xtrace costs, measured: from a build tree, an installation or an unpacked tarball
# (share/xtrace/bench.sh). Nothing is installed. --help says what can be asked for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
suites=$here/bench
[ -e "$suites/bench.py" ] || suites=$here/../bench
exec python3 "$suites/bench.py" "$@"
