# SPDX-License-Identifier: Apache-2.0
# All kernels are slower by the same factor: note it, and blame no single path. If the GPU clocks
# are known to be lower, it is not a regression.
make_runs a
make_runs b -v all=1.05
for run in a1 a2 a3 b1 b2 b3; do profile $run >$run.json; done
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json | verdict_only
for run in 1 2 3; do
	sed -i '2s/^/"clock_mhz":1980,/' a$run.json
	sed -i '2s/^/"clock_mhz":1890,/' b$run.json
done
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json | verdict_only
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json --fail-on 'path(step) > 2%' | verdict_only
diff_runs b1.json,b2.json,b3.json a1.json,a2.json,a3.json | verdict_only
# Slightly lower clocks do not explain a much slower kernel, even if they explain all other
# slowdowns.
make_runs b -v all=1.01 -v slow=2
for run in 1 2 3; do
	profile b$run | sed '2s/^/"clock_mhz":1962,/' >b$run.json
done
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json --fail-on 'gpu-time > 1%' --fail-on 'path(layer_3) > 5%' | verdict_only
# A common slowdown does not make an inconclusive path significant.
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json --fail-on 'path(layer_2) > 0%' | verdict_only
# A budget looks at NEW only, whatever its clocks are.
make_runs b -v all=1.05
for run in 1 2 3; do
	profile b$run | sed '2s/^/"clock_mhz":1890,/' >b$run.json
done
diff_runs a1.json,a2.json,a3.json b1.json,b2.json,b3.json --fail-on 'gpu-time < 60us' --fail-on 'path(step) < 1ms' | verdict_only
