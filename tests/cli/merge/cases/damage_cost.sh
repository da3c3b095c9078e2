# SPDX-License-Identifier: Apache-2.0
# The losses show what damage has cost, by kind: the rows written by the account, minus those left.
make_log script whole.xtr <<-END
	stack step main step cudaLaunchKernel
	call 1 1 cuLaunchKernel step 0 5
	call 2 1 cuMemcpyHtoDAsync_v2 step 10 5
	call 3 1 cuMemsetD8Async step 20 5
	call 4 1 cuMemAlloc_v2 step 30 5
	kernel 1 1 matmul 10 90
	copy 2 1 1:2:3:1 110 10 64
	set 3 1 3 130 10 64
	set 3 1 3 150 10 64
	alloc 4 0x1000 64 32 0 3
	push 1 1 step one
	push 1 2 step two
	pop 1 3
	node 5 0 step 35 1
	account calls.written 4
	account kernels.written 1
	account copies.written 1
	account sets.written 2
	account memory.written 1
	account ranges.seen 5
	account ranges.lost 2
	account nodes.seen 1
	account recovered.areas_damaged 1
END
losses() {
	merge "$@" --text losses.txt --all
	sed -n '/^Losses/,/^$/p' losses.txt
}
losses whole.xtr
for kind in 8 10 13 15 17 18 19 20 21; do
	echo "--- without kind $kind"
	cp whole.xtr hurt.xtr
	make_log damage hurt.xtr $kind
	losses --quiet hurt.xtr
done
# Without its account, the number of lost rows is unknown.
for kind in 2 10; do
	make_log damage whole.xtr $kind
done
losses whole.xtr
# Truncated in the middle.
make_log damage hurt.xtr 13
truncate -s $(($(wc -c <hurt.xtr) - 50)) hurt.xtr
losses hurt.xtr
