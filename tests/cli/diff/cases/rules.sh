# SPDX-License-Identifier: Apache-2.0
# Rules from files and the command line, exceptions, and syntax errors.
make_runs a
make_runs b -v slow=1.2
(seeds="4 5 6" && make_runs a)
base=a1.xtr,a2.xtr,a3.xtr new=b1.xtr,b2.xtr,b3.xtr
try() {
	echo "--- $*"
	diff_runs $base $new "$@" | verdict_only | sed 1,3d
}
try --fail-on 'path(step/layer_3) > 5%'
try --fail-on 'path(step/layer_3) > 30%'
try --fail-on 'path(train/step) > 2%' --fail-on 'kernel(*) > 1%'
try --fail-on 'gpu-time > 1us' --fail-on 'launches > 0' --fail-on 'peak-memory > 100MB'
try --fail-on 'gpu-time < 1ms' --fail-on 'gpu-time < 50us'
cat >rules <<-END
	# limits
	path(*) > 1%
	allow path(layer_3) +25% until 2999-12-31 # a better answer takes longer
END
try --rules rules
sed -i 's/2999/2001/' rules
try --rules rules
echo 'ignore path(layer_3)' >>rules
try --rules rules
echo 'ignore path(layer_3)' >only
try --rules only
try --fail-on 'path(nowhere) > 1%'
try --fail-on 'gpu-tme > 3%' --fail-on 'path(step > 1%'
printf 'gpu-time > 1%%\npath(a) >\n' >wrong
try --rules wrong --rules missing
# An exception that covers all rows of a rule, and a file that contains only rules.
echo 'ignore path(layer_3)' >only
try --rules only --fail-on 'path(layer_3) > 5%'
# Note exceptions that match nothing.
printf 'gpu-time > 90%%\nignore path(layer_33)\nallow path(layer_44) +4%%\nallow path(layer_3) +90%%\nignore kernel(kernel_3)\n' >idle
try --rules idle
diff_runs $base $new --rules idle --markdown - | grep 'layer_[34]'
diff_runs $base $new --rules idle --json - | head -n 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["notes"])'
# Note slower paths that no rule covers. The report then does not say "no regression".
for rule in 'path(layer_4) > 5%' 'path(layer_3) > 50%' 'kernel(kernel_3) > 50%' 'gpu-time > 5%'; do
	echo "--- $rule"
	diff_runs $base $new --fail-on "$rule" --markdown - | grep '^###  *[^#W]\|no rule covers'
done
echo "--- nothing"
diff_runs $base a4.xtr,a5.xtr,a6.xtr --fail-on 'gpu-time > 5%' --markdown - | grep '^###  *[^#W]\|no rule covers'
# A new row has no relative change.
make_runs c -v copy=1
new=c1.xtr,c2.xtr,c3.xtr
printf 'path(log_loss) > 1%%\ngpu-time > 0.1%%\nallow path(log_loss) +500%%\n' >allowed
try --rules allowed
printf 'path(log_loss) > 1%%\ngpu-time > 0.1%%\nallow path(log_loss) +1us\nallow gpu-time +3%%\n' >allowed
try --rules allowed
new=b1.xtr,b2.xtr,b3.xtr
# If rows of a rule vanish while other rows grow as much, they may have been renamed: no pass.
for run in b1 b2 b3; do
	profile $run >$run.json
	sed 's/kernel_3/something_else/; s/layer_3/another_one/' $run.json >named_$run.json
	python3 - $run <<-END
		import json, sys
		run = json.load(open(sys.argv[1] + ".json"))
		name = next(n for n, text in enumerate(run["names"]) if text.endswith("kernel_3"))
		last = {2 * node - 1: node for node in range(1, len(run["nodes"]) // 2 + 1)}
		run["kernels"] = [row for row in run["kernels"] if row[0] != name]
		run["paths"] = [row for row in run["paths"] if run["nodes"][2 * int(row[0]) - 1] != name]
		json.dump(run, open("gone_" + sys.argv[1] + ".json", "w"))
	END
done
for kind in named gone; do
	new=${kind}_b1.json,${kind}_b2.json,${kind}_b3.json
	try --fail-on 'path(layer_3) > 5%' --fail-on 'kernel(kernel_3) > 5%' --fail-on 'kernel(kernel_3).count > 0' \
		--fail-on 'each kernel(kernel_3*) > 1%'
	# If only some rows vanish, growth of others matters only if it would break the rule.
	try --fail-on 'kernel(kernel_*) > 0.5%' --fail-on 'kernel(kernel_*).count > 0' --fail-on 'kernel(kernel_*) > 5%'
	try --fail-on 'kernel(kernel_*) < 57us' --fail-on 'kernel(kernel_*) < 70us' --fail-on 'kernel(kernel_*).count < 12' \
		--fail-on 'each kernel(kernel_*) < 9us'
done
for rule in 'gpu-time > 3%' 'gpu-tme > 3%'; do
	status=0
	"$xtrace_program" diff --check --fail-on "$rule" || status=$?
	echo "--check: $status"
done
