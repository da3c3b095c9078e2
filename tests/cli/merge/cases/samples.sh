# SPDX-License-Identifier: Apache-2.0
# CPU logs: idle time of the GPU and time of threads by what the CPU did. Each case is a traced log
# with a CPU log of 100 samples per second.
weigh() {
	echo "$*:"
	merge -q --folded - --weight "$@"
}
start() {
	echo
	echo "$1"
	rm -f ./*.xtr
}
# The GPU is idle from 10 to 110 ms and in four short gaps.
traced() {
	make_log script one.4321.xtr <<-END
		stack step main step cudaLaunchKernel
		call 1 1 cuLaunchKernel step 0 10000
		kernel 1 1 matmul 10000 9990000
		call 2 1 cuLaunchKernel step 110000000 10000
		kernel 2 1 matmul 110010000 4990000
		call 3 1 cuLaunchKernel step 119000000 10000
		kernel 3 1 matmul 119010000 4990000
		call 4 1 cuLaunchKernel step 128000000 10000
		kernel 4 1 matmul 128010000 4990000
		call 5 1 cuLaunchKernel step 137000000 10000
		kernel 5 1 matmul 137010000 4990000
	END
}
sampled() {
	make_log script "one.$1.cpu.xtr" "$1"
}

start "A long gap: each sample speaks for the time before it. From 70 ms on there is none."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
stack collate main collate
stack read main collate read
sample 1 5000000 0 1 read 10000000
sample 1 15000000 0 1 collate 10000000
sample 1 25000000 0 2 read 10000000
sample 1 35000000 20000000 3 read 30000000
sample 1 65000000 0 1 - 10000000
END
weigh gpu-idle .
weigh cpu-time .
weigh off-cpu .

start "Samples without a stack: running, a lock, nothing known, the kernel."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
sample 1 20000000 10000000 1 - 20000000
sample 1 40000000 10000000 4 - 20000000
sample 1 60000000 10000000 0 - 20000000
sample 1 80000000 10000000 2 - 20000000
END
weigh gpu-idle . --to 115ms
weigh cpu-time .
weigh off-cpu .
merge -q . --text text.txt --all --chrome trace.json --sqlite run.db --pprof profile.gz
sed -n '/^GPU idle time by what/,/^$/p; /gaps of 20 ms/p' text.txt
python3 - <<'END'
import collections, gzip, json, sqlite3
sums = collections.Counter()
for event in json.load(open("trace.json"))["traceEvents"]:
    if event.get("name", "").startswith("[") and "dur" in event:
        sums[event["name"]] += event["dur"]
print("chrome:", dict(sorted(sums.items())))
text = gzip.open("profile.gz").read()
print("pprof:", b"[running, stack unknown]" in text, b"[lock]" in text)
for row in sqlite3.connect("run.db").execute("select text from path where kind = 'state' order by text"):
    print("sqlite:", *row)
END

start "Short gaps share their time in proportion to the samples that fall into any of them."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
stack collate main collate
stack log main log
sample 1 116000000 0 1 collate 10000000
sample 1 126000000 0 1 log 10000000
sample 1 135000000 0 1 collate 10000000
sample 1 142000000 0 1 log 10000000
END
weigh gpu-idle . --from 115ms

start "If there are fewer samples than the length of the gaps suggests, the rest is not sampled."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 400
stack collate main collate
sample 1 116000000 0 1 collate 2500000
END
weigh gpu-idle . --from 115ms

start "A thread that is blocked through a short gap is at one place all the time."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
stack wait main wait
sample 1 112000000 40000000 4 wait 50000000
END
weigh gpu-idle . --from 115ms

start "A wait is followed by one step, into the log of another process."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
stack next main next
sample 1 15000000 90000000 8 next 100000000 4400 4400
END
sampled 4400 <<END
meta log.kind cpu
meta cpu.hz 100
stack load worker load
sample 1 15000000 0 1 load 10000000
sample 1 25000000 70000000 3 load 80000000 4321 4321
END
weigh gpu-idle . --to 115ms
weigh off-cpu . --by process
weigh cpu-time . --by thread
merge -q . --text - --all --weight off-cpu --top 1 | sed -n '/by frame/,/^$/p'

start "A thread without samples, and a log of another start of the same process id."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
thread 2 4322 other
stack load main load
sample 2 15000000 0 1 load 10000000
END
weigh gpu-idle . --to 115ms
rm one.4321.cpu.xtr
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
meta process.started 1700000000.50
stack load main load
sample 1 15000000 0 1 load 10000000
END
weigh gpu-idle . --to 115ms
weigh cpu-time . --by process

start "A part of the run, by the start of samples."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
stack load main load
stack step main step
sample 1 15000000 0 1 load 10000000
sample 1 25000000 0 1 step 10000000
sample 1 35000000 0 4 step 10000000
END
weigh cpu-time . --to 20ms
weigh cpu-time . --from 20ms
weigh off-cpu . --filter step
weigh cpu-time . --focus load
weigh cpu-time . --range x

start "Without a CPU log there are no such weights."
traced
weigh gpu-idle . --to 115ms
weigh cpu-time .
weigh off-cpu .
merge -q . --summary summary.json --pprof profile.gz
/usr/bin/python3 -c '
import gzip, json
print(*json.load(open("summary.json"))["weights"])
print(b"off-cpu" in gzip.open("profile.gz").read())'

start "A program without CUDA has CPU logs only."
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz 100
stack load main load
sample 1 15000000 0 1 load 10000000
sample 1 25000000 60000000 4 load 70000000
END
sampled 4400 <<END
meta log.kind cpu
meta cpu.hz 100
stack load worker load
sample 1 95000000 0 1 load 10000000
END
merge -q . --text - --all | sed -n '1,/^  kernels/p'
merge -q . --text - --all --to 50ms | sed -n '/^ran/p'
merge -q . --text - --all --weight cpu-time | sed -n '/^CPU time/,/^$/p'
rm one.4321.cpu.xtr
traced
merge -q . --text - --all | sed -n '1,/^  kernels/p'

start "Samples that no sampler writes."
traced
sampled 4321 <<END
meta log.kind cpu
meta cpu.hz nan
stack load main load
sample 1 15000000 0 99 load 10000000
sample 1 12000000 18446744073709551615 1 load 18446744073709551615
sample 9 25000000 0 4 77 10000000 4321 4321
sample 4294967296 25000000 0 4 load 10000000 4321 9
sample 1 20000000 90000000 4 load 10000000 4321 4321
sample 1 30000000 1000000 8 load 10000000 4321 4321
END
weigh gpu-idle . --to 115ms
weigh off-cpu .
merge -q . --chrome trace.json --perfetto trace.pftrace --sqlite run.db --pprof profile.gz --text /dev/null
check_chrome trace.json
