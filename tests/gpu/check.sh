#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all checks that need a GPU. Installs nothing.
#
# Each program runs once without and once with recording. A check passes if:
# - the exit status is the same
# - calls seen = calls written + calls lost, and nothing was lost
# - every kernel has a call path
# - the folded stacks add up to the nanoseconds that the independent dumper finds
#
# Exit status: 0 if all checks that could run pass, 1 if one fails, 2 for usage or if there is no
# GPU.
set -u

usage() {
	echo "usage: check.sh [--xtrace PATH] [-o RESULTS] [-k DIR]" >&2
	echo "  -o  write the results to this file, too   -k  keep all traces and outputs in DIR" >&2
	echo "  --xtrace  the program to check, built or installed (build/bin/xtrace)" >&2
	exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
results=/dev/null
work=
xtrace=
while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || usage
	case $1 in
	-o) results=$2 ;;
	-k) work=$2 ;;
	--xtrace) xtrace=$2 ;;
	*) usage ;;
	esac
	shift 2
done
: >"$results" || exit 2
. "$here/places.sh"
conformance=$programs/tests/conformance

if [ -n "$work" ]; then
	mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 2
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi

failures=0
: >"$work/speeds"

say() {
	printf "$@"
	printf "$@" >>"$results"
}

row() {
	say '%-22s %9s %9s %6s %7s %8s %8s  %s\n' "$@"
}

skip() {
	row "$1" - - - - - - "skipped: $2"
}

fail() {
	failures=$((failures + 1))
}

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

seconds() {
	printf '%d.%02d' $(($1 / 1000)) $(($1 % 1000 / 10))
}

# judge NAME DIR LAUNCHES_MIN WALL_BARE_S WALL_S REASON: checks one recorded directory.
judge() {
	name=$1 data=$2 launches_min=$3 bare_s=$4 traced_s=$5 reason=$6
	"$checkout/tests/tools/check-trace.py" "$data" --dump "$dump" --merge "$merge" \
		--launches-min "$launches_min" >"$work/$name.judged" 2>"$work/$name.judge"
	judge_status=$?
	{
		read -r launches kernels lost bytes
		read -r verdict
	} <"$work/$name.judged"
	if [ $judge_status -gt 1 ]; then
		verdict="check-trace.py: $(tail -n 1 "$work/$name.judge")"
	fi
	verdict=$reason${reason:+${verdict:+; }}$verdict
	[ -z "$verdict" ] || fail
	row "$name" "$launches" "$kernels" "$lost" "$bytes" "$bare_s" "$traced_s" "${verdict:-holds}"
	for run in bare traced; do
		[ -e "$work/$name.$run" ] || continue
		grep -oE '[0-9.]+ (tokens/s|ms/step)' "$work/$name.$run" |
			awk -v name="$name" -v run=$run '{ sum += $1; unit = $2 } END {
				if (NR) printf "%-22s %-7s %10.3f %s\n", name, run, sum / NR, unit }' \
				>>"$work/speeds"
	done
}

# check NAME LAUNCHES_MIN COMMAND...: runs it once without and once with xtrace record.
check() {
	name=$1 launches_min=$2
	shift 2
	"$@" >"$work/$name.bare" 2>&1 # warms the caches of files and of compiled kernels
	begin=$(now_ms)
	"$@" >"$work/$name.bare" 2>&1
	bare_status=$?
	bare_ms=$(($(now_ms) - begin))
	begin=$(now_ms)
	"$xtrace" record -o "$work/$name.data" -- "$@" >"$work/$name.traced" 2>"$work/$name.said"
	traced_status=$?
	traced_ms=$(($(now_ms) - begin))
	reason=
	[ $bare_status -eq 0 ] || reason="fails by itself with $bare_status: $(tail -n 1 "$work/$name.bare")"
	[ $traced_status -eq $bare_status ] || reason="exit status $bare_status bare, $traced_status recorded"
	judge "$name" "$work/$name.data" "$launches_min" "$(seconds $bare_ms)" "$(seconds $traced_ms)" "$reason"
}

# Records only between cudaProfilerStart() and cudaProfilerStop().
check_range() {
	name=$1
	shift
	begin=$(now_ms)
	"$xtrace" record --capture-range cudaProfilerApi -o "$work/$name.data" -- "$@" \
		>"$work/$name.traced" 2>"$work/$name.said"
	status=$?
	reason=
	[ $status -eq 0 ] || reason="exit status $status"
	"$dump" --kind SWITCH "$work/$name.data"/*.xtr | grep -q '^SWITCH' ||
		reason="$reason recording was never paused"
	judge "$name" "$work/$name.data" 1 - "$(seconds $(($(now_ms) - begin)))" "$reason"
}

# The same with LD_PRELOAD instead of the launcher.
check_preload() {
	name=$1
	shift
	mkdir -p "$work/$name.data"
	begin=$(now_ms)
	LD_PRELOAD=$injected XTRACE_DATA=$work/$name.data "$@" >"$work/$name.traced" 2>"$work/$name.said"
	status=$?
	reason=
	[ $status -eq 0 ] || reason="exit status $status"
	judge "$name" "$work/$name.data" 1 - "$(seconds $(($(now_ms) - begin)))" "$reason"
}

# Both checks use the libcupti that the sample used.
cupti_taken() {
	"$dump" --kind META "$work"/probe.data/*.xtr | sed -n 's/.*key=cupti\.path[[:space:]]*value=//p'
}

check_conformance() {
	if [ ! -x "$conformance" ]; then
		skip conformance "not built"
		return
	fi
	begin=$(now_ms)
	"$conformance" --cupti "$(cupti_taken)" >"$work/conformance.out" 2>&1
	status=$?
	verdict=$(tail -n 1 "$work/conformance.out")
	if [ $status -eq 0 ]; then
		verdict="holds: $verdict"
	else
		fail
		verdict="$verdict: $(grep '^FAIL' "$work/conformance.out" | tr '\n' ' ')"
	fi
	row conformance - - - - "$(seconds $(($(now_ms) - begin)))" - "$verdict"
}

if ! "$xtrace" record -o "$work/probe.data" "$sample" --layers 1 --tokens 1 >"$work/probe" 2>&1; then
	echo "check.sh: the sample does not run on a GPU here:" >&2
	cat "$work/probe" >&2
	exit 2
fi

built_from=$(cat "$root/share/xtrace/built-from" 2>/dev/null ||
	git -C "$here" describe --always --dirty --abbrev=12 2>/dev/null || echo "an unknown commit")
say 'xtrace:  %s, built from %s\n' "$("$xtrace" --version)" "$built_from"
say 'machine: %s, %s cores, glibc %s\n' "$(uname -sr)" "$(nproc)" "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)"
say 'GPU:     %s\n' "$(sed -n 's/^GPU: //p' "$work/probe")"
if command -v nvidia-smi >/dev/null; then
	say 'driver:  %s\n' "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
fi
say '\n'
row what launches kernels lost B/call bare_s traced_s verdict

check_conformance
check llm-verified 1 "$sample" --threads 2 --streams 3 --verify
check llm-100k 100000 "$sample" --threads 2 --layers 8 --dim 128 --tokens 400
check llm-8-threads 1 "$sample" --threads 8 --streams 2 --layers 4 --dim 128 --tokens 50
check_preload llm-preload "$sample" --threads 2

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
for cudart in static shared; do
	if [ ! -x "$nvcc" ]; then
		skip "runtime-$cudart" "no nvcc"
		continue
	fi
	toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
	twin=$work/llm_inference_runtime_$cudart
	if "$nvcc" -O2 -g -cudart $cudart -Xcompiler -fno-optimize-sibling-calls -o "$twin" \
		"$samples/llm_inference_runtime.cu" "$samples/llm_model.c" \
		>"$work/nvcc.$cudart" 2>&1; then
		check "runtime-$cudart" 1 env LD_LIBRARY_PATH="$toolkit/lib64:${LD_LIBRARY_PATH:-}" "$twin"
	else
		fail
		row "runtime-$cudart" - - - - - - "nvcc failed: $(tail -n 1 "$work/nvcc.$cudart")"
	fi
done

if [ -x "$nvcc" ]; then
	toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
	if cc -O2 -g -fno-optimize-sibling-calls -I"$toolkit/include" -o "$work/work" "$here/work.c" \
		-L"$toolkit/lib64/stubs" -Wl,-z,lazy -lcuda -ldl >"$work/cc.work" 2>&1; then
		check all-work 1 "$work/work"
		check_range all-work-range "$work/work"
	else
		fail
		row all-work - - - - - - "cc failed: $(tail -n 1 "$work/cc.work")"
	fi
else
	skip all-work "no CUDA toolkit"
fi

has_module() {
	python3 -c "import $1" >/dev/null 2>&1
}

if has_module torch; then
	check pytorch-100k 100000 python3 "$samples/pytorch_train.py" --steps 300
	check pytorch-graph 1 python3 "$samples/pytorch_train.py" --steps 300 --graph
	check pytorch-work 1 python3 "$here/torch_work.py"
else
	skip pytorch-100k "no torch"
fi
if has_module cupy; then
	check cupy 1 python3 -c 'import cupy; print(cupy.arange(1000).astype("f").sum())'
else
	skip cupy "no cupy"
fi
if has_module triton && has_module torch; then
	check triton 100 python3 "$here/triton_double.py"
else
	skip triton "no triton"
fi

if [ -s "$work/speeds" ]; then
	say '\nSpeeds that the programs themselves print, means of their threads:\n'
	say '%s\n' "$(cat "$work/speeds")"
fi
if [ $failures -eq 0 ]; then
	say '\nAll checks hold.\n'
	exit 0
fi
say '\n%d checks do not hold.\n' $failures
exit 1
