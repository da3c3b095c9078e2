# SPDX-License-Identifier: Apache-2.0
# Logs of earlier versions, whose option --max-overhead sampled stacks.
# The time of calls without a stack is distributed to the sampled calls of the same rate, in
# proportion to their number and time. A sampled call whose stack was lost counts like any other.
calls() { # RATE COUNT STACK DURATION
	for _ in $(seq $2); do
		id=$((id + 1))
		echo "call $id 1 cuLaunchKernel $3 $((id * 1000)) 10 0 $1"
		echo "kernel $id 1 work $((id * 1000 + 100)) $4"
	done
}
id=0
{
	echo "thread 1 41 main"
	for place in often seldom later; do
		echo "stack $place main $place"
	done
	echo "rate 0 4"
	calls 4 7 often 10
	calls 4 2 seldom 100
	calls 4 1 lost 500
	calls 4 21 - 10
	calls 4 6 - 100
	calls 4 3 - 500
	echo "rate 41000 8"
	calls 8 1 often 10
	calls 8 4 later 200
	calls 8 7 - 10
	calls 8 28 - 200
	echo "rate 100000 1"
} >script
make_log script sampled.xtr <script
for weight in count gpu-time; do
	echo "$weight:"
	merge sampled.xtr --weight $weight --folded -
done
