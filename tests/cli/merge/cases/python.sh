# SPDX-License-Identifier: Apache-2.0
# Python frames of real traces: how tables shorten long paths, and the frames between Python frames.
traces=$tests/../../../samples/traces
tables() {
	merge "$@" --all | sed -n '/^GPU time by call path/,/^$/p'
}
tables "$traces/h200-pytorch-work.xtr" --top 6
tables "$traces/h200-triton.xtr" --top 2
for mode in mixed full only off; do
	echo "$mode:"
	merge "$traces/h200-cupy.xtr" --folded - --python $mode | sed -n '/cupy_copy/p'
done
echo "own code, without and with the files of a package:"
merge "$traces/h200-cupy.xtr" --all | grep "under your own code"
merge "$traces/h200-cupy.xtr" --my-code '^cupy' --all | grep "under your own code"
