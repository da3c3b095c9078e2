# SPDX-License-Identifier: Apache-2.0
# --by: the root of call paths.
rows() {
	cat <<-END
		thread 2 4322 load;er
		stream 2 0 1 9
		stream 3 1 2 7
		stack step main step cudaLaunchKernel
		stack load run load cudaMemcpyAsync
		call 1 1 cuLaunchKernel step 100 10
		kernel 1 1 matmul 200 1
		call 2 2 cuMemcpyAsync load 100 10
		copy 2 2 1:2:3:1 200 2 10
		call 3 77 cuLaunchKernel step 100 10
		kernel 3 3 matmul 200 4
		kernel 4 66 matmul 300 8
	END
}
rows | make_log script one.xtr
for by in device stream thread process none; do
	merge -q one.xtr --folded - --by $by
done
(rows; echo stream 4 0 3 9) | make_log script two.xtr
merge -q one.xtr two.xtr --folded - --by stream
merge -q one.xtr two.xtr --folded - --by process
merge -q one.xtr two.xtr --folded - --by none
merge -q one.xtr --by thread --all
