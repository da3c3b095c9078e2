# SPDX-License-Identifier: Apache-2.0
# Names in the text output: no terminal escapes, the operation of PyTorch's backward pass before its
# callers, and lines of at most COLUMNS columns.
seeds="1 2 3"
make_runs a
make_runs b -v slow=1.5
for run in a1 a2 a3 b1 b2 b3; do
	profile $run | awk '{
		gsub(/"layer_3"/, "\"c10::Dispatcher::call\"")
		gsub(/"step"/, "\"torch::autograd::generated::SiluBackward0::apply\"")
		gsub(/"train"/, "\"tr\\u001b[31main\"")
		gsub(/kernel_3"/, "kernel_of_a_name_that_is_longer_than_the_line\\u0007_3\"")
		print
	}' >$run.json
done
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json | verdict_only
COLUMNS=60
export COLUMNS
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json
