# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder, which set xtrace to their option --xtrace or nothing. Finds
# xtrace, its other parts, and the programs for checks: see bench/places.py.
checkout=$(cd "$(dirname "$0")/../.." && pwd)
xtrace=${xtrace:-$checkout/build/bin/xtrace}
if [ ! -x "$xtrace" ]; then
	echo "${0##*/}: there is no program $xtrace: build it, or use --xtrace PATH" >&2
	exit 2
fi
root=$(cd "$(dirname "$xtrace")/.." && pwd)
xtrace=$root/bin/xtrace
merge=$root/bin/xtrace-merge
injected=$root/lib/libxtrace_inject.so
dump=$checkout/tests/tools/xtrace-dump
programs=$root/libexec/xtrace
[ -d "$programs" ] || programs=$root/bin
samples=$checkout/samples
sample=$programs/samples/llm_inference
