# SPDX-License-Identifier: Apache-2.0
# Logs of earlier versions, whose option --max-overhead left out stacks. A stack that was lost is
# something else.
{
	echo "stack often main often"
	for id in $(seq 12); do
		stack=$([ $((id % 4)) = 0 ] && echo often || echo -)
		[ $id = 8 ] && stack=lost
		echo "call $id 1 cuLaunchKernel $stack $((id * 1000)) 10 0 4"
		echo "kernel $id 1 work $((id * 1000 + 100)) 10"
	done
	echo "account stacks.unsampled 9"
} >script
make_log script sampled.xtr <script
merge sampled.xtr --folded -
merge sampled.xtr | grep -A 2 -e "^Trust"
