# SPDX-License-Identifier: Apache-2.0
# If the sets of a baseline drift from day to day, a change of that size is neither a regression nor
# a pass. A steady baseline detects it, even if the program changed once.
xtrace_baseline() {
	"$xtrace_program" baseline "$@" 2>/dev/null
}
# make_day DAY FACTOR: three runs with durations scaled by FACTOR.
make_day() {
	make_runs $1 -v all=$2
	for seed in 1 2 3; do
		profile $1$seed | sed "s/\"start_realtime_ns\":[0-9]*/\"start_realtime_ns\":1$(printf %d "'$1")0000000000$seed/" >$1$seed.json
	done
}
make_baseline() {
	rm -f days.baseline
	command=save
	for day in a b c d e; do
		make_day $day $1
		shift
		xtrace_baseline $command days.baseline $day"1.json,"$day"2.json,"$day"3.json"
		command=update
	done
}
compare() {
	make_day n $1
	diff_runs days.baseline n1.json,n2.json,n3.json --fail-on 'gpu-time > 2%' --fail-on 'kernel(kernel_7) > 2%' | verdict_only | sed 1,3d
}
make_baseline 1 1.02 0.985 1.015 0.98
echo "--- within the drift"
compare 1.018
echo "--- default rules and rules about one kernel are inconclusive too"
diff_runs days.baseline n1.json,n2.json,n3.json | verdict_only | sed 1,3d
diff_runs days.baseline n1.json,n2.json,n3.json --fail-on 'kernel(kernel_*) > 2%' | verdict_only | sed 1,3d
echo "--- beyond the drift"
compare 1.8
echo "--- no drift between runs recorded alternately with the newest set"
make_day n 1.04
for seed in 1 2 3; do
	sed -i "s/\"start_realtime_ns\":[0-9]*/\"start_realtime_ns\":1$(printf %d "'e")0000000000$seed/" n$seed.json
done
diff_runs days.baseline n1.json,n2.json,n3.json --fail-on 'gpu-time > 2%' | verdict_only | sed 1,3d
echo "--- a steady baseline in which the program changed once"
make_baseline 1.3 1 1 1 1
compare 1.1
