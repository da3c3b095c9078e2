# SPDX-License-Identifier: Apache-2.0
# Counts all losses: those in the account of the log, work without times, and dropped records.
dump=$here/../../../tests/tools/xtrace-dump
for fault in zero_times drop_records; do
	XTRACE_SIMGPU_FAULT=$fault "$xtrace" record --simulate -o $fault \
		"$sample" --layers 1 --dim 64 --tokens 2 >/dev/null
	"$dump" --kind ACCOUNT $fault/*.xtr | sed -nE 's/.*name=([^[:space:]]*)[[:space:]]*value=/\1 /p' |
		grep -E '\.(lost|invalid|dropped)' | sort -u | grep -v ' 0$'
done
