# SPDX-License-Identifier: Apache-2.0
# Very many NVTX ranges that end in the order in which they began, 240 at a time: memory and time
# stay bounded, and a message says what was left out. The unit test checks the weights.
awk 'BEGIN {
	print "stack run main run"
	for (i = x = 1; i <= 30000; i++) {
		x = x * 16807 % 2147483647
		printf "start 1 %d - %d request_%d\n", 100 * i, i, x % 60
		if (i > 240)
			printf "end 1 %d %d\n", 100 * i + 50, i - 240
	}
	for (i = 10; i <= 30000; i += 9990) {
		printf "call %d 1 cuLaunchKernel run %d 5\n", i, 100 * i + 10
		printf "kernel %d 1 k 9%05d00 7\n", i, i
	}
}' | make_log script crossing.xtr
status=0
timeout 60 python3 -c 'import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print("exit status", status, "within bounds" if peak < 1 << 20 else f"with {peak} KiB")' \
	"$merge_program" -q crossing.xtr --folded folded --summary summary || status=$?
echo "in time: $status"
grep not_nested summary
awk -F ';' '{ print NF, $(NF - 3), $NF }' folded
