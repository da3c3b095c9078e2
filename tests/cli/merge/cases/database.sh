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

echo "-- each collective has its own work, even if another one runs at the same time"
for rank in 0 1; do
	make_log script "rank$rank.xtr" <<-END
		meta process.identity $(printf %032d "$rank")
		meta gpu.0.uuid 000000$rank-aaaa
		stream 2 0 1 8
		stack left main left cudaLaunchKernel
		stack right main right cudaLaunchKernel
		call 1 1 cuLaunchKernel left 1000 10
		call 2 1 cuLaunchKernel right 1100 10
		kernel 1 1 _Z34ncclDevKernel_AllReduce_Sum_f32_LL4Args@12 2000 500
		kernel 2 2 _Z34ncclDevKernel_AllReduce_Sum_f32_LL4Args@12 2000 500
	END
done
merge rank0.xtr rank1.xtr -q --sqlite ranks.db
python3 - <<END
import sqlite3
for row in sqlite3.connect("ranks.db").execute(
        "SELECT c.process_id, c.stream, p.text FROM collectives c JOIN path p ON p.id = c.path_id "
        "ORDER BY 1, 2"):
    print(row)
END
