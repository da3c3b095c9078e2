# SPDX-License-Identifier: Apache-2.0
# Warm-up ends at different iterations, so runs count different parts of the same work. Work done
# once and early is neither new nor gone. Additional work is new, if it is rare or in each
# iteration. So is work that moved from the start into each iteration.
base=a1.json,a2.json,a3.json,a4.json,a5.json new=b1.json,b2.json,b3.json,b4.json,b5.json
seeds="1 2 3 4 5"
profiles() {
	side=$1 warmup=$2
	shift 2
	make_runs $side "$@"
	for seed in $seeds; do
		"$(dirname "$xtrace_program")/xtrace-merge" -q --warmup $((warmup + seed)) $side$seed.xtr --profile $side$seed.json
	done
}
compare() {
	echo "--- $*"
	diff_runs $base $new "$@" | verdict_only | sed 1,3d
}
profiles a 9 -v early=8
profiles b 1 -v early=8
compare
compare --fail-on 'call(wait).count > 0' --fail-on 'call(wait) > 5%' --fail-on 'waits > 0' --fail-on 'launches > 0'
compare --fail-on 'call(wait).count < 0.01' --fail-on 'call(wait).count < 0.1'
"$xtrace_program" diff $basis $base $new --json - |
	python3 -c 'import json, sys; print([row["count"]["cut"] for row in json.load(sys.stdin)["rows"] if row["level"] == "call"])'
for change in rare=10 sync=1; do
	profiles b 1 -v early=8 -v $change
	compare
done
# The same total, spread from the first iteration over all: not explained by the end of warm-up.
profiles a 3 -v first=6
profiles b 3 -v rare=10
compare
# The same total, now one in each iteration.
profiles a 9 -v first=60
profiles b 1 -v sync=1
compare
