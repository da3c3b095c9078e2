# SPDX-License-Identifier: Apache-2.0
# Impossible events: each kind is counted and named in both summaries, and takes no time from its
# owner.
make_log script one.xtr <<-END
	thread 2 4322 worker
	stack a main a cudaLaunchKernel
	stack b main b cudaLaunchKernel
	stack c main c cudaLaunchKernel
	stack m main m cudaMalloc
	stack g main replay cudaGraphLaunch
	call 1 1 cuLaunchKernel a 10 5
	kernel 1 1 good 20 1
	kernel 1 1 backwards 20 18446744073709551000    # its end is before its start
	copy 1 1 1:2:3:1 20 18446744073709551000 64
	set 1 1 3 20 18446744073709551000 64
	kernel 1 1 timeless -5000000000 5               # the log starts at 5 s: its start is 0
	call 2 1 cuLaunchKernel a 30 18446744073709551000
	kernel 2 1 good 40 2
	call 3 1 cuLaunchKernel b 100 5 # a repeated id: each work has its own call
	kernel 3 1 good 110 4
	call 3 1 cuLaunchKernel c 200 5
	kernel 3 1 good 210 8
	flush CALL
	flush KERNEL
	kernel 3 1 good 150 16 # late; belongs to the first
	call 4 1 cuGraphLaunch g 300 5 # its node was created, destroyed, and created again
	kernel 4 1 good 310 32 70
	node 70 0 b 250 1
	node 70 0 c 305 1                               # while the graph runs
	call 5 1 cuGraphLaunch g 320 5
	kernel 5 1 good 330 64 70
	kernel 5 1 good 340 128 71 # an unknown node
	push 1 1 - p
	pop 1 2
	pop 1 3 # unmatched
	start 1 4 - 9 first
	end 2 5 9
	start 2 6 - 9 second                            # the key of another, in another thread
	call 6 2 cuLaunchKernel a 400 5
	kernel 6 1 good 410 256
	end 1 411 9
	end 1 412 9                                     # twice
	call 7 2 cuLaunchKernel a 420 5
	kernel 7 1 good 430 512
	call 8 1 cuMemAlloc_v2 m 500 5
	alloc 8 0x1000 600 -5000000000 0 3              # no time
	free 8 0x1000 510 0 3
	free 8 0x1000 520 0 3                           # twice
	free 8 0x2000 530 0 3 # unmatched
END
merge one.xtr --folded - --text text --all --summary json
sed -n '/^Warnings/,$p' text
sed -n '/"doubts"/,/}/p' json
grep -A 99 '^API calls' text | sed '/^$/q'
merge -q one.xtr --folded - --weight alloc-bytes
