#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fuzzes one target, or all, for the given minutes each, starting from tests/fuzz/corpus. New inputs
# go to a folder in build-fuzz. --keep adds those that increase coverage to the corpus. Needs clang
# with libFuzzer (Debian: clang, libclang-rt-14-dev). Exit status 0 if no input fails. Failing
# inputs are in build-fuzz/found.
set -eu
cd "$(dirname "$0")/.."
all_targets="log merge ranks recover elf perf_map python_lines options"

usage() {
	echo "usage: tools/fuzz.sh [--keep] TARGET|all MINUTES" >&2
	echo "targets: $all_targets" >&2
	exit 2
}

keep=
[ "${1-}" = --keep ] && keep=1 && shift
[ $# -eq 2 ] || usage
case " $all_targets all " in
*" $1 "*) ;;
*) usage ;;
esac
case $2 in
'' | *[!0-9]*) usage ;;
esac
targets=$1
[ "$1" = all ] && targets=$all_targets
seconds=$(($2 * 60))

cmake -S . -B build-fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	-DXTRACE_FUZZ=ON -DXTRACE_SANITIZE=address,undefined -DXTRACE_HTML=OFF \
	-DCMAKE_C_FLAGS="-fsanitize=fuzzer-no-link -fno-sanitize=function -fno-sanitize-recover=all" >build-fuzz.log 2>&1 ||
	{ cat build-fuzz.log >&2; exit 1; }
rm build-fuzz.log
failed=0
for target in $targets; do
	cmake --build build-fuzz --target "fuzz_$target" >&2
	new=build-fuzz/corpus/$target
	mkdir -p "$new" build-fuzz/found
	# Leaks are reported at the end of a run. Limits: 10 s for an input, 1 GiB for the process.
	if build-fuzz/bin/fuzz_"$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
		-max_len=8192 -print_final_stats=1 -close_fd_mask=3 -verbosity=1 \
		-artifact_prefix="build-fuzz/found/$target-" "$new" "tests/fuzz/corpus/$target" \
		>"build-fuzz/$target.log" 2>&1; then
		echo "$target: $(sed -n 's/^stat::number_of_executed_units: */ran /p' "build-fuzz/$target.log") inputs, nothing found"
	else
		echo "$target: FAILED, see build-fuzz/$target.log and build-fuzz/found"
		failed=1
	fi
	[ -z "$keep" ] || build-fuzz/bin/fuzz_"$target" -merge=1 -close_fd_mask=3 "tests/fuzz/corpus/$target" "$new" \
		>>"build-fuzz/$target.log" 2>&1
done
exit $failed
