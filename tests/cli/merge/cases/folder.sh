# SPDX-License-Identifier: Apache-2.0
# Tables in a folder: all complete, or none.
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
