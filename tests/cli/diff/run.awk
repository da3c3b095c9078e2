# SPDX-License-Identifier: Apache-2.0
# Input of make_log for a synthetic run: each iteration launches the same kernels from several places.
# Variables (-v), with defaults:
#   seed      seed of the durations, any text
#   all       factor for the durations of all kernels (1)
#   slow      factor for the duration of kernel 3 (1)
#   launches  launches of kernel 5 per iteration (1)
#   sync      wait for the GPU at the end of each iteration (0)
#   early     wait at the end of this iteration (none)
#   first     additional waits in the first iteration (0)
#   rare      wait in each iteration divisible by this number (none)
#   copy      add a copy of this many times 300 ns to each iteration (0)
#   lambda    number of the lambda that launches kernel 2 (none)
#   wrapper   add a function between step and layer_4 (0)
#   nvtx      name of an NVTX range around each iteration, followed by its number (none)
#   count     number of iterations (60)
#   still     no noise: all runs are equal (0)

function noise(    i, sum) {
	if (still)
		return 0
	for (i = 0; i < 12; i++) {
		state = state * 16807 % 2147483647
		sum += state / 2147483647
	}
	return sum - 6
}

function launch(k, wanted, i) {
	id++
	printf "call %d 1 cuLaunchKernel s%d %d 900\n", id, k, now
	from = busy > now + 2000 ? busy : now + 2000
	lasts = int(wanted * (1 + 0.02 * noise()))
	printf "kernel %d 1 kernel_%d %d %d\n", id, k, from, lasts
	busy = from + lasts
	now += 1500
}

BEGIN {
	slow = slow == "" ? 1 : slow
	launches = launches == "" ? 1 : launches
	count = count == "" ? 60 : count
	state = 1
	for (i = 1; i <= length(seed); i++)
		state = (state * 31 + index("abcdefghijklmnopqrstuvwxyz0123456789", substr(seed, i, 1))) % 2147483647
	for (i = 0; i < 20; i++)
		noise()
	clock = (all == "" ? 1 : all) * (1 + 0.003 * noise())
	for (k = 0; k < 12; k++) {
		inner = "layer_" k
		if (k == 2 && lambda != "")
			inner = "_ZZ3runvENKUlvE" (lambda == 1 ? "" : lambda - 2) "_clEv"
		if (k == 4 && wrapper)
			inner = "checked layer_4"
		printf "stack s%d main train step %s cudaLaunchKernel\n", k, inner
	}
	print "stack load main train load cudaMemcpyAsync"
	print "stack more main train step log_loss cudaMemcpyAsync"
	print "stack wait main train step wait cudaStreamSynchronize"
	print "stack loop main train"
	now = 1000
	for (i = 0; i < count; i++) {
		if (nvtx != "")
			printf "push 1 %d loop %s_%d\n", now, nvtx, i
		id++
		printf "call %d 1 cuMemcpyHtoDAsync_v2 load %d 700\n", id, now
		from = busy > now + 900 ? busy : now + 900
		printf "copy %d 1 1:2:3:1 %d 800 65536\n", id, from
		busy = from + 800
		now += 1000
		for (k = 0; k < 12; k++)
			for (n = 0; n < (k == 5 ? launches : 1); n++)
				launch(k, clock * (1000 + 700 * k) * (k == 3 ? slow : 1) * (i ? 1 : 3))
		if (copy) {
			id++
			printf "call %d 1 cuMemcpyHtoDAsync_v2 more %d 700\n", id, now
			printf "copy %d 1 1:2:3:1 %d %d 64\n", id, busy, 300 * copy
			busy += int(300 * copy)
			now += 1000
		}
		waits = sync || (early && i == early) || (rare && i % rare == 0)
		for (n = waits + (i ? 0 : first); n > 0; n--) {
			id++
			printf "call %d 1 cuStreamSynchronize wait %d %d\n", id, now, busy - now
			now = busy
		}
		now = busy > now + 20000 ? busy - 20000 : now + 1000
		if (nvtx != "")
			printf "pop 1 %d\n", now - 10
	}
}
