# SPDX-License-Identifier: Apache-2.0
# One merge process adds symbols to the logs of many processes and reads each binary once. The work
# for 12 logs is a small multiple of that for one.
LD_PRELOAD=$bin/../lib/libfork_count.so FORK_COUNT=$PWD/forks \
	"$xtrace" record --simulate sh -c 'for i in 1 2 3 4 5 6; do
	"$1" --tokens 1 >/dev/null
done' sh "$sample" 2>&1 | grep -o 'recorded 6 processes, 432 launches'
# One fork for the program and one for the merge.
wc -l <forks
for log in xtrace.data/*.xtr; do
	"$here/../../../tests/tools/xtrace-dump" --kind META "$log" | grep -c symbols.embedded
done | uniq -c | tr -s ' '
# Only xtrace record embeds symbols.
simulator=$bin/../lib/xtrace/simgpu
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	LD_LIBRARY_PATH=$simulator XTRACE_CUPTI=$simulator/libcupti.so XTRACE_DATA=$PWD/bare \
		CUDA_INJECTION64_PATH=$bin/../lib/libxtrace_inject.so \
		"$sample" --tokens 1 >/dev/null 2>&1
done
cp -r bare each
cp -r bare one-worker
/usr/bin/python3 - "$bin/xtrace-merge" <<'END'
import glob, resource, subprocess, sys

def cost(*arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.argv[1], "--quiet", "--embed-symbols", *arguments], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

singles = [cost(log) for log in sorted(glob.glob("each/*.xtr"))]
together = min(cost("bare"), cost("--jobs", "1", "one-worker"))
if together * 2 > sum(singles):
    print(f"{together:.3f} s for all, {sum(singles):.3f} s for each by itself")
END
for log in bare/*.xtr; do
	cmp "$log" "each/${log#*/}"
	cmp "$log" "one-worker/${log#*/}"
done
ls bare | wc -l
