# SPDX-License-Identifier: Apache-2.0
# Kernels, copies and memsets appear below their calls and in the total, in any order of the file.
make_log script one.xtr <<-END
	stream 2 1 1 9
	stack load main load cudaMemcpyAsync
	stack save main save
	stack clear main load cudaMemsetAsync
	stack step main step cudaLaunchKernel
	copy 1 1 1:1:3:0 150 50 4096
	flush COPY
	call 1 1 cuMemcpyHtoDAsync_v2 load 100 10
	call 2 1 cuMemcpyHtoDAsync_v2 load 120 10
	copy 2 1 1:2:3:1 200 100 1000000
	call 3 1 cuMemsetD8Async clear 130 5
	set 3 1 3 300 7 512
	call 4 1 cuLaunchKernel step 140 10
	kernel 4 1 matmul 310 1000
	call 5 1 cuMemcpyDtoH_v2 save 160 2000
	copy 5 1 2:3:1:0 1310 333 777
	call 6 1 cuMemcpyPeerAsync load 2170 10
	copy 6 2 10:3:3:1:1:2 2200 64 64
	call 7 1 cuMemcpyHtoDAsync_v2 load 2300 10   # captured
	call 8 1 cuMemcpyHtoDAsync_v2 load 2400 10 1 # failed
	copy 99 1 77:9:9:0 5000 1 1                  # no call, of no known kind
	set 98 1 1234 6000 2 1
END
merge one.xtr --all
merge one.xtr --folded one.folded --chrome one.json
cat one.folded
check_chrome one.json one.folded
grep -E 'memcpy|memset' one.json
merge -q one.xtr --folded - --weight count

# Kernels and copies of one stream are in different chunks, but on one track.
for i in $(seq 1 20); do
	echo "call $i 1 cuLaunchKernel 1 $((i * 100)) 5"
	echo "call 10$i 1 cuMemcpyAsync 1 $((i * 100 + 10)) 5"
	echo "kernel $i 1 matmul $((i * 100 + 20)) 30"
	echo "copy 10$i 1 1:2:3:1 $((i * 100 + 50)) 40 64"
done | make_log script two.xtr
merge -q two.xtr --chrome two.json --folded two.folded
check_chrome two.json two.folded
grep -c '"thread_name".*stream' two.json
