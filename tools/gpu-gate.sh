#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# xtrace bench, baselines and the gate for CI on a machine with a GPU, from an unpacked tarball
# (share/xtrace/gpu-gate.sh), an installation or a build tree: NVML is there and says what it should,
# what did not change passes, what did is found. Nothing is installed.
#
# usage: gpu-gate.sh [-o RESULTS] [-k DIR] [--simulate] [--build DIR]
#	-o	write the results to this file, too	-k	keep all runs and reports in DIR
#	--simulate	on the simulated GPU, to try the script	--build	the build directory (build)
#
# Exit status: 0 if all holds, 1 if anything does not, 2 usage.
set -u

usage() {
	echo "usage: gpu-gate.sh [-o RESULTS] [-k DIR] [--simulate] [--build DIR]" >&2
	exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
results=/dev/null
work=
simulate=
build=
while [ $# -gt 0 ]; do
	case $1 in
	-o | -k | --build)
		[ $# -ge 2 ] || usage
		case $1 in -o) results=$2 ;; -k) work=$2 ;; *) build=$2 ;; esac
		shift
		;;
	--simulate) simulate=--simulate ;;
	*) usage ;;
	esac
	shift
done
: >"$results" || exit 2

# An unpacked tarball or an installation: this lies in share/xtrace. Else a build tree.
root=$(cd "$here/../.." && pwd)
samples=$here/samples
gate=$here/ci/gate.sh
sample=$samples/llm_inference
if [ ! -x "$root/bin/xtrace" ]; then
	root=${build:-$(cd "$here/.." && pwd)/build}
	samples=$here/../samples
	sample=$root/bin/samples/llm_inference
fi
xtrace=$root/bin/xtrace
[ -x "$xtrace" ] || {
	echo "gpu-gate: no xtrace in ../../bin or ../build/bin from $here" >&2
	exit 2
}
if [ -n "$work" ]; then
	mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 2
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
cd "$work" || exit 2

failures=0

say() {
	echo "$*"
	echo "$*" >>"$results"
}

# check WHAT COMMAND...: says whether it succeeds.
check() {
	what=$1
	shift
	if "$@"; then
		say "ok    $what"
	else
		say "FAIL  $what"
		failures=$((failures + 1))
	fi
}

# Of gpu.json of each run of a bench: what a device under load has to show.
check_states() {
	python3 - "$1" <<'EOF'
import glob, json, sys

runs = sorted(glob.glob(sys.argv[1] + "/run-*/gpu.json"))
assert runs, "no gpu.json in any run"
for path in runs:
    state = json.load(open(path))
    assert state["format"] == "xtrace.gpu" and state["driver"] and state["devices"], path
    for device in state["devices"]:
        assert device["load_sample_count"] >= 3, (path, device)
        assert 100 < device["sm_mhz"]["mean"] < 5000, (path, device)
        assert 100 < device["memory_mhz"]["mean"] < 20000, (path, device)
        assert 5 < device["temperature_celsius"]["mean"] < 110, (path, device)
        assert 10000 < device["power_milliwatts"]["mean"] < 2000000, (path, device)
        print("     ", path, device["name"], "SM %.0f MHz, %.0f C, %.0f W, %d samples" % (
            device["sm_mhz"]["mean"], device["temperature_celsius"]["mean"],
            device["power_milliwatts"]["mean"] / 1000, device["load_sample_count"]))
    bench = json.load(open(sys.argv[1] + "/bench.json"))
    assert bench["finished"] and all(run["complete"] for run in bench["runs"])
EOF
}

# has_status STATUS COMMAND...
has_status() {
	wanted=$1
	shift
	got=0
	"$@" || got=$?
	[ "$got" = "$wanted" ] || echo "      exit status $got rather than $wanted"
	[ "$got" = "$wanted" ]
}

# gated NAME STATUS COMMAND-LINE: the gate with the baseline.
gated() {
	has_status "$2" env XTRACE_GATE_XTRACE="$root" XTRACE_GATE_COMMAND="$3" XTRACE_GATE_RUNS=5 \
		XTRACE_GATE_BASELINE="$work/baseline.json" XTRACE_GATE_OUTPUT="$work/$1" \
		XTRACE_GATE_BENCH_OPTIONS="$simulate" sh "$gate" >"$work/$1.txt" 2>&1
}

# Another process on the GPU, all the time.
finds_other() {
	if [ -n "$simulate" ]; then
		XTRACE_SIMGPU_NVML=other_pid:4321 "$xtrace" bench --simulate -n 1 --warmup 0 -o other \
			-- "$sample" --tokens 20 >other.txt 2>&1
	else
		# shellcheck disable=SC2086
		$program >/dev/null 2>&1 & neighbour=$!
		sleep 10
		"$xtrace" bench -n 1 --warmup 0 -o other -- "$sample" --tokens 20 >other.txt 2>&1
		kill "$neighbour" 2>/dev/null
		wait "$neighbour" 2>/dev/null
	fi
	grep 'another process used the GPU' other.txt
}

if [ -z "$simulate" ] && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
	program="python3 $samples/pytorch_train.py --steps 300"
	slower="$program --layers 5"
else
	program="$sample --tokens 200 --layers 4"
	slower="$sample --tokens 200 --layers 5"
fi

say "program: $program"
# shellcheck disable=SC2086
check "five runs are made" "$xtrace" bench $simulate -n 5 -o runs -- $program
check "NVML says what it should" check_states runs
say "same against same, in turns"
# shellcheck disable=SC2086
check "nothing changed, nothing is said" has_status 0 "$xtrace" bench $simulate -n 5 -o same \
	--vs "$program" -- $program
check "a baseline is written" "$xtrace" baseline save baseline.json runs --label first
"$xtrace" baseline show baseline.json
check "the gate passes against it" gated unchanged 0 "$program"
check "its report says so" grep -q 'nothing got worse' unchanged/report.md
check "a layer more is found" gated slower 1 "$slower"
check "its report names it" grep -q 'regression' slower/report.md
check "JUnit has it as a failure" grep -q '<failure' slower/junit.xml
sed -n '2,16p' slower/report.md | cut -c1-200
check "a bench in which something else uses the GPU says so" finds_other

say "$failures failures"
[ "$failures" = 0 ]
