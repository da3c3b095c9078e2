# SPDX-License-Identifier: Apache-2.0
# Launches whose kernels are missing, and launches that have none.
trust() {
	merge -q "$1" --summary out.json
	python3 -c 'import json
run = json.load(open("out.json"))
print(run["trust"]["word"], run["trust"]["reasons"])
print({name: count for name, count in run["totals"].items() if name in (
    "launch_count", "launch_failed_count", "launch_captured_count", "launch_of_kernelless_graph_count",
    "launch_without_work_count", "kernel_count", "kernel_missing_count") and count})'
}
stacks="stack launch main cudaLaunchKernel
stack replay main cudaGraphLaunch"

echo "-- a kernel that CUPTI never delivered"
{
	echo "$stacks"
	echo "call 1 1 cuLaunchKernel launch 100 10
	call 2 1 cuLaunchKernel launch 200 10
	kernel 1 1 k 150 10"
} | make_log script one.xtr
trust one.xtr
merge one.xtr --folded /dev/null

echo "-- no kernel at all: the cause is named"
{
	echo "$stacks"
	echo "meta cupti.version 17
	meta cupti.path /usr/lib/libcupti.so.11.7
	meta cuda.driver_version 13000
	call 1 1 cuLaunchKernel launch 100 10
	call 2 1 cuLaunchKernel launch 200 10"
} | make_log script none.xtr
trust none.xtr
merge none.xtr --folded /dev/null

echo "-- failed, captured, a graph without work, and one whose launch is captured"
# Graph 1 is captured; executable graph 2 has two of its kernels, 3 an empty node, 4 no node.
nodes="node 4294967296 0 launch 105 1
	node 4294967297 0 launch 115 1
	node 8589934592 4294967296 - 200 1
	node 8589934593 4294967297 - 201 1
	node 12884901888 12884901889 - 202 1 5"
{
	echo "$stacks"
	echo "call 1 1 cuLaunchKernel launch 100 10
	call 2 1 cuLaunchKernel launch 111 10
	$nodes
	call 3 1 cuLaunchKernel launch 300 10 719
	call 4 1 cuGraphLaunch replay 400 10 0 0 3
	call 5 1 cuGraphLaunch replay 420 10 0 0 4
	call 6 1 cuGraphLaunch replay 440 10 0 0 2
	kernel 6 1 k 450 10 8589934592
	kernel 6 1 k 460 10 8589934593
	call 7 1 cuGraphLaunch replay 500 10 0 0 2
	node 17179869184 0 replay 505 1 4"
} | make_log script nature.xtr
trust nature.xtr

echo "-- a replay without any kernel"
{
	echo "$stacks"
	echo "call 1 1 cuLaunchKernel launch 100 10
	call 2 1 cuLaunchKernel launch 111 10
	$nodes
	call 6 1 cuGraphLaunch replay 440 10 0 0 2
	kernel 6 1 k 450 10 8589934592
	kernel 6 1 k 460 10 8589934593
	call 7 1 cuGraphLaunch replay 500 10 0 0 2"
} | make_log script replay.xtr
trust replay.xtr

echo "-- replays that a kill cut short: every kernel counts"
{
	echo "$stacks"
	echo "call 1 1 cuLaunchKernel launch 100 10
	call 2 1 cuLaunchKernel launch 111 10
	$nodes
	account recovered.calls 1
	call 6 1 cuGraphLaunch replay 440 10 0 0 2
	kernel 6 1 k 450 10 8589934592
	call 7 1 cuGraphLaunch replay 500 10 0 0 2"
} | make_log script cut.xtr
trust cut.xtr

echo "-- what a kill left unfinished is not counted twice"
{
	echo "$stacks"
	echo "account recovered.calls 1
	account recovered.unfinished 1
	account recovered.kernels_unfinished 1
	call 1 1 cuLaunchKernel launch 100 10
	call 2 1 cuLaunchKernel launch 200 10
	call 3 1 cuLaunchKernel launch 300 10
	kernel 1 1 k 150 10"
} | make_log script unfinished.xtr
trust unfinished.xtr

echo "-- a log without the nodes of its graphs cannot tell captured launches from lost kernels"
{
	echo "$stacks"
	echo "call 1 1 cuLaunchKernel launch 100 10
	call 2 1 cuGraphLaunch replay 440 10
	kernel 2 1 k 450 10 8589934592"
} | make_log script nodeless.xtr
trust nodeless.xtr

echo "-- a part of a run cannot hide that its kernels are missing"
merge one.xtr --filter main --folded /dev/null
merge -q one.xtr --filter main --text - | grep Trust
