#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the long tests, which take a night:
# - all tests, plain and with both sanitizers
# - the configuration "nightly": 1,000 random programs compared with the ground truth, all outputs
#   of 300 random recordings compared cell by cell, 1,000 kills, failures of each call, an hour of
#   soak, a flight recorder, a model server, damaged files, reports of 10 million events, pictures
#   of the report
# - the fuzz targets, ten minutes each
# - the cross build, the Debian package and the wheel for aarch64 under emulation
# - both commands of the README in a bare Debian 12, at a long path and beside busy loops
# - the build for older systems, twice, and a recording on Debian 11
# - the Debian package, built twice, installed and purged in a bare Debian 12
# - the wheel in bare systems, the container image, and the Pod of docs/CONTAINERS.md
#
# Continues after a failure. The last lines show the result of each step. Exit status 0 if all
# passed.
set -u
cd "$(dirname "$0")/.." || exit 2

usage() {
	echo "usage: tools/nightly.sh [--only STEP]..." >&2
	echo "steps: $all_steps" >&2
	exit 2
}

all_steps="test test-asan test-tsan nightly nightly-asan fuzz arm64 pythons clean portable deb packages"
steps=
while [ $# -gt 0 ]; do
	case $1 in
	--only)
		[ $# -ge 2 ] || usage
		case " $all_steps " in
		*" $2 "*) steps="$steps $2" ;;
		*) usage ;;
		esac
		shift 2
		;;
	*) usage ;;
	esac
done

# The sanitizers' options, as in tools/test.sh.
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
export ASAN_OPTIONS="verify_asan_link_order=0"

# The configuration's tests, in a build directory that tools/test.sh has filled.
nightly() {
	cmake --preset "$1" -DBUILD_TESTING=ON &&
		cmake --build "$2" &&
		ctest --test-dir "$2" -C nightly -R "$3" --output-on-failure -j "$(nproc)"
}

pythons() {
	cmake --preset release -DBUILD_TESTING=ON && cmake --build build &&
		tools/check-pythons.sh build
}

packages() {
	rm -rf build-packages &&
		tools/portable.sh build-packages/tree &&
		tools/wheel/build.py build-packages/tree build-packages/dist &&
		tools/check-packages.sh build-packages/dist &&
		tools/container/check.py build-packages/tree
}

run_step() {
	case $1 in
	test) tools/test.sh ;;
	test-asan) tools/test.sh --sanitize asan ;;
	test-tsan) tools/test.sh --sanitize tsan ;;
	nightly) nightly release build '^nightly' ;;
	# A quarter of the programs, because the sanitizer slows each one down several times.
	nightly-asan) nightly asan build-asan '^nightly\.(attribution_1|log|merge)' ;;
	# Needs clang.
	fuzz) tools/fuzz.sh all 10 ;;
	# Needs Debian's mirror, and Linux 6.7 or later.
	arm64) tools/arm64-test.sh && tools/arm64-packages.sh build-arm64-packages ;;
	# Every CPython of Debian's suites. Needs root, debootstrap and Debian's mirror.
	pythons) pythons ;;
	# Needs root, debootstrap and Debian's mirror.
	clean) tools/check-clean.sh ;;
	# The same.
	portable) tools/check-old-system.sh ;;
	# The same.
	deb) tools/check-deb.sh ;;
	# Also needs buildah.
	packages) packages ;;
	esac
}

results=
failed=0
for step in ${steps:-$all_steps}; do
	echo "=== $step"
	began=$(date +%s)
	if run_step "$step"; then
		outcome=passed
	else
		outcome=FAILED
		failed=1
	fi
	results="$results$(printf '%-14s %s, %d s' "$step" "$outcome" $(($(date +%s) - began)))
"
done
printf '\n%s' "$results"
exit $failed
