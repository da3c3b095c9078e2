# SPDX-License-Identifier: Apache-2.0
# --api selects the recorded calls. Without it, the environment variable does.
dump=$here/../../../tests/tools/xtrace-dump
run="$sample --layers 1 --dim 64 --tokens 1"
for level in launch work all; do
	"$xtrace" record --simulate --api $level -o $level $run >/dev/null 2>&1
	echo "$level: $("$dump" --calls-total $level/*.xtr | sed -n '/ 0$/!s/ .*//p' | tr '\n' ' ')"
	echo "$level: $("$dump" --kernels-total $level/*.xtr | cut -d' ' -f1,2)," \
		"$("$dump" --kind COPY $level/*.xtr | grep -c COPY) copies"
done
XTRACE_API=launch "$xtrace" record sh -c 'echo $XTRACE_API'
XTRACE_API=launch "$xtrace" record --api=all sh -c 'echo $XTRACE_API'
"$xtrace" record sh -c 'echo ${XTRACE_API-unset}'
status "$xtrace" record --api everything echo ran
status "$xtrace" record --api
