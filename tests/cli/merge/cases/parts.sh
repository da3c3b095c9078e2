# SPDX-License-Identifier: Apache-2.0
# The headline of a log that has only a part of the run: what was recorded, and shares that add up.
headline() {
	merge -q "$1" --text headline.txt --summary headline.json >/dev/null
	sed -n '/^recorded/,/^longest/{/^longest/!p;}' headline.txt
	python3 -c 'import json
head = json.load(open("headline.json"))["headline"]
print(head.get("recorded"), head["gpu_busy_ns"], head["gpu_idle_ns"], head["span_ns"])'
}
rows() {
	echo "stack s main step cudaLaunchKernel"
	for row in "$@"; do
		set -- $row
		echo "call $1 1 cuLaunchKernel s $2 10"
		echo "kernel $1 1 k $3 $4"
	done
}
echo "-- work that was launched before a stop runs after it"
{
	rows "1 100 200 100" "2 110 400 1600"
	echo "switch 500 off asked"
} | make_log script stopped.xtr
merge -q stopped.xtr --text - --all | grep '^GPU [bi]'
echo "-- whether the GPU was busy right after a pause is not known"
{
	rows "1 100 200 100" "2 110 400 600" "3 1300 1400 200"
	echo "switch 500 off asked"
	echo "switch 1200 on asked"
} | make_log script paused.xtr
merge -q paused.xtr --text - --all | grep '^GPU [bi]'
echo "-- the log was full"
{
	rows "1 100 200 100" "2 110 400 600"
	echo "switch 500 off size"
} | make_log script full.xtr
headline full.xtr
echo "-- the beginning was dropped, but not work before the first call; no clock at the end"
{
	rows "2 5100 5200 400" "3 5300 6000 3000"
	echo "kernel 1 1 k 4000 500"
	echo "meta log.from 5000005000"
	echo "meta log.flight_recorder 1"
} | make_log script newest.xtr
headline newest.xtr
