# SPDX-License-Identifier: Apache-2.0
# XLA's autotuner: its work belongs to the only compilation that can have made it.
pass=XlaPass:#name=config-assigner,module=jit_step,program_id=7#
other=XlaPass:#name=config-assigner,module=jit_other,program_id=9#
trial=XlaModule:#hlo_module=gemm.1#
make_log script one.xtr <<-END
	stack compile py:/data/train.py:3:step Compile
	stack pipeline py:/data/train.py:3:step Compile RunPasses tsl::profiler::Push
	stack pass py:/data/train.py:3:step Compile RunPasses tsl::profiler::PushPass
	stack inside py:/data/train.py:3:step Compile RunPasses Wait Launch
	stack python py:/data/eval.py:5:test Execute
	stack running py:/data/eval.py:5:test Execute Launch
	stack task ThreadFn Loop
	stack candidate ThreadFn Loop Task Build
	stack trial ThreadFn Loop Task Profile Execute
	stack worker ThreadFn Loop Task Profile Execute Launch
	stack check ThreadFn Loop Task Profile CheckBuffers Launch
	stack copier ThreadFn Loop CopyTask Copy
	stack other OtherThread Copy
	# A thread of the pool works for a compilation. The range around its trial is older.
	push 2 5 task pool
	push 1 10 compile XlaCompile:#module=jit_step# TSL
	push 1 15 pipeline XlaPassPipeline:#name=config-assigner,module=jit_step# TSL
	push 1 20 pass $pass TSL
	call 1 2 cuLaunchKernel check 21 2
	kernel 1 1 init 100 1
	push 2 22 candidate XlaCompileBackend:#module=gemm.1,program_id=8# TSL
	pop 2 25 TSL
	push 2 30 trial $trial TSL
	call 2 2 cuLaunchKernel worker 35 2
	kernel 2 1 gemm 200 2
	pop 2 40 TSL
	call 3 2 cuLaunchKernel check 41 2
	kernel 3 1 redzone 300 4
	# Not shown by the stack: other work of the pool, and a call without a stack.
	call 4 2 cuLaunchKernel copier 42 2
	kernel 4 1 copy 400 8
	call 5 2 cuLaunchKernel - 43 2
	kernel 5 1 lost 500 16
	# The compiling thread itself; a thread without trials; a program that Python runs.
	call 6 1 cuLaunchKernel inside 46 2
	kernel 6 1 constant 600 32
	call 7 3 cuLaunchKernel other 47 2
	kernel 7 1 copy 700 64
	push 5 47 python XlaModule:#hlo_module=jit_test# TSL
	call 8 5 cuLaunchKernel running 48 2
	kernel 8 1 test 800 128
	pop 5 49 TSL
	pop 1 50 TSL
	pop 1 51 TSL
	# After the pass.
	call 9 2 cuLaunchKernel check 55 2
	kernel 9 1 redzone 900 256
	pop 1 60 TSL
	# Two passes at once.
	push 1 70 pass $pass TSL
	push 4 75 pass $other TSL
	push 2 80 trial $trial TSL
	call 10 2 cuLaunchKernel worker 85 2
	kernel 10 1 gemm 2000 512
	pop 2 90 TSL
	pop 1 91 TSL
	pop 4 92 TSL
	# Another thread begins to compile during the pass.
	push 1 100 pass $pass TSL
	push 2 101 trial $trial TSL
	call 11 2 cuLaunchKernel worker 102 2
	kernel 11 1 gemm 3000 1024
	pop 2 105 TSL
	push 4 106 compile XlaCompile:#module=jit_other# TSL
	pop 1 107 TSL
	# It ends before the next pass.
	pop 4 110 TSL
	push 1 111 pass $pass TSL
	push 2 112 trial $trial TSL
	call 12 2 cuLaunchKernel worker 113 2
	kernel 12 1 gemm 5000 2048
	pop 2 115 TSL
	pop 1 116 TSL
	# A compilation whose Python line is unknown, until the end of the log.
	push 1 120 - $pass TSL
	push 2 121 trial $trial TSL
	call 13 2 cuLaunchKernel worker 122 2
	kernel 13 1 gemm 8000 4096
END
merge one.xtr --folded -
merge -q one.xtr --folded - --nvtx off
merge -q one.xtr --folded - --nvtx roots | grep ' 2$'
merge -q one.xtr --folded - --range 'XlaCompile'
merge -q one.xtr --text - --all --my-code train.py | grep 'your own code'
merge -q one.xtr --text - --all | sed -n '/by NVTX range/,/^$/p'
