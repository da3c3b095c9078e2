# SPDX-License-Identifier: Apache-2.0
# A crash buffer beside an unclosed log: its process is running or was killed.
make_log normal one.xtr
: >one.xtr.spool
merge one.xtr --folded /dev/null
merge one.xtr --embed-symbols
size=$(wc -c <one.xtr)
truncate -s $((size - 32)) one.xtr
merge one.xtr --folded /dev/null
