# SPDX-License-Identifier: Apache-2.0
# One thread, one stream: all three outputs.
make_log normal one.xtr
merge one.xtr --all
merge one.xtr --folded -
merge one.xtr --folded one.folded --chrome one.json
check_chrome one.json one.folded
cat one.json
