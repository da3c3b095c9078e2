# SPDX-License-Identifier: Apache-2.0
# An output that cannot be written leaves no file, and never a partial one.
make_log normal one.xtr
merge one.xtr --folded nowhere/one.folded --chrome one.json
merge one.xtr --folded .
merge one.xtr --folded /dev/full
merge one.xtr --chrome /dev/full --folded one.folded
status=0
"$merge_program" one.xtr --folded - >/dev/full || status=$?
echo "exit status $status"
status=0
"$merge_program" --help >/dev/full || status=$?
echo "exit status $status"
echo "kept" >target
ln -s target link
merge one.xtr --folded link
ls
head -1 target
