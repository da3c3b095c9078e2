# SPDX-License-Identifier: Apache-2.0
# Find and name regressions: a slower kernel, more launches, a wait, a copy.
base=a1.xtr,a2.xtr,a3.xtr,a4.xtr,a5.xtr new=b1.xtr,b2.xtr,b3.xtr,b4.xtr,b5.xtr
seeds="1 2 3 4 5"
make_runs a
for change in slow=1.1 launches=2 sync=1 copy=1; do
	echo "--- $change"
	make_runs b -v $change
	diff_runs $base $new | verdict_only
done
echo "--- too few runs are inconclusive"
diff_runs a1.xtr,a2.xtr b1.xtr,b2.xtr | verdict_only
diff_runs a1.xtr,a2.xtr,a3.xtr b1.xtr,b2.xtr,b3.xtr --fail-on 'path(log_loss) > 5%' | verdict_only
echo "--- a vanished path keeps no budget"
diff_runs $new $base --fail-on 'path(log_loss) < 1us' | verdict_only
echo "--- an allowance for time allows no higher count; the later of two dates applies"
printf 'path(log_loss).count > 0\nallow path(log_loss) +1ms\n' >rules
diff_runs $base $new --rules rules | verdict_only
printf 'path(log_loss) > 0\nallow path(log_loss) +1ms until 2001-01-01\nallow path(log_loss) +1us\n' >rules
diff_runs $base $new --rules rules | verdict_only
echo "--- sides swapped"
diff_runs $new $base | verdict_only
