# SPDX-License-Identifier: Apache-2.0
# All that is lost is counted, not calls and kernels alone: what the log's account says, with the
# kernels, copies and sets that have no times, and records that were dropped.
dump=$here/../../../tools/xtrace-dump
for fault in zero_times drop_records; do
	XTRACE_SIMGPU_FAULT=$fault "$xtrace" record --simulate -o $fault \
		"$sample" --layers 1 --dim 64 --tokens 2 >/dev/null
	"$dump" --kind ACCOUNT $fault/*.xtr | sed -nE 's/.*name=([^[:space:]]*)[[:space:]]*value=/\1 /p' |
		grep -E '\.(lost|invalid|dropped)' | sort -u | grep -v ' 0$'
done
