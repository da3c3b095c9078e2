# SPDX-License-Identifier: Apache-2.0
# Findings about what the CPU did while the GPU was idle. The GPU works for 1 ms of each 100 ms. In
# between, the launching thread (4321) has a sample every 10 ms.
make_gpu() {
	rm -f run/host.4711.xtr
	python3 - <<-'END' | make_log script run/host.4711.xtr
	print("stack step main step cudaLaunchKernel")
	for i in range(20):
	    print(f"call {i + 1} 1 cuLaunchKernel step {i * 100000000} 5000")
	    print(f"kernel {i + 1} 1 matmul {i * 100000000 + 5000} 1000000")
	END
}

# make_cpu FILE STATE WAIT STACK... of process $pid, if set
pid=
make_cpu() {
	file=$1 state=$2 wait=$3
	shift 3
	rm -f "run/$file"
	{
		printf 'meta log.kind cpu\nmeta cpu.hz 100\n'
		echo "stack path $*"
		i=0
		while [ "$i" -lt 200 ]; do
			echo "sample 1 $((i * 10000000 + 5000000)) 0 $state path 10000000 $wait"
			i=$((i + 1))
		done
	} | make_log script "run/$file" $pid
}

show() {
	echo "-- $1"
	merge run -q --all >out.txt
	sed -n '/^Findings/,/^$/p; /^GPU idle time by what/,/^$/p' out.txt
}

mkdir run
make_gpu
make_cpu host.4711.cpu.xtr 1 '' py:train.py:40:main py:data.py:88:collate_batch
show "the launching thread runs a collate function"
make_cpu host.4711.cpu.xtr 7 '' py:train.py:40:main
show "it waits for the interpreter lock"
make_cpu host.4711.cpu.xtr 3 '' py:train.py:40:main py:log.py:7:write
show "it writes a file"
make_cpu host.4711.cpu.xtr 6 '' py:train.py:40:main py:buffer.py:9:fill
show "it touches new memory"
make_cpu host.4711.cpu.xtr 4 '' py:train.py:40:main py:queue.py:9:get
show "it waits for a lock"
make_cpu host.4711.cpu.xtr 4 '4800 4800' py:train.py:40:main py:stats.py:9:read_statistics
pid=4800
make_cpu host.4800.cpu.xtr 1 '' py:stats.py:30:compute
pid=
show "it waits for a thread that computes"
rm run/host.4800.cpu.xtr
make_cpu host.4711.cpu.xtr 1 '' py:train.py:40:main py:torch/_inductor/compile_fx.py:9:compile
show "it compiles"
make_cpu host.4711.cpu.xtr 10 '' py:train.py:40:main py:torch/utils/data/dataloader.py:9:_get_data
show "no CPU is free for it"
make_cpu host.4711.cpu.xtr 8 '4800 4800' py:train.py:40:main py:torch/utils/data/dataloader.py:9:_get_data
pid=4800
make_cpu host.4800.cpu.xtr 10 '' py:worker.py:3:load
pid=
show "no CPU is free for the worker that it waits for"
rm run/host.4800.cpu.xtr
make_cpu host.4711.cpu.xtr 1 '' main step
show "it runs native code"
make_cpu host.4711.cpu.xtr 8 '4711 4321' py:train.py:40:main py:torch/utils/data/dataloader.py:9:_get_data
show "it waits for a thread that was not sampled"
make_cpu host.4711.cpu.xtr 1 ''
show "its stack is empty"

# Prints the rule alone.
show_rule() {
	echo "-- $1"
	merge run -q --all >out.txt
	sed -n '/^Findings/,/^$/s/^ *[0-9.]* %.*  \([a-z-]*\)  .*/\1/p' out.txt
}
step=py:train.py:40:step
check() {
	make_cpu host.4711.cpu.xtr "$2" '' py:train.py:40:main $3
	show_rule "$1"
}
dynamo=py:torch/_dynamo
inductor=py:torch/_inductor
check "compiled code runs" 1 "$dynamo/eval_frame.py:9:_TorchDynamoContext.__call__.<locals>._fn
	$step"
check "compiled code runs, in older PyTorch" 1 "$dynamo/eval_frame.py:9:_fn
	$inductor/codecache.py:9:CompiledFxGraph.__call__
	$inductor/compile_fx.py:9:align_inputs.<locals>.run
	$inductor/runtime/triton_heuristics.py:9:CachingAutotuner.run"
check "compiled code runs, in newer PyTorch" 1 "$inductor/output_code.py:9:CompiledFxGraph.__call__
	$step"
check "a compiled function is compiled" 1 "$dynamo/eval_frame.py:9:_fn
	$dynamo/convert_frame.py:9:ConvertFrame.__call__ py:torch/fx/graph.py:9:lint"
check "a compiled backward pass is compiled" 1 "$inductor/compile_fx.py:9:compile_fx_inner"
check "Inductor tunes a kernel" 1 \
	"$inductor/runtime/triton_heuristics.py:9:CachingAutotuner.autotune_to_one_config"
check "Triton launches a tuned kernel" 1 "py:triton/runtime/autotuner.py:9:Autotuner.run
	py:triton/runtime/jit.py:9:JITFunction.run
	py:triton/compiler/compiler.py:9:CompiledKernel.launch_metadata"
check "Triton tunes a kernel" 1 "py:triton/runtime/autotuner.py:9:Autotuner._bench"
check "activations are computed again" 2 "py:torch/utils/checkpoint.py:9:checkpoint $step"
check "a function named like a checkpoint runs" 1 py:model.py:9:checkpointed_block
check "a function named like a checkpoint writes" 2 py:model.py:9:write_checkpoint
check "a checkpoint is prepared" 1 py:train.py:9:save_checkpoint
check "a container is indexed" 1 py:tokens.py:9:Vocabulary.__getitem__
check "a dataset is indexed by a data loader" 1 "py:torch/utils/data/_utils/fetch.py:9:fetch
	py:images.py:9:Images.__getitem__"
for name in read write __write __libc_write __GI___write __GI___pwrite64 __open64_nocancel fsync; do
	check "the kernel runs $name" 2 "$step $name"
done
check "the kernel runs write, with a wrapper of glibc 2.41" 2 \
	"write __syscall_cancel __syscall_cancel_arch_end"
check "the kernel runs another call" 2 "write sched_yield"
check "a function named write runs" 1 write

rm -f run/host.4711.cpu.xtr
python3 - <<'END' | make_log script run/host.4711.cpu.xtr
print("meta log.kind cpu\nmeta cpu.hz 100")
for i in range(200):
    print(f"sample 1 {i * 10000000 + 5000000} 0 1 - 10000000")
END
show "it runs, but no sample has a stack"

rm run/host.4711.cpu.xtr
show "no samples"
