# SPDX-License-Identifier: Apache-2.0
# Valid logs without events: the outputs are still valid.
make_log empty empty.xtr
merge empty.xtr --all
merge empty.xtr --folded empty.folded --chrome empty.json
wc -c <empty.folded
check_chrome empty.json empty.folded
make_log no_kernels calls.xtr
merge calls.xtr --folded - --chrome calls.json
check_chrome calls.json
# Recording was paused all the time.
make_log script paused.xtr <<-END
	switch 5 off asked
END
merge paused.xtr --folded -
