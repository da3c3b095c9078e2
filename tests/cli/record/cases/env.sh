# SPDX-License-Identifier: Apache-2.0
# The variables are those that 'xtrace record' sets, and record without it.
"$xtrace" env
"$xtrace" env --simulate -o 'a trace' --api all --python off --no-modules --no-yield \
	--max-size 2G --capture-range cudaProfilerApi
"$xtrace" env -o a --flight-recorder 30s --snapshot-on 'range:a step>5ms' --snapshot-on hang\>2s,oom \
	--snapshot-interval 10s --snapshot-max 3
"$xtrace" env --format docker -o /data
"$xtrace" env --format json --simulate
variables() {
	sed -n 's/^\(export \)\{0,1\}\([A-Z0-9_]*=\)/\2/p' | grep -v '^PWD=' | sort
}
"$xtrace" env -s -o same --format docker | variables >expected
"$xtrace" record -q -s -o same --no-torch-trace env | grep -E '^(XTRACE|CUDA_INJ|NVTX|LD_LIB)' |
	sort >found
diff expected found && echo "the same"
(
	eval "$("$xtrace" env --simulate -o trace)"
	"$sample" --tokens 1 >/dev/null
)
"$xtrace" merge -q --embed-symbols trace
"$xtrace" merge --all trace | grep '  launches  '
status "$xtrace" env program
status "$xtrace" env --api none
status "$xtrace" env --flight-recorder 30
status "$xtrace" env --flight-recorder 30s --max-size 1G
status "$xtrace" env --snapshot-on hang
status "$xtrace" env --snapshot-interval 5
status "$xtrace" env -o 'two
lines'
status "$xtrace" env --format docker -o 'two
lines'
"$xtrace" env --simulate --armed=graphs | grep XTRACE_START
