# SPDX-License-Identifier: Apache-2.0
# CUDA graphs with conditional nodes that were recorded as a whole.
make_log script whole.xtr <<-END
	stack make main build cudaGraphAddNode
	stack body main build body cudaGraphAddNode
	stack step main step cudaGraphLaunch
	stack last main last cudaGraphLaunch
	node 0x100000000 0 make 1 1
	node_name 0x100000000 2 first
	node 0x100000001 0 make 4 1 13      # conditional
	node 0x200000000 0 body 5 1         # in its body
	node_name 0x200000000 6 in_body
	node 0x200000001 0 body 6 1         # without a name
	node 0x300000000 0x100000000 - 7 1  # the executable graph
	node 0x400000000 0x200000000 - 8 1
	node 0x400000001 0x200000001 - 9 1
	node 0x300000001 0x100000001 - 10 1 13
	node 0x100000000 0 last 400 1       # the id is used again
	node_name 0x100000000 401 other
	node 0x500000000 0x100000000 - 410 1
	call 1 1 cuGraphLaunch step 20 5 0 1 3
	whole 1 1 3 30 100
	whole 2 1 3 150 200                 # before its call
	call 2 1 cuGraphLaunch step 140 5 0 1 3
	call 3 1 cuGraphLaunch last 420 5 0 1 3
	whole 3 1 3 430 50
	call 4 1 cuGraphLaunch last 500 5 0 1 5
	kernel 4 1 other 510 10 0x500000000
	whole 9 1 3 600 1                   # without a call
END
for options in "" "--weight untimed-launches" "--weight untimed-launches --filter last" \
	"--weight untimed-launches --graph-stacks replay" "--weight untimed-launches --by thread"; do
	echo "$options:"
	merge -q whole.xtr --folded - $options
done
merge -q whole.xtr --text - --all --top 3 | grep -v "^  tracer"
merge -q whole.xtr --weight untimed-launches --text - --all --top 3 | grep -A 4 "^Launches of kernels"
merge -q whole.xtr --summary whole.json
python3 -c '
import json
summary = json.load(open("whole.json"))
print(summary["totals"]["whole_graph_count"], summary["totals"]["whole_graph_time_ns"],
      summary["weights"]["untimed-launches"]["total"], summary["trust"]["doubts"])'
merge -q whole.xtr --csv tables
cut -d, -f2,3,14- tables/paths.csv
# Launches of graphs that were made before recording. Without a pause, the log began in time.
for pause in "" "meta process.attached 5" "switch 10 off asked
switch 20 on asked"; do
	rm -f early.xtr
	make_log script early.xtr <<-END
		stack make main make cudaGraphInstantiate
		stack step main step cudaGraphLaunch
		$pause
		node 0x100000000 0 make 1 1
		node 0x300000000 0x100000000 - 7 1
		call 1 1 cuGraphLaunch step 30 5 0 1 3
		kernel 1 1 known 40 10 0x300000000
		call 2 1 cuGraphLaunch step 60 5 0 1 4
		kernel 2 1 unknown 70 10 0x400000000
		call 3 1 cuGraphLaunch step 90 5 0 1 0
		kernel 3 1 unknown 100 10 0x500000000
	END
	merge -q early.xtr --text - --all | grep -E -A 1 "^(note|Trust)" | grep -v "^  calls"
done
