# SPDX-License-Identifier: Apache-2.0
# Missing calls and stacks: their kernels are counted as not attributed.
make_log lost lost.xtr
merge lost.xtr --all
merge --quiet lost.xtr --folded lost.folded --chrome lost.json
cat lost.folded
check_chrome lost.json lost.folded

# An unknown counter is a loss if its name says so.
make_log script two.xtr <<-END
	account calls.lost.killed 3
	account copies.lost.write_failed 4
	account sugar.lost.spilled 5
	account sugar.kept 6
END
merge two.xtr --all
