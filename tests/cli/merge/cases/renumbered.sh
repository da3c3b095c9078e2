# SPDX-License-Identifier: Apache-2.0
# Another tool took CUPTI and finalised it: ids restart. Work that precedes its call in the log is
# not joined with the earlier call of that id. A requested pause does not restart ids.
make_log script one.xtr <<-END
	stack first main first
	stack second main second
	stack third main third
	call 1 1 cuLaunchKernel first 100 10
	kernel 1 1 k 120 1
	switch 200 off yielded
	switch 300 on yielded
	kernel 1 1 k 420 10
	flush 11
	flush 13
	flush 12
	flush 13
	call 1 1 cuLaunchKernel second 400 10
	switch 500 off asked
	switch 600 on asked
	call 2 1 cuLaunchKernel third 700 10
	kernel 1 1 k 720 100
	kernel 2 1 k 730 1000
END
merge one.xtr --folded -
