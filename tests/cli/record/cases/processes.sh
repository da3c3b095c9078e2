# SPDX-License-Identifier: Apache-2.0
# Each process has its own log.
sample_is="$sample --layers 1 --dim 64 --tokens 2"
"$xtrace" record --simulate sh -c "$sample_is >/dev/null & $sample_is >/dev/null; wait"
ls xtrace.data | grep -c '\.xtr$'
