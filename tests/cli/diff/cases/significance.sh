# SPDX-License-Identifier: Apache-2.0
# Significance limits: small error rates, budgets of rows that only NEW has, tests that disagree,
# counts that vary in NEW only.
base=a1.xtr,a2.xtr,a3.xtr,a4.xtr,a5.xtr new=b1.xtr,b2.xtr,b3.xtr,b4.xtr,b5.xtr
seeds="1 2 3 4 5"
make_runs a
# Make the runs of NEW, each with its own value of an option.
make_new() {
	for seed in 1 2 3 4 5; do
		make_run b$seed -v seed=b$seed -v $1=$2
		shift 2
		set -- "$@"
	done
}
compare() {
	echo "--- $*"
	diff_runs $base $new "$@" | verdict_only | sed 1,3d
}
make_runs b -v all=1.2
compare --error-rate 0.5% --fail-on 'gpu-time > 3%'
compare --error-rate 0.1% --fail-on 'gpu-time > 3%'
compare --error-rate 0.5% --fail-on 'kernel(kernel_1*) > 3%'
make_new copy 0.5 copy 0.8 copy 1 copy 1.2 copy 1.7
for limit in 320ns 300ns 1us 10ns; do
	compare --fail-on "path(log_loss) < $limit"
done
compare --fail-on "path(log_loss).each < 1us" --fail-on "path(log_loss).count < 2"
make_new all 1.09 all 1.09 all 1 all 1.09 all 1.09
compare
make_new launches 2 launches 2 launches 2 launches 1 launches 2
compare --fail-on 'launches > 0'
make_new launches 1 launches 1 launches 2 launches 1 launches 1
compare --fail-on 'launches > 0'
echo "--- an interval of the net change is labelled"
make_runs b -v all=1.05 -v slow=3
diff_runs $base $new --markdown - | sed '/^#### /,/^<details/!d'
compare --fail-on 'each path(kernel_3*) > 2%'
