#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the Python frames in logs with what Python reports, for every available version of
# CPython. These are the versions of Debian's suites (3.9, 3.11, 3.13, 3.14 and later), and those
# that the command line names.
#
#   tools/check-pythons.sh BUILD_DIR [-d DIR] [-s "SUITE..."] [PYTHON...] [--OPTION...]
#
# debootstrap sets up each suite once in DIR (default: build-pythons). It needs root and Debian's
# mirror. -s "" uses no suite. PYTHON is the path of another interpreter. Arguments from the first
# one that begins with -- go to the test, for example --seeds 100.
set -eu

usage() {
	sed -n '3,11s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

source=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] && [ -x "$1/bin/xtrace" ] || usage
build=$(cd "$1" && pwd)
shift
roots=$source/build-pythons
suites='bullseye bookworm trixie sid'
while [ $# -gt 1 ]; do
	case $1 in
	-d) roots=$2 ;;
	-s) suites=$2 ;;
	-[!-]*) usage ;;
	*) break ;;
	esac
	shift 2
done
pythons=
while [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; do
	pythons="$pythons $1"
	shift
done
mkdir -p "$roots"
roots=$(cd "$roots" && pwd)
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
mounted=
failures=0

unmount() {
	for place in $mounted; do
		umount "$place"
	done
	mounted=
}
trap unmount EXIT

# check NAME ROOT PYTHON OPTION...: runs the whole test with that interpreter, in ROOT if given.
check() {
	name=$1 root=$2 python=$3
	shift 3
	echo "== $name: $python"
	for part in python modules; do
		python3 "$source/tests/integration/python/${part}_test.py" \
			--xtrace "$build/bin/xtrace" --merge "$build/bin/xtrace-merge" \
			--dump "$source/tests/tools/xtrace-dump" \
			--bridge "$build/lib/libpython_bridge.so" \
			--restarter "$build/lib/libpython_restarter.so" \
			--launcher "$build/bin/e2e_launcher" \
			--root "$root" --python "$python" "$@" || failures=$((failures + 1))
	done
}

mount_in() {
	mkdir -p "$1$2"
	mount --bind "$2" "$1$2"
	mounted="$1$2 $mounted"
}

check_suite() {
	suite=$1
	shift
	root=$roots/$suite
	if [ ! -e "$root/made" ]; then
		rm -rf "$root"
		debootstrap --variant=minbase --include=python3,libunwind8 "$suite" "$root" "$mirror" \
			>"$root.log" 2>&1 || {
			echo "$suite cannot be set up, see $root.log"
			failures=$((failures + 1))
			return
		}
		touch "$root/made"
	fi
	python=$(cd "$root/usr/bin" && echo python3.*[0-9])
	if [ "$suite" = bullseye ]; then
		# Its C library is too old for our build, so its interpreter uses this machine's.
		mkdir -p "$root/needed"
		cp -L "$root"/usr/lib/x86_64-linux-gnu/libffi.so.* "$root/needed"
		check "$suite" "" "env PYTHONHOME=$root/usr \
LD_LIBRARY_PATH=$build/lib/xtrace/simgpu:$root/needed $root/usr/bin/$python" "$@"
		return
	fi
	mount_in "$root" "$source"
	case $build in
	"$source"/*) ;;
	*) mount_in "$root" "$build" ;;
	esac
	mount_in "$root" "$scratch"
	mount -t proc proc "$root/proc"
	mounted="$root/proc $mounted"
	check "$suite" "$root" "chroot $root /usr/bin/$python" "$@"
	unmount
}

scratch=$(mktemp -d)
export TMPDIR="$scratch"
for suite in $suites; do
	check_suite "$suite" "$@"
done
for python in $pythons; do
	check "$("$python" --version)" "" "$python" "$@"
done
rm -rf "$scratch"
[ $failures -eq 0 ] || {
	echo "$failures interpreters do not hold"
	exit 1
}
