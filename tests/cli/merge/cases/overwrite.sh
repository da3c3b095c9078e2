# SPDX-License-Identifier: Apache-2.0
# A log is never overwritten, whatever name it is given; nor is one output by another.
make_log normal one.xtr
make_log normal two.xtr
cp one.xtr copy
ln -s one.xtr link
merge one.xtr --folded one.xtr
merge --folded one.xtr two.xtr
merge two.xtr --chrome link
cmp one.xtr copy && echo "the log is as it was"
merge one.xtr --folded same --chrome ./same
ls
