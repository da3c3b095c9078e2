# SPDX-License-Identifier: Apache-2.0
# Findings that must not appear, and findings that must not hide others.
. "$tests/cases/findings.inc"
evidence() {
	merge "$1" -q --summary out.json
	python3 -c 'import json
for row in json.load(open("out.json"))["findings"]["rows"]:
    print(row["rule"], row["cost_ns"], row["evidence"], [place["cost_ns"] for place in row["places"]])'
}
echo "-- copies that kernels hide cost nothing"
make hidden.xtr 'kernel(t, t + 5000, 99000); copy(t + 4000, t + 20000, 60000, 3000000)'
show hidden.xtr
echo "-- calls that fail now and then keep their other findings"
make both.xtr 'kernel(t, t + 5000, 60000); call("cuStreamSynchronize", "sync", t + 4000, 63000, 700 if i == 50 else 0)'
show both.xtr
echo "-- not ready, and not found in a module, are answers; one failure before them is none"
make answers.xtr 'kernel(t, t + 5000, 99000); call("cuStreamSynchronize", "sync", t + 4000, 100, 600); call("cuModuleLoadLookup", "code", t + 5000, 100, 500)'
show answers.xtr
make failure.xtr 'kernel(t, t + 5000, 99000); call("cuStreamSynchronize", "sync", t + 4000, 100, 600 if i != 10 else 700)'
show failure.xtr
echo "-- idle time around very many different waits is idle time still"
make waits.xtr 'i < 20 and print(f"stack wait{i} main step fetch{i} cudaStreamSynchronize"); kernel(t, t + 5000, 60000); call("cuStreamSynchronize", f"wait{i % 20}", t + 4000, 63000)'
show waits.xtr
echo "-- small copies in rows are found at any --api level"
make events.xtr '[(copy(t + k * 5000, t + k * 5000 + 4000, 1000, 256), call("cuEventRecord", "copy", t + k * 5000 + 3500, 500)) for k in range(10)]; kernel(t + 50000, t + 54000, 49000)'
show events.xtr
echo "-- two threads that allocate at the same time lose that time once; one of two devices, half of it"
make threads.xtr 'i or print("thread 2 102 worker"); [(call("cuMemAlloc_v2", "alloc", t + h, 10000, 0, h), kernel(t + 11000 + h, t + 20000 + h, 79000, 1, "matmul", h), call("cuMemFree_v2", "free", t + 15000 + h, 10000, 0, h)) for h in (1, 2)]'
evidence threads.xtr
make one_of_two.xtr 'i or print("stream 2 1 2 7"); call("cuMemAlloc_v2", "alloc", t, 20000); kernel(t + 21000, t + 25000, 99000); kernel(t + 24000, t + 25000, 99000, 2); call("cuMemFree_v2", "free", t + 30000, 10000)'
evidence one_of_two.xtr
echo "-- fast copies of pinned memory are not slow for some small ones of pageable memory beside them"
make mixed.xtr 'kernel(t, t + 5000, 19000); copy(t + 4000, t + 25000, 74000, 500000, took=1000); i % 10 or copy(t + 6000, t + 99000, 100, 300000, "1:1:3:1", took=1000)'
show mixed.xtr --finding copy-share=off
echo "-- slow ones of pinned memory alone are"
make slow.xtr 'kernel(t, t + 5000, 19000); copy(t + 4000, t + 5000, 94000, 270000, took=1000); i % 10 or copy(t + 6000, t + 99900, 100, 300000, "1:1:3:1", took=1000)'
show slow.xtr --finding copy-share=off
echo "-- pageable memory that a fast host copies at 13.5 GB/s is slow still, at 17.6 it is not"
for bytes in 1000000 1300000; do
	make pageable.xtr "kernel(t, t + 5000, 20000); print('copy', call('cuMemcpyHtoD_v2', 'copy', t + 24000, 75000), 1, '1:1:3:1', t + 25000, 74000, $bytes)"
	evidence pageable.xtr
done
echo "-- small kernels alone on a GPU, and beside others in a second stream"
make small.xtr 'kernel(t, t + 5000, 99000, 1, "tiny@1")'
show small.xtr
make beside.xtr 'i or print("stream 2 0 1 8"); kernel(t, t + 5000, 99000, 1, "tiny@1"); kernel(t + 4000, t + 5000, 99000, 2, "large", stack="sync")'
show beside.xtr
echo "-- streams of two devices: the figures are of the worse one, the cost is of both"
make streams.xtr 'i or [print(f"stream {s} {s // 3} {1 + s // 3} {6 + s}") for s in (1, 2, 3, 4)]; [kernel(t + k, t + 5000, d, s, "small@2") for k, s, d in ((0, 1, 90000), (4000, 2, 20000), (8000, 3, 85000), (12000, 4, 25000))]'
evidence streams.xtr
echo "-- the graph is launched for as long as its kernels take: idle because of its launch, at its launch"
make graph.xtr 'i or print("stack replay main step replay cudaGraphLaunch\nnode 10 0 launch 100 1\nnode 11 0 launch 200 1\nnode 12 0 launch 300 1"); g = call("cuGraphLaunch", "replay", t, 80000); [print("kernel", g, 1, "matmul", t + 10000 + k * 30000, 8000, 10 + k) for k in range(3)]'
show graph.xtr
echo "-- small kernels of two stacks, by device and with frames left out: the path is that of the work"
make by.xtr 'i or print("stack other work shape cudaLaunchKernel"); kernel(t, t + 5000, 45000, 1, "tiny@1", stack=("launch", "other")[i % 2])'
for options in "--by device" "--by stream --focus shape|step" "--hide step|shape"; do
	show by.xtr --finding gpu-idle=off $options
done
echo "-- what nvcc makes of a kernel is not who launches it"
make stub.xtr 'i or print("stack kernel main step _Z4tinyPf _Z23__device_stub__Z4tinyPfPf cudaLaunchKernel\nstack template main step _Z5scaleIfEvPT_S0_ _Z28__wrapper__device_stub_scaleIfEvRPT_RS0_ _ZL32__device_stub__Z5scaleIfEvPT_S0_Pff cudaLaunchKernel"); kernel(t, t + 5000, 45000, 1, "tiny@1", stack=("kernel", "template")[i % 2])'
show stub.xtr --finding gpu-idle=off
echo "-- GPUs of two processes: what they do on one is one; runs that follow each other are not compared"
mkdir two after
make two/0.xtr 'i or print("meta gpu.0.uuid a"); kernel(t, t + 5000, 90000)'
make two/1.xtr 'i or print("meta gpu.0.uuid b\nmeta gpu.1.uuid a\nstream 2 1 2 7"); kernel(t, t + 5000, 20000); kernel(t + 30000, t + 40000, 1000, 2)'
evidence two
make after/0.xtr 'i or print("meta gpu.0.uuid a"); kernel(t, t + 5000, 90000)'
make after/1.xtr 'i or print("meta gpu.0.uuid b"); t += 20000000; kernel(t, t + 5000, 20000)'
show after --finding gpu-idle=off --finding short-kernels=off
mkdir own
make own/0.xtr 'i or print("meta gpu.0.uuid a"); kernel(t, t + 1000, 98900)'
make own/1.xtr 'i or print("meta gpu.0.uuid b\nmeta gpu.1.uuid a\nstream 2 1 2 7"); kernel(t, t + 5000, 35000); kernel(t + 30000, t + 99900, 100, 2)'
evidence own
echo "-- GPUs of which each of two processes has one that does most: not told once more of all four"
mkdir four
for rank in 0 1; do
	make four/$rank.xtr "i or print('meta gpu.0.uuid a$rank\nmeta gpu.1.uuid b$rank\nstream 2 1 2 7'); kernel(t, t + 5000, 90000); kernel(t + 3000, t + 40000, 10000, 2)"
done
show four --finding gpu-idle=off --finding short-kernels=off
echo "-- the idle time around frees is that of the loop that allocates, told once"
make frees.xtr 'call("cuMemAlloc_v2", "alloc", t, 20000); kernel(t + 21000, t + 25000, 5000); call("cuMemFree_v2", "free", t + 30000, 60000)'
evidence frees.xtr
echo "-- where a damaged log lacks the kernels of launches, the GPU may have been busy with these"
make blind.xtr '[kernel(t + k * 24000, t + k * 24000 + 5000, 1000) if i < 50 else call("cuLaunchKernel", "launch", t + k * 24000, 3000) for k in range(4)]'
evidence blind.xtr
head -c -8 blind.xtr >cut.xtr
evidence cut.xtr
make seen.xtr '[kernel(t + k * 24000, t + k * 24000 + 5000, 1000) for k in range(4)]'
head -c -8 seen.xtr >cut.xtr
evidence cut.xtr
echo "-- the range of a place is the one that most of its time is in, not that of the last call"
make range.xtr 'i == 0 and print("push 1 500 0 often"); i == 90 and print(f"pop 1 {t - 600}\npush 1 {t - 500} 0 rarely"); kernel(t, t + 5000, 60000); call("cuStreamSynchronize", "sync", t + 4000, 63000)'
show range.xtr
echo "-- of a damaged log it is said that they are"
head -c -8 range.xtr >cut.xtr
show cut.xtr --finding gpu-idle=off
echo "-- the same in two processes: what is said of one, and the sum of both"
mkdir ranks
make ranks/0.xtr 'i or print("meta gpu.0.uuid a"); kernel(t, t + 5000, 60000); call("cuStreamSynchronize", "sync", t + 4000, 63000)'
make ranks/1.xtr 'i or print("meta gpu.0.uuid b"); kernel(t, t + 5000, 50000); call("cuStreamSynchronize", "sync", t + 4000, 53000)'
show ranks
evidence ranks
