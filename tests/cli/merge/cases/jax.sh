# SPDX-License-Identifier: Apache-2.0
# Programs of JAX: scopes as frames, a graph, XLA's threads, an autotuner.
step=XlaModule:#hlo_module=jit_step,program_id=7#
lambda=XlaModule:#prefix=args[0],hlo_module=jit__lambda_,program_id=8#
trial=XlaModule:#hlo_module=gemm.1#
make_log script one.xtr <<-END
	stack call py:/data/train.py:3:step Execute ExecuteThunks Launch
	stack execute py:/data/train.py:3:step Execute ExecuteThunks
	stack thunk py:/data/train.py:3:step Execute ExecuteThunks OnStream
	stack record py:/data/train.py:2:first Execute ExecuteThunks Record Create
	stack recorder py:/data/train.py:2:first Execute ExecuteThunks
	stack replay py:/data/train.py:3:step Execute ExecuteThunks OnStream LaunchGraph
	stack worker ThreadFn ExecuteThunks Launch
	stack working ThreadFn ExecuteThunks
	# Scopes, with commas and nested parentheses; a loop; an operation without scopes.
	push 1 10 execute $step TSL
	push 1 20 thunk Thunk:#name=jit(step)/a,b->c/transpose(jvp(f/g))/dot_general,hlo_op=gemm.1,unique_hlo_op_id=9# TSL
	call 1 1 cuLaunchKernel call 25 5
	kernel 1 1 gemm 100 10
	pop 1 40 TSL
	push 1 50 thunk Thunk:#name=jit(step)/while,hlo_op=while# TSL
	push 1 51 thunk Thunk:#name=jit(step)/while/body/add,hlo_op=add.1# TSL
	call 2 1 cuLaunchKernel call 55 5
	kernel 2 1 add 200 20
	pop 1 60 TSL
	pop 1 61 TSL
	push 1 70 thunk Thunk:#hlo_op=copy.1# TSL
	call 3 1 cuLaunchKernel call 75 5
	kernel 3 1 copy 300 30
	pop 1 80 TSL
	pop 1 90 TSL
	# A graph, recorded in another run of the same program.
	push 1 110 recorder $step TSL
	push 1 111 record Thunk:#hlo_op=command_buffer# TSL
	push 1 112 record Thunk:#name=jit(step)/mul,hlo_op=mul.2# TSL
	node 10 0 record 115 1
	pop 1 120 TSL
	pop 1 121 TSL
	pop 1 122 TSL
	push 1 130 execute $step TSL
	push 1 131 thunk Thunk:#hlo_op=command_buffer# TSL
	call 4 1 cuGraphLaunch replay 135 5
	kernel 4 1 mul 400 40 10
	pop 1 140 TSL
	pop 1 150 TSL
	# The same kernel in a graph that another program launches: both paths are shown.
	push 1 151 execute $lambda TSL
	call 5 1 cuGraphLaunch replay 155 5
	kernel 5 1 mul 500 50 10
	pop 1 160 TSL
	# A thread of XLA. The first scope is the module's.
	push 2 210 working $lambda TSL
	push 2 211 working Thunk:#name=jit(<lambda>)/sin,hlo_op=sin# TSL
	call 6 2 cuLaunchKernel worker 215 5
	kernel 6 1 sin 600 60
	pop 2 220 TSL
	pop 2 230 TSL
	# The autotuner, in a range of the user; a range of another domain; damaged ranges.
	push 2 240 working tuning
	push 2 241 working $trial TSL
	call 7 2 cuLaunchKernel worker 245 5
	kernel 7 1 gemm 700 70
	pop 2 250 TSL
	pop 2 255
	push 2 260 working $step other
	call 8 2 cuLaunchKernel worker 265 5
	kernel 8 1 gemm 800 80
	pop 2 270 other
	push 2 280 working XlaModule:#program_id=1 TSL
	push 2 281 working Thunk:#name=((/,hlo_op= TSL
	call 9 2 cuLaunchKernel worker 285 5
	kernel 9 1 gemm 900 90
END
merge one.xtr --folded -
merge -q one.xtr --folded - --nvtx roots | grep ' 10$'
merge -q one.xtr --folded - --nvtx off | grep ' [146]0$'
merge -q one.xtr --folded - --graph-stacks capture | grep ' 90$'
merge -q one.xtr --folded - --python off | grep ' 10$'
