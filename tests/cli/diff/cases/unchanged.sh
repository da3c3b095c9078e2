# SPDX-License-Identifier: Apache-2.0
# The same program twice: no findings, but the smallest detectable changes. Iterations are detected.
make_runs a
make_runs b
diff_runs a1.xtr,a2.xtr,a3.xtr b1.xtr,b2.xtr,b3.xtr
