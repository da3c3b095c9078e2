# SPDX-License-Identifier: Apache-2.0
# What was made worse is found and named: a slower kernel, more launches, a wait, a copy.
base=a1.xtr,a2.xtr,a3.xtr new=b1.xtr,b2.xtr,b3.xtr
make_runs a
for change in slow=1.1 launches=2 sync=1 copy=1; do
	echo "--- $change"
	make_runs b -v $change
	diff_runs $base $new | verdict_only
done
echo "--- and the other way round"
diff_runs $new $base | verdict_only
