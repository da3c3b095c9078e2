# SPDX-License-Identifier: Apache-2.0
# Symbols already in the log; missing binaries.
make_log normal one.xtr
cp one.xtr before
merge one.xtr --embed-symbols
cmp one.xtr before
make_log unnamed two.xtr
merge two.xtr --folded -
cp two.xtr before
merge two.xtr --embed-symbols
cmp two.xtr before
