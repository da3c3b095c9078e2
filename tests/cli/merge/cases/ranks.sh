# SPDX-License-Identifier: Apache-2.0
# Ranks from the environment label processes, the slowest process is named, and values that are no
# ranks are ignored.
log() { # NAME NUMBER KERNEL-NS META...
	name=$1 number=$2 ns=$3
	shift 3
	{
		printf 'meta %s\n' 'process.exe /w/train.py' \
			"process.identity $(printf %032d "$number")" \
			'gpu.0.name H100' "gpu.0.uuid 000000$number-aaaa" "$@"
		echo 'stack step main step cudaLaunchKernel'
		for i in 1 2; do
			echo "call $i 1 cuLaunchKernel step ${i}000 10"
			echo "kernel $i 1 matmul ${i}100 $ns"
		done
		echo 'call 3 1 cuLaunchKernel step 2500 10'
		echo "kernel 3 1 _Z34ncclDevKernel_AllReduce_Sum_f32_LL4Args@12 $((3000 + ns)) $((11100 - ns))"
	} | make_log script "$name.xtr"
}
labels() {
	"$merge_program" -q --summary - "$@" | /usr/bin/python3 -c '
import json, sys
summary = json.load(sys.stdin)
ranks = [[process.get(key) for key in ("rank", "local_rank", "world_size")]
         for process in summary["processes"]]
for process, numbers in zip(summary["processes"], ranks):
    print("   ", process["label"], numbers)
print("    slowest:", summary.get("by_process", {}).get("slowest"))'
}
log r0 10 100 'env.RANK 0' 'env.LOCAL_RANK 0' 'env.WORLD_SIZE 12'
log r3 13 700 'env.RANK 3' 'env.LOCAL_RANK 3' 'env.WORLD_SIZE 12'
log r11 21 300 'env.RANK 11' 'env.LOCAL_RANK 3' 'env.WORLD_SIZE 12' 'host.name two'
echo "-- ranks, and local ranks that differ"
labels r0.xtr r3.xtr r11.xtr
merge -q r0.xtr r3.xtr r11.xtr --all | sed -n '/^GPU busy/p; /^GPU time by process/,/^$/p'
merge -q r0.xtr r3.xtr r11.xtr --folded -
merge -q r0.xtr r3.xtr r11.xtr --folded - --by process
echo "-- --by rank: logs of one rank share its root, and others keep their label"
log none 22 100
log third 14 100 'env.RANK 3'
log first 34 100 'env.LOCAL_RANK 1'
merge -q r11.xtr r3.xtr third.xtr none.xtr first.xtr --folded - --by rank
merge -q r11.xtr --folded - --by rank
echo "   frames of ranks in a profile: $("$merge_program" -q r11.xtr none.xtr --profile - --by rank | grep -c '"rank 11"')"
echo "-- the innermost launcher counts"
log slurm 30 100 'env.SLURM_PROCID 1'
log mpi 31 100 'env.SLURM_PROCID 0' 'env.PMI_RANK 5' 'env.OMPI_COMM_WORLD_RANK 2'
log torch 32 100 'env.OMPI_COMM_WORLD_RANK 0' 'env.SLURM_PROCID 0' 'env.RANK 7'
log local 33 100 'env.LOCAL_RANK 1'
labels slurm.xtr mpi.xtr torch.xtr local.xtr
echo "-- two processes with one rank"
log again 14 100 'env.RANK 3' 'env.LOCAL_RANK 3'
labels r3.xtr again.xtr
labels r3.xtr again.xtr r11.xtr
echo "-- no ranks"
log word 40 100 'env.RANK abc' 'env.LOCAL_RANK -1'
log long 41 100 'env.RANK 10000000000000000000000' 'env.LOCAL_RANK 1234567890' 'env.WORLD_SIZE 1x'
log most 42 100 'env.RANK 999999999' 'env.LOCAL_RANK 000000001'
labels word.xtr long.xtr most.xtr
labels word.xtr
