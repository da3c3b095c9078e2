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

# make_cpu FILE STATE WAIT STACK...
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
	} | make_log script "run/$file"
}

show() {
	echo "-- $1"
	merge run -q >out.txt
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
make_cpu host.4711.cpu.xtr 1 '' py:train.py:40:main py:torch/_inductor/compile_fx.py:9:compile
show "it compiles"
make_cpu host.4711.cpu.xtr 1 '' main step
show "it runs native code"
make_cpu host.4711.cpu.xtr 8 '4711 4321' py:train.py:40:main py:torch/utils/data/dataloader.py:9:_get_data
show "it waits for a thread that was not sampled"
make_cpu host.4711.cpu.xtr 1 ''
show "its stack is empty"
rm run/host.4711.cpu.xtr
show "no samples"
