#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything at length, for a machine that has the night: all tests, plain and with both sanitizers; then
# the tests of the configuration "nightly", which are 1,000 random programs held against the truth,
# 1,000 kills, every call failing in turn, an hour's soak, and files that are nothing but damage; then the
# fuzz targets, ten minutes each. Goes on after a failure; the last lines say how each
# step went. The exit status is 0 if all went well.
set -u
cd "$(dirname "$0")/.." || exit 2

usage() {
	echo "usage: tools/nightly.sh [--only STEP]..." >&2
	echo "steps: $all_steps" >&2
	exit 2
}

all_steps="test test-asan test-tsan nightly nightly-asan fuzz pythons"
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

# The sanitizers' options, as tools/test.sh has them.
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
export ASAN_OPTIONS="verify_asan_link_order=0"

# The tests of the configuration, in a build directory that "tools/test.sh" has filled or fills now.
nightly() {
	cmake --preset "$1" -DBUILD_TESTING=ON &&
		cmake --build "$2" &&
		ctest --test-dir "$2" -C nightly -R "$3" --output-on-failure -j "$(nproc)"
}

pythons() {
	cmake --preset release -DBUILD_TESTING=ON && cmake --build build &&
		tools/check-pythons.sh build
}

run_step() {
	case $1 in
	test) tools/test.sh ;;
	test-asan) tools/test.sh --sanitize asan ;;
	test-tsan) tools/test.sh --sanitize tsan ;;
	nightly) nightly release build '^nightly' ;;
	# A quarter of the programs: with the sanitizer each takes several times as long.
	nightly-asan) nightly asan build-asan '^nightly\.(attribution_1|log|merge)' ;;
	# Needs clang.
	fuzz) tools/fuzz.sh all 10 ;;
	# Every CPython that Debian's suites have; needs root, debootstrap and Debian's mirror.
	pythons) pythons ;;
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
