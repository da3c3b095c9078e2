# SPDX-License-Identifier: Apache-2.0
# Equal runs, as on a simulated GPU: a few detect a large change, and a tiny difference is not a
# change. Programs without iterations: only the variation between runs counts.
seeds="1 2 3"
still_side() {
	side=$1
	shift
	make_runs $side -v still=1 "$@"
	for seed in $seeds; do
		profile $side$seed | sed "s/\"start_realtime_ns\":[0-9]*/\"start_realtime_ns\":$seed$(printf %d "'$side")/" >$side$seed.json
	done
}
still_side a
for change in slow=1 all=1.0001 slow=1.2 all=1.8 launches=2; do
	echo "--- $change"
	still_side b -v $change
	diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json | verdict_only
done
echo "--- no additional launch"
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json --fail-on 'launches > 0' | verdict_only
echo "--- two runs per side"
still_side b -v all=1.8
diff_runs a1.json,a2.json b1.json,b2.json | verdict_only
echo "--- no iterations"
make_runs a -v count=5
for change in slow=1 slow=1.2; do
	make_runs b -v count=5 -v $change
	diff_runs a1.xtr,a2.xtr,a3.xtr b1.xtr,b2.xtr,b3.xtr | verdict_only
done
