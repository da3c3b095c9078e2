# SPDX-License-Identifier: Apache-2.0
# All kernels are slower by the same: that is said, and no single path is blamed. If the clocks are known to be lower, it is
# not the program's doing.
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
