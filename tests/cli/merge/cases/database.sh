# SPDX-License-Identifier: Apache-2.0
# A database is written to its own file, completely or not at all.
make_log normal one.xtr
merge one.xtr --sqlite -
merge one.xtr --sqlite /dev/full
merge one.xtr --sqlite nowhere/one.db
(
	trap '' XFSZ
	ulimit -f 8
	merge one.xtr --sqlite one.db --chrome one.json
)
ls
echo "kept" >one.db
merge one.xtr --sqlite one.db --folded one.folded
ls
python3 - <<END
import sqlite3
for row in sqlite3.connect("one.db").execute("SELECT kind, name, count, gpu_time_ns FROM top_kernels"):
    print(row)
END
