# SPDX-License-Identifier: Apache-2.0
# Rejects wrong usage with one line and status 2.
diff_runs --help
diff_runs --version
diff_runs
diff_runs a
diff_runs a b c
for bad in --nope -x '--top 0' '--warmup x' '--jobs 0' '--error-rate 50%' --help=yes --allow '-qx'; do
	diff_runs a b $bad
done
# Abbreviated options, values attached to short options, and formats chosen by file name.
diff_runs a b --json x -ox.json
diff_runs a b -o x.pdf
diff_runs a b --svg x.svg
diff_runs a b --fail='gpu-time >' -f'count > 3%'
diff_runs a b --top
diff_runs --text a b
diff_runs a b --json x --text x
diff_runs a b --json missing/x
