# SPDX-License-Identifier: Apache-2.0
diff_runs --help
diff_runs --version
diff_runs
diff_runs a
diff_runs a b c
diff_runs a b --nope -x --top 0 --warmup x --jobs 0 --error-rate 50% --help=yes
diff_runs a b --top
diff_runs a b --json x --text x
