# SPDX-License-Identifier: Apache-2.0
# Logs of several programs or jobs, and logs that lack ranks, are named as such. Their times are
# added up, and no process is the slowest. The logs of one recording are one program.
log() { # NAME NUMBER KERNEL-NS META...
	name=$1 number=$2 ns=$3
	shift 3
	{
		printf 'meta %s\n' 'process.exe /w/train.py' \
			"process.identity $(printf %032d "$number")" "$@"
		echo 'stack step main step cudaLaunchKernel'
		echo 'call 1 1 cuLaunchKernel step 1000 10'
		echo "kernel 1 1 matmul 1100 $ns"
		echo 'call 2 1 cuLaunchKernel step 20000 10'
		echo "kernel 2 1 matmul $((20100 + ns)) $ns"
	} | make_log script "$name.xtr"
}
show() {
	echo "-- $1"
	shift
	merge -q --no-recover "$@" --text - --all >out.txt
	sed -n '/^note/,/^GPU busy/p' out.txt
	tr -s '\n ' '  ' <out.txt | tr -s ' ' | grep -o 'slowest: [^)]*)' || :
}
log a0 10 100 'env.RANK 0' 'env.WORLD_SIZE 2' 'env.TORCHELASTIC_RUN_ID a'
log a1 11 200 'env.RANK 1' 'env.WORLD_SIZE 2' 'env.TORCHELASTIC_RUN_ID a'
log b0 12 300 'env.RANK 0' 'env.WORLD_SIZE 2' 'env.TORCHELASTIC_RUN_ID b'
log b1 13 400 'env.RANK 1' 'env.WORLD_SIZE 2' 'env.TORCHELASTIC_RUN_ID b'
log c0 14 500 'env.RANK 0' 'env.WORLD_SIZE 4' 'env.TORCHELASTIC_RUN_ID a'
show "one job" a0.xtr a1.xtr
show "one rank of it" a0.xtr
show "two jobs by their ids" a0.xtr a1.xtr b0.xtr b1.xtr
show "the same id, but not the same size" a0.xtr a1.xtr c0.xtr
traces=$tests/../../../samples/traces
show "two jobs of the same ranks, one after the other" "$traces/h200-ddp" "$traces/h200-ddp-loader"
show "all programs of a folder" "$traces"/*.xtr
mkdir recording
cp "$traces/h200-work.xtr" "$traces/h200-cupy.xtr" recording
show "two programs, one after the other" recording
echo '{}' >recording/info.json
show "two programs of one recording" recording
merge -q --no-recover "$traces"/*.xtr --summary - | sed -n '/"headline"/,/"wall_ns"/p' |
	grep -e note -e program_count -e wall_ns
