# SPDX-License-Identifier: Apache-2.0
# The summary shows the cost of the tracer as far as it is known: nothing for a process killed in
# its first second; up to the last account for one killed later. Waits for a buffer of CUPTI belong
# to it.
make_log script whole.xtr <<-END
	account callbacks.ns 3000000
	account writer.cpu_ns 1000000
	account flusher.cpu_ns 500000
	account threads.waited_ns 2000
	account buffers.waited_ns 1000000
END
make_log script later.xtr <<-END
	account callbacks.ns 1000000
	account writer.cpu_ns 1000000
	account recovered.calls 3
END
make_log script early.xtr <<-END
	account recovered.calls 3
END
for logs in whole.xtr later.xtr early.xtr "whole.xtr later.xtr early.xtr"; do
	echo "$logs:"
	merge $logs --all | grep tracer:
done

# A cost above the limit is reported.
make_log script beyond.xtr <<-END
	account callbacks.ns 3000000
	account overhead.beyond_ns 2500000000
END
merge beyond.xtr --all | grep -A3 Trust:
