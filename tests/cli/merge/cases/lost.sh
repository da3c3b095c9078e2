# SPDX-License-Identifier: Apache-2.0
# Calls and stacks that are missing: their kernels are counted, as not attributed.
make_log lost lost.xtr
merge lost.xtr
merge --quiet lost.xtr --folded lost.folded --chrome lost.json
cat lost.folded
check_chrome lost.json lost.folded
