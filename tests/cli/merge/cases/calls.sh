# SPDX-License-Identifier: Apache-2.0
# API calls by function, with the runtime's name if the stack has one; failures by error and stack.
make_log script one.xtr <<-END
	stack step main step cudaLaunchKernel
	stack wait main wait cudaStreamSynchronize
	stack load main load
	call 1 1 cuLaunchKernel step 1000 100
	call 2 1 cuLaunchKernel step 2000 300
	call 3 1 cuLaunchKernel_ptsz step 3000 200 719
	call 4 1 cuStreamSynchronize wait 4000 1000000
	call 5 1 cuMemAlloc_v2 load 2000000 50 2
	call 6 1 cuMemAlloc_v2 load 2100000 60 2
	call 7 1 cuMemAlloc_v2 - 2200000 70 2
	call 8 1 cuMemAlloc_v2 load 2300000 80 12345
	call 9 1 cuModuleLoadData load 2400000 5000
	kernel 1 1 matmul 1200 10
	kernel 2 1 matmul 2200 10
END
merge one.xtr --all
merge one.xtr --text - --all --top 1
merge one.xtr --chrome one.json
check_chrome one.json
grep '"cat":"api"' one.json

# With several processes, failed calls with one path are merged, unless --by process splits them.
failing() {
	make_log script $1.xtr <<-END
		stack load main load cudaMalloc
		call 1 1 cuMemAlloc_v2 load 0 5 2
		call 2 1 cuMemAlloc_v2 - 10 5 2
	END
}
failing five
failing six
failed() {
	merge -q --text failed.txt --all "$@"
	sed -n '/^Failed calls/,/^$/p' failed.txt
}
failed five.xtr
failed five.xtr --by process
failed five.xtr six.xtr
failed five.xtr six.xtr --by process
