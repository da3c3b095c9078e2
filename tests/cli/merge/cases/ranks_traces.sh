# SPDX-License-Identifier: Apache-2.0
# Jobs of four ranks on real GPUs. Waits beside the backward pass slow its kernels down, so the cost
# is far above the waits.
for job in h200-ddp h200-ddp-loader; do
	merge -q --no-recover "$tests/../../../samples/traces/$job" --text - |
		sed -n '/^Collectives/,/^$/p' >"$job"
	cat "$job"
done
