#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs "run_case.sh CASE.sh XTRACE_MERGE MAKE_LOG" in an empty directory, shown as WORK, and
# compares the output with CASE.stdout and CASE.stderr. UPDATE_EXPECTED=1 writes these files
# instead.
set -eu
case_file=$1
merge_program=$2
make_log_program=$3
tests=$(cd "$(dirname "$0")" && pwd)
expected=${case_file%.sh}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/run"
cd "$work/run"

# Functions for the cases.
merge() {
	status=0
	"$merge_program" "$@" || status=$?
	echo "exit status $status"
}
make_log() {
	"$make_log_program" "$@"
}
check_chrome() {
	python3 "$tests/check_chrome.py" "$@"
}
LC_ALL=C
export LC_ALL

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
