# SPDX-License-Identifier: Apache-2.0
# A closed log is complete only if it has an account, and if that equals its rows.
rows="stack launch main cudaLaunchKernel
	call 1 1 cuLaunchKernel launch 100 10
	kernel 1 1 k 150 10"
echo "$rows" | make_log script right.xtr
merge right.xtr --folded -
echo "-- no account"
printf '%s\naccount calls.seen 1\n' "$rows" | make_log script absent.xtr
merge absent.xtr --folded -
merge absent.xtr --quiet --text - --all | grep '^Trust'
echo "-- rows that were added after the last account"
printf '%s\naccount calls.written 0\naccount kernels.written 1\n' "$rows" | make_log script older.xtr
merge older.xtr --folded -
echo "-- rows that are gone"
printf '%s\naccount calls.written 2\naccount kernels.written 1\n' "$rows" | make_log script gone.xtr
merge gone.xtr --folded -
merge gone.xtr --quiet --text - --all | grep '^Trust'
echo "-- an unclosed log does not become a closed one by its symbols"
size=$(wc -c <right.xtr)
truncate -s $((size - 45)) right.xtr
merge right.xtr --embed-symbols
merge right.xtr --quiet --text - --all | grep '^Trust'
echo "-- calls that were seen and never heard of again"
printf '%s\naccount calls.seen 9\naccount calls.written 1\naccount kernels.written 1\n' "$rows" | make_log script seen.xtr
merge seen.xtr --folded -
merge seen.xtr --quiet --text - --all | grep '^Trust'
