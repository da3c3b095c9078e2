# SPDX-License-Identifier: Apache-2.0
# Jobs of four ranks on real GPUs. Waits beside the backward pass slow its kernels down, so the cost
# is far above the waits.
for job in h200-ddp h200-ddp-loader; do
	merge -q --no-recover "$tests/../../../samples/traces/$job" --text - --all |
		sed -n '/^Collectives/,/^$/p' >"$job"
	cat "$job"
done
# The late rank is the first cost. Collectives that wait for it are none.
merge -q --no-recover "$tests/../../../samples/traces/h200-ddp-loader" --text - --all |
	sed -n '/^costs most/,/^$/p; /^Findings/,/late-rank/p'
# Findings of different times get shares of one: the largest comes first.
for traces in "$tests/../../../samples/traces/sim-ranks" "$tests/../../../samples/traces"; do
	merge -q --no-recover "$traces" --text - --all | sed -n '/^costs most/,/^GPU time\|^$/p'
done
# The verdict states its limits: missing logs, several jobs, a part of the run.
traces=$tests/../../../samples/traces
notes() {
	merge -q --no-recover "$@" --text - --all | sed -n '/^Collectives/,/^$/p' | grep -e "No log" -e "not compared" -e "jobs"
}
notes "$traces"/h200-ddp-loader/rank-[012].xtr
notes "$traces"/h200-ddp-loader/rank-0.xtr
notes "$traces"/h200-ddp-loader --from 8s
notes "$traces"/h200-ddp "$traces"/h200-ddp-loader
merge -q --no-recover "$traces"/h200-ddp-loader/rank-[012].xtr --brief - | sed -n '/^## Ranks/,/^| process/p'
