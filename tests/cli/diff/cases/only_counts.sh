# SPDX-License-Identifier: Apache-2.0
# --only-counts judges what is equal in all runs of BASE, whatever the times do.
basis=
base=a1.xtr,a2.xtr,a3.xtr,a4.xtr,a5.xtr new=b1.xtr,b2.xtr,b3.xtr,b4.xtr,b5.xtr
seeds="1 2 3 4 5"
make_runs a
echo "--- all kernels are twice as slow"
make_runs b -v all=2
diff_runs $base $new --only-counts | verdict_only
for change in launches=2 sync=1 copy=1; do
	echo "--- $change"
	make_runs b -v $change
	diff_runs $base $new --only-counts | verdict_only | sed 1,3d
done
echo "--- the number of waits varies in BASE"
make_run a3 -v seed=a3 -v rare=30
make_runs b
diff_runs $base $new --only-counts | verdict_only | sed 1,3d
make_runs b -v sync=1
diff_runs $base $new --only-counts | verdict_only | sed 1,3d
echo "--- too few runs"
diff_runs a1.xtr,a2.xtr $new --only-counts | verdict_only | sed 1,3d
echo "--- with an exception"
make_runs a
make_runs b -v launches=2
printf 'allow launches +100\nallow kernel(kernel_5).count +100\n' >rules
diff_runs $base $new --only-counts --rules rules | verdict_only | sed 1,3d
