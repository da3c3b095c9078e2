#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages, builds, and runs all tests.
# --sanitize asan|tsan: with those sanitizers, in a separate build directory.
# --retry: repeats failed tests one at a time, and names those that pass alone. The exit status
# still says that they failed: a test that passes only now and then hides a defect.
set -eu
cd "$(dirname "$0")/.."

usage() {
	echo "usage: tools/test.sh [--sanitize asan|tsan] [--retry]" >&2
	exit 2
}

preset=release
retry=
while [ $# -gt 0 ]; do
	case $1 in
	--sanitize)
		[ $# -ge 2 ] || usage
		case $2 in
		asan | tsan) preset=$2 ;;
		*) usage ;;
		esac
		shift 2
		;;
	--retry)
		retry=1
		shift
		;;
	*) usage ;;
	esac
done
case $preset in
release) build=build ;;
*) build=build-$preset ;;
esac

# Known and intended findings of the sanitizers. Tests preload the library into programs that have
# the sanitizer themselves.
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
export ASAN_OPTIONS="verify_asan_link_order=0"
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp"

tools/install-deps.sh
cmake --preset "$preset" -DBUILD_TESTING=ON
cmake --build "$build"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" && exit
status=$?
[ "$retry" ] || exit "$status"
failed_tests() {
	cut -d: -f2 "$build/Testing/Temporary/LastTestsFailed.log"
}
failed=$(failed_tests)
again=
echo "Once more, one at a time:" $failed
# ctest leaves the list of the first run if nothing fails now.
ctest --test-dir "$build" --output-on-failure --rerun-failed || again=$(failed_tests)
for test in $failed; do
	case " $(echo $again) " in
	*" $test "*) echo "failed twice: $test" ;;
	*) echo "failed, but passed alone: $test" ;;
	esac
done
exit "$status"
