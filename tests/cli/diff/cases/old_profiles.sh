# SPDX-License-Identifier: Apache-2.0
# The wall of profiles of version 1 means something else, so it is not compared.
basis=
make_runs a -v nvtx=step
make_runs b -v nvtx=step
for run in a1 a2 a3; do
	profile $run | sed 's/"version": *2/"version": 1/' >$run.json
done
new=b1.xtr,b2.xtr,b3.xtr
diff_runs a1.json,a2.json,a3.json $new --fail-on 'gpu-time > 3%'
diff_runs a1.json,a2.json,a3.json $new --fail-on 'wall > 3%' | verdict_only
diff_runs a1.xtr,a2.json,a3.xtr $new --fail-on 'range(step).wall > 3%' | verdict_only
"$xtrace_program" baseline save --label old -q old.json a1.json,a2.json,a3.json
diff_runs old.json $new --fail-on 'gpu-time > 3%' | verdict_only
echo "--- old sets of a baseline only tell the noise"
"$xtrace_program" baseline update --label new -q old.json b1.xtr,b2.xtr
diff_runs old.json b3.xtr,a1.xtr --fail-on 'wall > 3%' | verdict_only
