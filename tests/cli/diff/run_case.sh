#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs "run_case.sh CASE.sh XTRACE MAKE_LOG" in an empty directory, shown as WORK, and compares the
# output with CASE.stdout and CASE.stderr. UPDATE_EXPECTED=1 writes these files instead.
set -eu
case_file=$1
xtrace_program=$2
make_log_program=$3
tests=$(cd "$(dirname "$0")" && pwd)
expected=${case_file%.sh}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/run"
cd "$work/run"

# Functions for the cases. Unless a case sets basis, it compares iterations.
basis="--iteration detected"
diff_runs() {
	status=0
	"$xtrace_program" diff $basis "$@" || status=$?
	echo "exit status $status"
}
make_run() {
	name=$1
	shift
	rm -f "$name.xtr"
	awk -f "$tests/run.awk" "$@" | "$make_log_program" script "$name.xtr"
}
make_runs() {
	side=$1
	shift
	for seed in ${seeds:-1 2 3}; do
		make_run "$side$seed" -v seed="$side$seed" "$@"
	done
}
profile() {
	"$(dirname "$xtrace_program")/xtrace-merge" -q "$1.xtr" --profile -
}
# Keeps the verdict, without the tables.
verdict_only() {
	sed '/^Whole run\|^One iteration/,/^Note\|^exit status/{/^Note\|^exit status/!d;}'
}
unset COLUMNS
LC_ALL=C
TZ=UTC
export LC_ALL TZ

set +e
(set -e; . "$case_file") >"$work/stdout" 2>"$work/stderr"
status=$?
set -e
for stream in stdout stderr; do
	sed "s|$work/run|WORK|g" "$work/$stream" >"$work/$stream.plain"
done
if [ $status -ne 0 ]; then
	cat "$work/stdout" "$work/stderr"
	echo "the case itself failed with status $status"
	exit 1
fi
if [ "${UPDATE_EXPECTED:-}" = 1 ]; then
	cp "$work/stdout.plain" "$expected.stdout"
	cp "$work/stderr.plain" "$expected.stderr"
	exit 0
fi
result=0
diff -u "$expected.stdout" "$work/stdout.plain" || result=1
diff -u "$expected.stderr" "$work/stderr.plain" || result=1
exit $result
