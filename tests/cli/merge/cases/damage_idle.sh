# SPDX-License-Identifier: Apache-2.0
# In a damaged log, the time in which lost work should have run is not idle time. In an intact log
# it is.
{
	echo "stack a main cuLaunchKernel"
	echo "thread 2 102 other"
	# The second of several single launches is lost. Then the second of three launches that run
	# ahead of the GPU is lost.
	for call in "1 1000" "2 3000" "3 5000" "4 10000" "5 10100" "6 10200" "8 30000"; do
		echo "call ${call% *} 1 cuLaunchKernel a ${call#* } 50"
	done
	echo "call 7 2 cuLaunchKernel a 20000 50"
	for kernel in "1 1100" "3 5100" "4 10500" "6 12500" "7 20100" "8 30100"; do
		echo "kernel ${kernel% *} 1 k ${kernel#* } 400"
	done
} >rows
make_log script whole.xtr <rows
merge -q whole.xtr --folded - --weight gpu-idle
head -c -8 whole.xtr >cut.xtr
merge cut.xtr --folded - --weight gpu-idle
merge -q cut.xtr --summary out.json
python3 -c 'import json; totals = json.load(open("out.json"))["totals"]; print(totals["gpu_idle_ns"])'
