#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks xtrace bench, baselines and the CI gate on a machine with a GPU. Installs nothing. NVML
# must report plausible values, unchanged programs must pass, and changes must be found. Prints a
# line for each check, with the seconds since the start, and the output of failed programs.
#
# usage: gate.sh [-o RESULTS] [-k DIR] [-n RUNS] [--simulate] [--xtrace PATH]
#	-o	write the results to this file, too	-k	keep all runs and reports in DIR
#	-n	runs of a side (4)	--simulate	on the simulated GPU, to try the script
#	--xtrace	the program to check, built or installed (build/bin/xtrace)
#
# Exit status: 0 if all checks pass, 1 if one fails, 2 for usage.
set -u

usage() {
	echo "usage: gate.sh [-o RESULTS] [-k DIR] [-n RUNS] [--simulate] [--xtrace PATH]" >&2
	exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
results=/dev/null
work=
simulate=
xtrace=
runs=4
while [ $# -gt 0 ]; do
	case $1 in
	-o | -k | -n | --xtrace)
		[ $# -ge 2 ] || usage
		case $1 in -o) results=$2 ;; -k) work=$2 ;; -n) runs=$2 ;; *) xtrace=$2 ;; esac
		shift
		;;
	--simulate) simulate=--simulate ;;
	*) usage ;;
	esac
	shift
done
: >"$results" || exit 2
results=$(cd "$(dirname "$results")" && pwd)/$(basename "$results")

. "$here/places.sh"
gate=$checkout/tools/ci/gate.sh
neighbour=
made=
# shellcheck disable=SC2317
clean_up() {
	[ -z "$neighbour" ] || kill "$neighbour" 2>/dev/null
	[ -z "$made" ] || rm -rf "$made"
}
trap clean_up EXIT
if [ -n "$work" ]; then
	mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 2
else
	work=$(mktemp -d)
	made=$work
fi
cd "$work" || exit 2

failures=0
begin=$(date +%s)

say() {
	line=$(printf '%4s s  %s' $(($(date +%s) - begin)) "$*")
	echo "$line"
	echo "$line" >>"$results"
}

# check WHAT LOG COMMAND...: reports whether the command succeeds. Its output goes to LOG, whose end
# is shown on failure.
check() {
	what=$1
	log=$2
	shift 2
	if "$@" >"$log" 2>&1; then
		say "ok    $what"
	else
		say "FAIL  $what"
		tail -n 25 "$log" | cut -c1-200 | sed 's/^/        /' | tee -a "$results"
		failures=$((failures + 1))
	fi
}

# show FILE PATTERN: adds the matching lines of a file to the results.
show() {
	grep -E "$2" "$1" | cut -c1-160 | sed 's/^/        /' | head -n 16 | tee -a "$results"
}

# Checks the gpu.json of each run: the values that a device under load must show.
check_states() {
	python3 - "$1" "$simulate" <<'EOF'
import glob, json, sys

runs = sorted(glob.glob(sys.argv[1] + "/run-*/gpu.json"))
assert runs, "no gpu.json in any run"
for path in runs:
    state = json.load(open(path))
    assert state["format"] == "xtrace.gpu" and state["driver"] and state["devices"], path
    for device in state["devices"]:
        assert device["load_sample_count"] >= (1 if sys.argv[2] else 3), (path, device)
        assert 100 < device["sm_mhz"]["mean"] < 5000, (path, device)
        assert 100 < device["memory_mhz"]["mean"] < 20000, (path, device)
        assert 5 < device["temperature_celsius"]["mean"] < 110, (path, device)
        assert 10000 < device["power_milliwatts"]["mean"] < 2000000, (path, device)
        print(path.split("/")[-2], device["name"], "SM %.0f MHz, %.0f C, %.0f W, %d samples" % (
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
	[ "$got" = "$wanted" ] || echo "exit status $got rather than $wanted"
	[ "$got" = "$wanted" ]
}

# gated NAME STATUS COMMAND-LINE: runs the gate with the baseline.
gated() {
	has_status "$2" env XTRACE_GATE_XTRACE="$root" XTRACE_GATE_COMMAND="$3" XTRACE_GATE_RUNS="$runs" \
		XTRACE_GATE_WARMUP=0 XTRACE_GATE_BASELINE="$work/baseline.json" \
		XTRACE_GATE_OUTPUT="$work/$1" XTRACE_GATE_BENCH_OPTIONS="$simulate" sh "$gate"
}

# Does the driver show a process that uses the GPU? In some containers it shows none.
shows_process() {
	nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null | grep -q '[0-9]'
}

# Another process uses the GPU all the time.
start_neighbour() {
	"$sample" --tokens 100000 >neighbour.txt 2>&1 &
	neighbour=$!
	tries=0
	until shows_process; do
		tries=$((tries + 1))
		[ $tries -le 20 ] && kill -0 "$neighbour" 2>/dev/null || return 1
		sleep 0.5
	done
}

finds_other() {
	XTRACE_SIMGPU_NVML=other_pid:4321 "$xtrace" bench $simulate -n 1 --warmup 0 -o other \
		-- "$sample" --tokens 20
}

# The first run shows whether PyTorch can use the GPU. Importing it just for that takes seconds.
if [ -z "$simulate" ] &&
	python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))' 2>/dev/null; then
	program="python3 $samples/pytorch_train.py --steps 120"
	slower="$program --layers 5"
else
	program="$sample --tokens 200 --layers 4"
	slower="$sample --tokens 200 --layers 5"
fi

say "program: $program, $runs runs of a side"
# shellcheck disable=SC2086
check "the same in turns: nothing changed, nothing is said" same.txt has_status 0 \
	"$xtrace" bench $simulate -n "$runs" -o same --vs "$program" -- $program
show same.txt '^(base|new) .*(median|spread)|^(PASS|REGRESSION|COULD)|^  (pass|fail|unknown) '
check "NVML says what it should, of one side" nvml.txt check_states same/base
check "NVML says what it should, of the other" nvml-new.txt check_states same/new
show nvml-new.txt .
check "a baseline is written" saved.txt "$xtrace" baseline save baseline.json same/base --label first
check "it can be shown" baseline.txt "$xtrace" baseline show baseline.json
show baseline.txt 'first$|KB$'
check "the gate passes against it" unchanged.txt gated unchanged 0 "$program"
check "its report says so" grep.txt grep 'no regression' unchanged/report.md
check "a layer more is found" slower.txt gated slower 1 "$slower"
check "its report names it" grep.txt grep 'regression' slower/report.md
check "JUnit has it as a failure" grep.txt grep '<failure' slower/junit.xml
show slower/report.md '^#|^[|].*(gpu-time|forward)'
if [ -n "$simulate" ] || start_neighbour; then
	check "a bench while something else uses the GPU is made" other.txt finds_other
	check "and says so" grep.txt grep 'another process used the GPU' other.txt
else
	say "skip  a bench while something else uses the GPU: the driver shows no processes here"
fi

say "$failures failures"
[ "$failures" = 0 ]
