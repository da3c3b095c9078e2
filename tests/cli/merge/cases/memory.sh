# SPDX-License-Identifier: Apache-2.0
# Memory by device and call path; unmatched frees, overlapping allocations, lost calls.
make_log script one.xtr <<-END
	stack weights main load cudaMalloc
	stack scratch main step cudaMalloc
	stack pinned main load cudaMallocHost
	call 1 1 cuMemAlloc_v2 weights 0 5
	alloc 1 0x1000 1000000 2 0 3
	alloc 2 0x5000 64 11 1 3
	flush MEMORY
	call 2 1 cuMemAlloc_v2 weights 10 5 # after its record
	call 3 1 cuMemAlloc_v2 scratch 20 5
	alloc 3 0x2000 500 22 0 3
	free 4 0x2000 30 0 3
	free 5 0x2000 31 0 3                  # a second time
	call 6 1 cuMemAlloc_v2 scratch 40 5
	alloc 6 0x1000 700 42 0 3             # over the first
	alloc 7 0x8000 9 50 0 3               # the call is lost
	call 8 1 cuMemHostAlloc pinned 60 5
	alloc 8 0x9000 4096 62 0 2
	free 9 0x9000 70 0 2
	call 10 1 cuMemAlloc_v2 scratch 80 5 2 # failed
END
merge one.xtr --all
for weight in alloc-bytes peak-bytes leaked-bytes; do
	merge -q one.xtr --folded - --weight $weight --by device
done
merge -q one.xtr --chrome one.json
check_chrome one.json
grep '"ph":"C"' one.json

# An allocation in one pool ends the one at its address in another: both counters show it.
make_log script two.xtr <<-END
	stack load main load cudaMalloc
	call 1 1 cuMemAlloc_v2 load 0 5
	alloc 1 0x1000 600 2 0 3
	call 2 1 cuMemAlloc_v2 load 10 5
	alloc 2 0x1000 50 12 1 3
	call 3 1 cuMemAllocManaged load 20 5
	alloc 3 0x2000 7 22 1 5
	call 4 1 cuMemHostAlloc load 30 5
	alloc 4 0x2000 9 32 0 2
	free 5 0x2000 40 1 3 # leaves its pool, whatever the free says
END
merge -q two.xtr --chrome two.json
grep '"ph":"C"' two.json
merge -q two.xtr --folded - --weight leaked-bytes --by device
merge -q two.xtr --folded - --weight peak-bytes --by device

# Addresses that are reused, by others and in other memory. A free that precedes its allocation in
# the log. Peaks of device and host at different times.
make_log script three.xtr <<-END
	stack a main a cudaMallocAsync
	stack b main b cudaMallocAsync
	call 1 1 cuMemAllocAsync a 0 5
	alloc 1 0x1000 100 2 0 3
	free 2 0x1000 9 0 3
	call 3 1 cuMemHostAlloc a 10 2
	alloc 3 0x9000 70 11 0 2
	free 4 0x9000 15 0 2
	call 5 1 cuMemAllocFromPoolAsync b 20 5
	alloc 5 0x1000 300 22 0 3             # the address of the first
	call 6 1 cuMemAllocManaged a 30 5
	alloc 6 0x2000 50 32 0 5
	free 8 0x3000 50 0 3 # of the allocation that follows
	flush MEMORY
	call 7 1 cuMemAllocAsync b 40 5
	alloc 7 0x3000 1000 42 0 3            # the peak: 300 + 50 + 1000
	call 9 1 cuMemHostAlloc b 44 2
	alloc 9 0x9000 40 45 0 2
	call 10 1 cuMemAllocAsync a 60 5
	alloc 10 0x3000 200 62 0 3
	free 11 0x9000 70 0 2
	call 12 1 cuMemAlloc_v2 a 80 5
	alloc 12 0x9000 800 82 0 3            # an address of the host, now of the device: 1350 again
END
for weight in alloc-bytes peak-bytes leaked-bytes; do
	merge three.xtr --folded - --weight $weight --by device
done
