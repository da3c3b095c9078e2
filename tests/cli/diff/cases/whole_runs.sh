# SPDX-License-Identifier: Apache-2.0
# Without --iteration, values are of whole runs: a longer loop is more work. Rules that name a range
# are about one instance of it.
basis=
base=a1.xtr,a2.xtr,a3.xtr,a4.xtr,a5.xtr new=b1.xtr,b2.xtr,b3.xtr,b4.xtr,b5.xtr
seeds="1 2 3 4 5"
rules="--fail-on launches>0 --fail-on iterations>0 --fail-on range(step).launches>0
	--fail-on range(step).wall>5% --fail-on range(step)>5% --fail-on gpu-time>3%"
make_runs a -v nvtx=step
echo "--- nothing changed"
make_runs b -v nvtx=step
diff_runs $base $new $rules
echo "--- the loop runs 20 % longer"
make_runs b -v nvtx=step -v count=72
diff_runs $base $new $rules | verdict_only
diff_runs $base $new $rules --iteration detected | verdict_only | sed 1,3d
diff_runs $base $new $rules --iteration step --allow-different-iterations | verdict_only | sed 1,3d
echo "--- an iteration launches more"
make_runs b -v nvtx=step -v launches=2
diff_runs $base $new $rules | verdict_only | sed 1,3d
echo "--- another kind of iteration"
make_runs b
diff_runs $base $new --iteration detected --fail-on 'launches > 0' | verdict_only | sed 1,3d
diff_runs $base $new --fail-on 'launches > 0' | verdict_only | sed 1,3d
echo "--- a slower kernel within the limits"
make_runs a
make_runs b -v slow=1.3
diff_runs $base $new --fail-on 'gpu-time > 5%' --fail-on 'kernel(kernel_3) > 50%'
