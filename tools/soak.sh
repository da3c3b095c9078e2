#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records a program on the simulated GPU for the given minutes (60): it starts and ends threads,
# graphs and libraries. Prints the memory use each minute. At the end, memory use must be flat and
# every launch must belong to its function. Uses the build in "build", or makes one.
set -eu
cd "$(dirname "$0")/.."
case ${1-60} in
*[!0-9]* | '')
	echo "usage: tools/soak.sh [MINUTES]" >&2
	exit 2
	;;
esac
[ -d build ] || cmake --preset release >/dev/null
cmake --build build >/dev/null
lib=build/lib
exec python3 -B tests/integration/soak/soak_test.py --seconds $((${1-60} * 60)) --verbose \
	--merge build/bin/xtrace-merge --inject "$PWD/$lib/libxtrace_inject.so" --simgpu "$PWD/$lib/xtrace/simgpu" \
	--program build/bin/soak "$PWD/$lib/libfirst_step.so" "$PWD/$lib/libother_step.so" \
	"$PWD/$lib/libthird_step.so" "$PWD/$lib/libfifth_step.so"
