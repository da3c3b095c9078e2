# SPDX-License-Identifier: Apache-2.0
# Two processes of one host and one of another host, with the pid of the first.
mkdir data
make_log normal data/one.4321.xtr
make_log second data/one.5432.xtr
make_log far data/two.4321.xtr
merge data --folded all.folded --chrome all.json
cat all.folded
check_chrome all.json all.folded
grep process_name all.json
echo "first calls:"
grep '"correlation":1}' all.json | grep '"cat":"api"'
merge data --top 2 --all
merge -q data --folded - --by process
merge -q data --folded - --weight collective-wait
