# SPDX-License-Identifier: Apache-2.0
# NVTX ranges: nested, at their place among the frames; domains, starts and ends, unmatched pops.
make_log script one.xtr <<-END
	thread 2 4322 worker
	stack train main train nvtxRangePushA
	stack step main train step
	stack inner main train step inner cudaLaunchKernel
	stack direct main train cudaLaunchKernel
	stack helper main train helper
	stack run run loop
	stack replay main train cudaGraphLaunch
	stack capture main warmup cudaLaunchKernel
	stack warm main warmup
	push 1 5 warm capture_phase
	call 90 1 cuLaunchKernel capture 6 2
	node 10 0 capture 7 1
	node 20 10 - 8 1
	pop 1 9
	push 1 100 train epoch
	call 1 1 cuLaunchKernel inner 110 5
	kernel 1 1 a 200 1
	push 1 120 step step;1
	call 2 1 cuLaunchKernel inner 130 5
	kernel 2 1 a 210 2
	push 1 140 helper h my_lib        # pushed by a helper that has returned
	call 3 1 cuLaunchKernel inner 150 5
	kernel 3 1 a 220 4
	call 4 1 cuLaunchKernel direct 160 5
	kernel 4 1 b 230 8
	pop 1 165 # step: the last range of its domain, although h was pushed later
	call 5 1 cuLaunchKernel inner 170 5
	kernel 5 1 a 240 16
	call 6 2 cuLaunchKernel inner 170 5  # another thread: in no range
	kernel 6 1 a 260 32
	pop 1 180 my_lib
	pop 1 181 my_lib # unmatched
	mark 1 182 step here
	call 7 1 cuGraphLaunch replay 190 5
	kernel 7 1 a 300 64 20
	pop 1 200
	pop 1 201 # unmatched
	start 2 300 run 77 request
	push 2 310 - decode
	call 8 2 cuLaunchKernel run 320 5
	kernel 8 1 c 500 128
	end 1 330 77                      # by another thread
	call 9 2 cuLaunchKernel run 340 5
	kernel 9 1 c 700 256
	end 1 350 78 # unmatched
	call 10 2 cuLaunchKernel - 360 5
	kernel 10 1 c 1000 512
END
merge one.xtr --folded -
merge -q one.xtr --folded - --nvtx roots
merge -q one.xtr --folded - --nvtx off
merge -q one.xtr --folded - --graph-stacks capture | grep warmup
merge one.xtr --all
merge -q one.xtr --chrome one.json --folded one.folded
check_chrome one.json one.folded
grep '"nvtx"' one.json
grep thread_name one.json

# In the log the end precedes the start: it is in another thread.
make_log script two.xtr <<-END
	thread 2 4322 worker
	end 2 50 7
	end 2 60 8
	start 1 10 - 7 request
END
merge -q two.xtr --chrome two.json
check_chrome two.json
grep '"nvtx"' two.json

# Ranges that cross those of another domain have their own track, with the name of the thread.
make_log script three.xtr <<-END
	thread 2 4322 worker
	thread 3 4323 worker
	push 2 10 - outer net
	push 2 20 - inner io
	pop 2 30 net
	pop 2 40 io
	push 3 10 - outer
	push 3 20 - inner io
	pop 3 30
	pop 3 40 io
	push 77 10 - lost net
	push 77 20 - inner io
	pop 77 30 net
END
merge -q three.xtr --chrome three.json
check_chrome three.json
grep thread_name three.json

# Categories by name and number, payloads of all types, names of threads; and the same in another
# log.
rows() {
	cat <<-END
		thread 2 4322 python
		name_category 1 1 3 loading
		name_category 1 2 3 io net
		name_category 1 3 3 I/O net       # the last name counts
		name_thread 2 4 4322 autograd
		push 1 10 - plain
		payload 4 5 0xfffffff9           # an i32: -7
		push 1 20 - step
		pop 1 30
		payload 4 3 0x4004000000000000   # a double: 2.5
		push 1 40 - step
		pop 1 50
		payload 4 3 0x7ff0000000000000   # infinite
		push 1 60 - step
		pop 1 70
		payload 3 2 0xfffffffffffffff6   # an i64: -10
		push 1 80 - read net
		payload 5 6 0x3f000000           # a float: 0.5
		start 2 90 - 7 read net
		end 2 95 7
		payload 0 0 0
		push 1 100 - inner
	END
}
rows | make_log script four.xtr
(rows; printf "%s\n" "payload 9 4 4294967295" "pop 1 110" "pop 1 120 net" "push 1 200 - step") | make_log script five.xtr
merge -q four.xtr five.xtr --chrome four.json --summary summary.json
check_chrome four.json
grep -o '"name":"[a-z:]*","pid":4321,.*"args":{"[cp].*' four.json
grep autograd four.json
sed -n '/"ranges":{/,/^\t\t*]/p' summary.json | grep row -A 99

# Ranges without an end belong to their own process, and are written once.
for pid in 1 2; do
	make_log script "open$pid.xtr" <<-END
		meta process.identity $(printf %032d "$pid")
		push 1 10 - left$pid
	END
done
merge -q open1.xtr open2.xtr --chrome open.json
grep -o '"ph":"B".*"name":"[^"]*"' open.json
