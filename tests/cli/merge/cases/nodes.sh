# SPDX-License-Identifier: Apache-2.0
# Graph nodes: captured, cloned, cloned again; reused ids; unknown origins.
make_log script one.xtr <<-END
	stack capture main warmup cudaLaunchKernel
	stack copy main warmup cudaMemcpyAsync
	stack replay main loop cudaGraphLaunch
	stack driver main driver
	stack other main other cudaLaunchKernel
	call 1 1 cuLaunchKernel capture 100 50
	node 10 0 capture 120 1
	call 2 1 cuMemcpyAsync copy 160 50
	node 11 0 copy 170 1
	call 3 1 cuGraphAddKernelNode driver 220 10
	node 12 0 driver 225 1
	node 20 10 - 300 1        # instantiated
	node 21 11 - 300 1
	node 22 12 - 300 1
	node 30 20 - 310 1        # and again, as a child
	call 4 1 cuGraphLaunch replay 400 20
	kernel 4 1 matmul 500 10 20
	copy 4 1 8:3:3:1 510 5 100 21
	kernel 4 1 softmax 520 3 22
	kernel 4 1 matmul 530 2 30
	kernel 4 1 lost 540 1 999 # no such node
	# Ids 10 and 20 are reused for other nodes; 20 is no clone now.
	node 10 0 other 600 1
	node 20 10 - 700 1
	call 5 1 cuGraphLaunch replay 650 20
	kernel 5 1 matmul 1000 100 20 # launched before the new 20 existed
	call 6 1 cuGraphLaunch replay 800 20
	kernel 6 1 matmul 2000 200 20
	kernel 6 1 late 2300 9 50 # created after the launch
	node 50 0 other 900 1
	# A cycle, a clone of itself, a clone of an unknown node, a node without a stack.
	node 40 41 - 700 1
	node 41 40 - 700 1
	node 42 42 - 700 1
	node 43 4711 - 700 1
	node 44 0 - 700 1
	call 7 1 cuGraphLaunch replay 1000 20
	kernel 7 1 odd 3000 1 40
	kernel 7 1 odd 3010 1 42
	kernel 7 1 odd 3020 1 43
	kernel 7 1 odd 3030 1 44
	kernel 98 1 odd 3040 1 20     # the launch is lost
END
merge one.xtr --folded -
merge -q one.xtr --folded - --graph-stacks replay
merge -q one.xtr --folded - --graph-stacks capture
merge -q one.xtr --all
