# SPDX-License-Identifier: Apache-2.0
# Rules of a file, of the command line, exceptions, and what is wrong with rules.
make_runs a
make_runs b -v slow=1.2
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
	# what may not happen
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
# A rule that an exception leaves nothing of; and rules that are read alone.
echo 'ignore path(layer_3)' >only
try --rules only --fail-on 'path(layer_3) > 5%'
for rule in 'gpu-time > 3%' 'gpu-tme > 3%'; do
	status=0
	"$xtrace_program" diff --check --fail-on "$rule" || status=$?
	echo "--check: $status"
done
