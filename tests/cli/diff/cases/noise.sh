# SPDX-License-Identifier: Apache-2.0
# Noise prevents a pass: for rules that allow no change, for budgets, and if most rows of a rule are
# noisy.
number=0
for all in 1 1.6 1 1.6 1 1.6; do
	number=$((number + 1))
	make_run r$number -v seed=r$number -v all=$all -v sync=1
	profile r$number >r$number.json
done
base=r1.json,r2.json,r3.json new=r4.json,r5.json,r6.json
diff_runs $base $new --fail-on 'gpu-time > 0' --fail-on 'launches > 0' --fail-on 'path(step) > 0' | verdict_only
echo "--- common noise also affects budgets"
diff_runs $base $new --fail-on 'path(layer_7) < 8us' --fail-on 'path(layer_7) < 1ms' | verdict_only
echo "--- calls that are short compared with the GPU time; the longer one is inconclusive"
python3 - <<-END
	import json
	for run in range(1, 7):
	    text = json.load(open("r%d.json" % run))
	    (wait,) = [row for row in text["calls"] if row[3] > 0]
	    other = [wait[0] - 1] + wait[1:]
	    wait[3] = wait[1] = 1000 * (1 + 3 * (run % 2))
	    other[3] = other[1] = 200
	    text["calls"] += [other]
	    json.dump(text, open("r%d.json" % run, "w"))
END
diff_runs $base $new --fail-on 'call(*) > 5%' | verdict_only
echo "--- no cost per item without items in BASE"
make_runs a
make_runs b -v copy=1
base=a1.xtr,a2.xtr,a3.xtr new=b1.xtr,b2.xtr,b3.xtr
diff_runs $base $new --fail-on 'path(log_loss).each > 5%' | verdict_only
diff_runs $new $base --fail-on 'path(log_loss).each > 5%' | verdict_only
diff_runs $base $new --fail-on 'each path(load).each > 50%' --fail-on 'each path(cudaMemcpyAsync).each > 50%' | verdict_only
echo "--- older sets of two baselines are separate groups"
make_runs old
make_runs older -v slow=3
for side in a b old older; do
	for seed in 1 2 3; do
		profile $side$seed | sed "s/\"start_realtime_ns\":[0-9]*/\"start_realtime_ns\":$seed$(printf %s $side | cksum | cut -c1-5)/" >$side$seed.json
	done
done
make_runs c -v slow=1.2
for seed in 1 2 3; do profile c$seed | sed "s/\"start_realtime_ns\":[0-9]*/\"start_realtime_ns\":99999999$seed/" >c$seed.json; done
xtrace_baseline() {
	"$xtrace_program" baseline "$@" 2>/dev/null
}
xtrace_baseline save one.baseline old1.json,old2.json,old3.json
xtrace_baseline update one.baseline a1.json,a2.json,a3.json
xtrace_baseline save two.baseline older1.json,older2.json,older3.json
xtrace_baseline update two.baseline c1.json,c2.json,c3.json
diff_runs one.baseline two.baseline --fail-on 'path(layer_3) > 10%' | verdict_only
