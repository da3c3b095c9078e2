# SPDX-License-Identifier: Apache-2.0
# More work than the reorder buffer holds, and two kernels after all others.
{
	echo "stack replay main cudaGraphLaunch"
	echo "call 1 1 cuGraphLaunch replay 0 5"
	awk 'BEGIN { for (i = 0; i < 140000; i++) print "kernel 1 1 a", 1000 + i * 10, 6 }'
	echo "kernel 1 1 late 1003 6" # overlaps with the first; 3 ns of it fill a gap
	echo "kernel 1 1 in_time 1399003 6"
} | make_log script one.xtr
for weight in gpu-time count gpu-exclusive gpu-idle; do
	merge one.xtr --folded - --weight $weight
done
