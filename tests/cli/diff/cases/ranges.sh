# SPDX-License-Identifier: Apache-2.0
# NVTX ranges as iterations, with and without numbers; warm-up; budgets.
make_runs a -v nvtx=step
make_runs b -v nvtx=step
base=a1.xtr,a2.xtr,a3.xtr new=b1.xtr,b2.xtr,b3.xtr
diff_runs $base $new --fail-on 'range(step).wall < 1ms' --fail-on 'range(step) < 10us' | verdict_only
diff_runs $base $new --iteration step_7 --warmup 20 --fail-on 'range(step).each > 1%' | verdict_only
diff_runs $base $new --iteration nothing | verdict_only
make_runs c
diff_runs $base c1.xtr,c2.xtr,c3.xtr | verdict_only
