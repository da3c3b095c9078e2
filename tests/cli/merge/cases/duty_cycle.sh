# SPDX-License-Identifier: Apache-2.0
# Logs of earlier versions with a duty cycle: the time between two windows is an ordinary pause.
log() {
	make_log script $1.xtr <<-END
		$2
		thread 1 101 main
		stack main main cudaLaunchKernel
		switch 0 off stopped
		switch 1000000000 off $3
		switch 2000000000 on $4
		call 1 1 cudaLaunchKernel main 2000100000 5000
		kernel 1 1 matmul 2000200000 600000000
		switch 3000000000 off $3
		switch 9000000000 on $4
		call 2 1 cudaLaunchKernel main 9000100000 5000
		kernel 2 1 matmul 9000200000 400000000
		switch 10000000000 off $3
	END
	merge $1.xtr --text $1.txt --all --summary $1.json --folded $1.folded --quiet
}
log windows 'meta duty.window_ns 1000000000' duty duty
log pauses 'meta other.key 1' stopped asked
for ending in txt json folded; do
	sed 's/windows\.xtr/pauses.xtr/' windows.$ending | cmp - pauses.$ending
done
cat windows.folded
grep -E 'trust|time  |GPU time \(|paused' windows.txt
