# SPDX-License-Identifier: Apache-2.0
# Parts of a run by time window, NVTX range or call path, and the messages if nothing matches.
make_log script part.xtr <<'END'
thread 1 4242 main
stack step main step cudaLaunchKernel
stack load main load cudaMemcpyAsync
stack wait main step cudaStreamSynchronize
push 1 1 - epoch one
push 1 2 - forward loader
call 1 1 cuLaunchKernel step 5 2
kernel 1 1 matmul 10 90
pop 1 50 loader
call 2 1 cuMemcpyHtoDAsync_v2 load 60 2
copy 2 1 1:2:3:1 100 30 64
pop 1 65 one
call 3 1 cuLaunchKernel step 70 2
kernel 3 1 matmul 150 10
call 4 1 cuStreamSynchronize wait 80 85
alloc 5 0x1000 600 90 0 3
free 6 0x1000 160 0 3
kernel 99 1 softmax 170 10
END
echo "-- what begins in the window, in text, and calls in the timeline"
merge part.xtr --from 60ns --to 0.00000015s --text - --all --chrome part.json --folded part.folded
cat part.folded
grep -c '"cat":"api"' part.json
echo "-- a range, also by its domain, and what is within it"
for range in epoch '^loader:forward$' 'forward'; do
	merge part.xtr --range "$range" --folded -
done
echo "-- memory by device is of all calls"
merge part.xtr --quiet --filter step --text part.txt --all
sed -n '/^Memory$/,/^$/p' part.txt
echo "-- paths"
merge part.xtr --filter softmax --folded -
merge part.xtr --filter step --weight cpu-wait --folded -
merge part.xtr --focus load --hide cudaMem --folded -
merge part.xtr --hide . --folded -
echo "-- the whole is the sum of its parts"
for weight in gpu-time count gpu-exclusive gpu-idle cpu-wait alloc-bytes; do
	for part in "--to 1s" "--to 70ns" "--from 70ns --to 150ns" "--from 150ns"; do
		"$merge_program" -q part.xtr --folded - --weight $weight $part 2>/dev/null |
			awk '{ sum += $NF } END { printf "%d ", sum }'
	done
	echo "$weight"
done
echo "-- gaps of a database are those before the selected work"
for part in "" "--filter step" "--filter load" "--filter softmax" "--hide ." "--from 70ns"; do
	merge part.xtr -q $part --sqlite gaps.db
	python3 -c 'import sqlite3
ask = sqlite3.connect("gaps.db").execute
print(ask("SELECT sum(duration_ns) FROM gaps").fetchall(),
      ask("SELECT sum(gpu_idle_ns), sum(gpu_time_ns) FROM path").fetchall(),
      ask("SELECT text FROM path WHERE count > 0").fetchall())'
done
rm gaps.db
echo "-- a part is never more idle than it is long, and the database agrees"
for part in '--from 5.3s --to 5.34s' '--from 500ms --to 4.83s' '--focus Training.step' '--focus __init__'; do
	merge "$tests/../../../samples/traces/h200-pytorch.xtr" -q $part --summary idle.json --sqlite idle.db
	python3 -c 'import json, sqlite3
head = json.load(open("idle.json"))["headline"]
ask = lambda query: sqlite3.connect("idle.db").execute(query).fetchall()
assert head["gpu_busy_ns"] + head["gpu_idle_ns"] <= head["span_ns"]
assert ask("SELECT span_ns, gpu_busy_ns FROM device_busy") == [(head["span_ns"], head["gpu_busy_ns"])]
assert ask("SELECT sum(duration_ns) FROM gaps") == [(head["gpu_idle_ns"],)]
print(head["gpu_busy_ns"], head["gpu_idle_ns"], head["span_ns"])'
done
rm idle.json idle.db
echo "-- each output says that it is of a part"
merge part.xtr --filter step --chrome a.chrome --perfetto a.perfetto --pprof a.pprof \
	--sqlite a.sqlite --profile a.profile --summary a.summary
gzip -dc <a.pprof >a.pprof.plain
for file in a.chrome a.perfetto a.pprof.plain a.sqlite a.profile a.summary; do
	grep -qa -e '--filter .*step' $file || echo "$file does not"
done
rm a.*
echo "-- nothing there"
merge part.xtr --filter Matmul --folded nothing.folded
merge part.xtr --focus matmull
merge part.xtr --focus cudaLuanch
merge part.xtr --hide nobody --folded /dev/null
merge part.xtr --range Epoch
merge part.xtr --from 2s
merge part.xtr --from 2s --to 1s
merge part.xtr --from later
merge part.xtr --filter matmul --from 100s
merge part.xtr --range . --from 100s
echo "-- each matches something, but not together"
merge part.xtr --filter softmax --focus load --folded nothing.folded
merge part.xtr --range epoch --filter softmax --folded nothing.folded
merge part.xtr --filter softmax --to 100ns
merge part.xtr --filter step --to 100ns --folded -
echo "-- what is no pattern, or not what is meant"
merge part.xtr --filter '*matmul'
merge part.xtr --filter ''
merge part.xtr --filter 'a\|b'
merge part.xtr --filter softmax --filter matmul
merge part.xtr --folded - --top 1 --top 2
merge part.xtr --filter '['
ls
