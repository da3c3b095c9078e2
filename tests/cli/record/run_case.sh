#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs one case in an empty directory and compares stdout, stderr and exit statuses exactly with the
# expected file. UPDATE_EXPECTED=1 writes that file instead. Read the diff before you commit it.
#
# usage: run_case.sh BIN_DIR CASE
#
# A case is a shell script. It can use $xtrace (the program), $sample (llm_inference) and status,
# which runs a command and prints its exit status. A case that this machine cannot run prints the
# reason on stderr and exits with 77. It is then skipped.
set -eu

bin=$1
case_name=$2
here=$(cd "$(dirname "$0")" && pwd)
expected=$here/expected/$case_name
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/run"

# Replaces text that differs between runs and machines.
normalise() {
	sed -E \
		-e "s|$scratch/run|CWD|g" \
		-e "s|$bin|BIN|g" \
		-e "s|$(dirname "$bin")|PREFIX|g" \
		-e 's/[0-9]+(\.[0-9]+)? (B|KiB|MiB)/SIZE/' \
		-e 's|[0-9.]+ tokens/s:.*|SPEED tokens/s|'
}

status() {
	code=0
	"$@" || code=$?
	echo "status $code"
}

xtrace=$bin/xtrace
sample=$bin/samples/llm_inference
unset XTRACE_DATA CUDA_INJECTION64_PATH XTRACE_CUPTI LD_LIBRARY_PATH
(
	cd "$scratch/run"
	. "$here/cases/$case_name.sh"
) >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || {
	if [ $? -eq 77 ]; then
		cat "$scratch/stderr"
		exit 77
	fi
	cat "$scratch/stdout" "$scratch/stderr"
	echo "the script of case $case_name failed"
	exit 1
}
{
	echo "--- stdout"
	normalise <"$scratch/stdout"
	echo "--- stderr"
	normalise <"$scratch/stderr"
} >"$scratch/got"

if [ -n "${UPDATE_EXPECTED:-}" ]; then
	cp "$scratch/got" "$expected"
	exit 0
fi
diff -u "$expected" "$scratch/got"
