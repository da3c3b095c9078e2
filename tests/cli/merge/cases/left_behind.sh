# SPDX-License-Identifier: Apache-2.0
# A merge that ends early, by a signal or a file size limit, leaves neither partial files nor a
# partial set of them. A replaced file keeps its permissions.
{
	for i in $(seq 200); do
		echo "stack s$i main a_function_whose_name_is_rather_long_$i cudaLaunchKernel"
		echo "call $i 1 cuLaunchKernel s$i $((i * 1000)) 10"
		echo "kernel $i 1 k $((i * 1000 + 20)) 100"
	done
} | make_log script paths.xtr
echo "-- a signal, while the last output waits for its reader"
mkfifo pipe
"$merge_program" -q paths.xtr --csv one --csv two --folded f --chrome c --perfetto p --pprof pp \
	--sqlite q --summary j --profile pr --text pipe &
pid=$!
while ! ls pr.tmp* >/dev/null 2>&1; do sleep 0.05; done
kill -TERM $pid
status=0
{ wait $pid || status=$?; } 2>/dev/null
echo "exit status $status"
ls
echo "-- files may not get larger"
(
	ulimit -f 16
	merge -q paths.xtr --chrome c --sqlite q --text -  >/dev/null
	merge -q paths.xtr --csv one
)
mkdir two
echo "kept" >two/idle.csv
(
	ulimit -f 16
	merge -q paths.xtr --csv two
)
cat two/idle.csv
ls
echo "-- what is replaced"
touch secret
chmod 600 secret
ln -s not_there dangling
merge paths.xtr --folded secret --text dangling
stat -c %a secret
test -L dangling && test -s not_there && echo "the link is as it was"
