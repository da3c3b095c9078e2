#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cross builds for arm64 and tests it under qemu:
# - libraries and programs of the other processor: one line, and the program runs on
# - logs of either architecture merged on both, with equal outputs
# - the instructions of the hot path, against bench/guard/budgets.txt
# - the quick tests, and all of xtrace record, less those of tests/emulation/excluded.txt
# --quick: builds only what this needs, and runs only tests with the label arm64, in about a minute.
# Installs Debian's cross compiler and qemu-user if they are missing. Needs Linux 6.7 or later.
set -eu
cd "$(dirname "$0")/.."

quick=
case $* in
'') ;;
--quick) quick=1 ;;
*)
	echo "usage: tools/arm64-test.sh [--quick]" >&2
	exit 2
	;;
esac

tools/install-deps.sh --arm64
system=--system
[ ! "$quick" ] || system=
export XTRACE_ARM64_ROOT=${XTRACE_ARM64_ROOT:-$PWD/build-arm64-${quick:+quick-}root}
[ -d "$XTRACE_ARM64_ROOT" ] || tools/arm64-root.sh $system "$XTRACE_ARM64_ROOT"
emulate=tools/arm64-emulate.sh
"$emulate" true || {
	echo "arm64-test: cannot test here: user namespaces or binfmt_misc are not permitted" >&2
	exit 1
}

# The targets of the host, then those of arm64; none: all.
host=(xtrace xtrace_inject simcuda simcupti llm_inference bench_qemu_count)
arm64=(xtrace xtrace_inject simcuda simcupti llm_inference bench_guard bench_log_generator arm64_tests)
[ "$quick" ] || arm64=(all)
cmake --preset release >/dev/null
cmake --build build --target "${host[@]}"
cmake --preset arm64 >/dev/null
cmake --build build-arm64 --target "${arm64[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "arm64-test: $*" >&2
	exit 1
}

# A program of one build with the library of the other. Usage: mismatch BUILD OTHER
mismatch() {
	local sample=$1/bin/samples/llm_inference
	local run=("$emulate" env "LD_LIBRARY_PATH=$1/lib/xtrace/simgpu" "XTRACE_DATA=$work/mismatch")
	local library=$2/lib/libxtrace_inject.so preload=LD_PRELOAD=$2/lib/libxtrace_inject.so

	# Otherwise qemu itself would load the library.
	[ "$1" = build ] || preload=QEMU_SET_ENV=$preload

	"${run[@]}" "CUDA_INJECTION64_PATH=$library" "$sample" --tokens 2 >/dev/null 2>&1 ||
		fail "CUDA_INJECTION64_PATH of $2 breaks a program of $1"
	"${run[@]}" "$preload" "$sample" --tokens 2 >/dev/null 2>"$work/said" ||
		fail "a library of $2 breaks a program of $1"
	[ "$(wc -l <"$work/said")" = 1 ] && grep -q 'cannot be preloaded.*ignored' "$work/said" ||
		fail "a library of $2 in a program of $1 gives: $(cat "$work/said")"
	[ ! -e "$work/mismatch" ] || fail "a program of $1 was recorded by $2"
	! "$emulate" "$2/bin/xtrace" record --simulate -o "$work/none" "$sample" 2>"$work/said" ||
		fail "xtrace of $2 records a program of $1"
	[ "$(wc -l <"$work/said")" = 1 ] && grep -q 'built for another processor' "$work/said" ||
		fail "xtrace of $2 with a program of $1 says: $(cat "$work/said")"
	echo "arm64-test: a library of $2 leaves a program of $1 alone"
}
mismatch build build-arm64
mismatch build-arm64 build

# Records with one build, merges with both. Usage: exchange BUILD
exchange() {
	"$emulate" "$1/bin/xtrace" record --simulate -o "$work/$1" "$1/bin/samples/llm_inference" >/dev/null
	for reader in build build-arm64; do
		"$emulate" "$reader/bin/xtrace" merge "$work/$1" --folded "$work/$1.$reader.folded" \
			--text "$work/$1.$reader.text" --summary "$work/$1.$reader.json"
	done
	for format in folded text json; do
		cmp "$work/$1.build.$format" "$work/$1.build-arm64.$format"
	done
	grep -q '^main;run;.*forward;.*cuLaunchKernel' "$work/$1.build.folded"
	echo "arm64-test: same output of both architectures for a log of $1"
}

# Records a Python program of Debian: its frames must be in the stack.
python_frames() {
	cat >"$work/launches.py" <<-'end'
		import gpu


		def inner():
		    gpu.launch()


		def outer():
		    inner()


		outer()
	end
	PYTHONPATH=tests/integration/python "$emulate" build-arm64/bin/xtrace record --simulate \
		-o "$work/python" "$XTRACE_ARM64_ROOT/usr/bin/python3" "$work/launches.py" >/dev/null
	build/bin/xtrace merge "$work/python" --folded "$work/python.folded"
	grep -q '^<module> .*;outer .*;inner .*;launch .*;cuLaunchKernel;' "$work/python.folded"
	echo "arm64-test: Python frames of $("$emulate" "$XTRACE_ARM64_ROOT/usr/bin/python3" --version)"
}
python_frames
exchange build
exchange build-arm64

"$emulate" bench/guard/guard.py --plugin "$PWD/build/bin/bench/qemu_count.so" \
	--root "$XTRACE_ARM64_ROOT" --guard "$PWD/build-arm64/bin/bench/bench_guard" \
	--generator "$PWD/build-arm64/bin/bench/bench_log_generator" \
	--merge "$PWD/build-arm64/bin/xtrace-merge"

run_tests=(ctest --test-dir build-arm64 -j "$(nproc)" --timeout 300 --output-on-failure)
if [ "$quick" ]; then
	"$emulate" "${run_tests[@]}" -L arm64
	exit
fi
excluded=$(sed -n 's/^\([a-z][^ ]*\) .*/\1/p' tests/emulation/excluded.txt | paste -sd '|' |
	sed 's/\./\\./g')
failed=0
"$emulate" "${run_tests[@]}" -L quick -E "^(cli\.record\..*|$excluded)\$" || failed=1
# These record programs of the system, such as sh.
"$emulate" --chroot "${run_tests[@]}" -R '^cli\.record\.' -E "^($excluded)\$" || failed=1
exit $failed
