#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of xtrace, and installs nothing. --help lists the options.
exec python3 "$(dirname "$0")/../bench/bench.py" "$@"
