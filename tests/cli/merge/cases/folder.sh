# SPDX-License-Identifier: Apache-2.0
# Tables in a folder: all of them are whole, or none is there.
make_log normal one.xtr
merge one.xtr --csv -
merge one.xtr --csv one.xtr
merge one.xtr --csv nowhere/tables
merge one.xtr --csv tables --folded nowhere/one.folded
merge one.xtr --csv tables --folded /dev/full
ls
merge one.xtr --csv tables
merge one.xtr --csv tables --folded tables/paths.csv
ls tables
cat tables/kernels.csv tables/paths.csv
