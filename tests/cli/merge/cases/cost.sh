# SPDX-License-Identifier: Apache-2.0
# What the tracer cost is said as far as it is known: not at all by what was killed in its first second, and
# up to the last account by what was killed later.
make_log script whole.xtr <<-END
	account callbacks.ns 3000000
	account writer.cpu_ns 1000000
	account flusher.cpu_ns 500000
	account threads.waited_ns 2000
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
	merge $logs | grep tracer:
done

# Nor is it passed over that it was more than it might have been.
make_log script beyond.xtr <<-END
	account callbacks.ns 3000000
	account overhead.beyond_ns 2500000000
END
merge beyond.xtr | grep -A3 Trust:
