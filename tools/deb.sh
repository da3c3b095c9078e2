#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package for the system that it runs on. Two builds of a commit with the same
# packages have the same bytes, wherever the source is.
#
#   tools/deb.sh OUT_DIR [CMAKE_OPTION]...
set -eu

if [ $# -lt 1 ]; then
	sed -n '6s/^# *//p' "$0" >&2
	exit 2
fi
umask 022 # cpack stores its effect
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
build=$source/build-deb
log=$build/log
rm -rf "$build" # options of an earlier call stay in the cache
mkdir -p "$build"
{
	# The build ID covers paths of the build, also the RPATH.
	cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DXTRACE_WERROR=ON \
		-DXTRACE_MPI=OFF -DBUILD_TESTING=OFF -DXTRACE_HTML=ON -DCMAKE_SKIP_RPATH=ON \
		-DCMAKE_C_FLAGS="-ffile-prefix-map=$source=." "$@" &&
		ninja -C "$build" &&
		(cd "$build" && rm -f xtrace-gpu_* && cpack -G DEB)
} >"$log" 2>&1 || {
	tail -n 20 "$log" >&2
	echo "deb: cannot build the package, see $log" >&2
	exit 1
}
cp "$build"/xtrace-gpu_*.deb "$out"
echo "deb: the package is in $out"
