# SPDX-License-Identifier: Apache-2.0
# Medians of the numbers of iterations are compared: one odd run does not hide a longer loop.
make_runs a -v nvtx=step
make_run a3 -v seed=a3 -v nvtx=step -v count=72
make_runs b -v nvtx=step -v count=72
base=a1.xtr,a2.xtr,a3.xtr new=b1.xtr,b2.xtr,b3.xtr
diff_runs $base $new --fail-on 'launches > 0' | verdict_only
basis=
diff_runs $base $new --fail-on 'range(step).launches > 0' | verdict_only
