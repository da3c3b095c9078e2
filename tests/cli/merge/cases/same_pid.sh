# SPDX-License-Identifier: Apache-2.0
# Processes are distinguished by identity, not by host and pid. Logs of one identity count as one.
log() {
	make_log script "$1.xtr" <<-END
		stack step main step cudaLaunchKernel
		call 1 1 cuLaunchKernel step 100 10
		kernel 1 1 $1 200 5
		call 2 1 cuLaunchKernel step 300 10
		kernel 2 1 $1 400 5
		${2:+meta process.identity $2}
		${3:+meta process.pid_namespace $3}
	END
}
labels() {
	echo "$@"
	"$merge_program" -q --summary - "$@" | /usr/bin/python3 -c '
import json, sys
for process in json.load(sys.stdin)["processes"]:
    print("   ", process["label"], process["identity"], process["pid_namespace"])'
}
log a 00000000000000000000000000000001 4026530001
log b 00000000000000000000000000000002 4026530002
log c 00000000000000000000000000000003 4026530002
log more_of_c 00000000000000000000000000000003 4026530002
log unknown
log other
labels a.xtr
labels a.xtr b.xtr
labels b.xtr c.xtr
labels c.xtr more_of_c.xtr
labels a.xtr b.xtr c.xtr more_of_c.xtr
labels unknown.xtr other.xtr
labels a.xtr unknown.xtr
# Both are in every output.
merge -q a.xtr b.xtr --folded - --by process
merge -q c.xtr more_of_c.xtr --folded - --by process
merge -q a.xtr b.xtr --by process --chrome chrome.json --csv csv --sqlite data.db \
	--perfetto trace --pprof profile.gz --text text --all
gunzip -c profile.gz >profile
for output in chrome.json csv/paths.csv trace profile text; do
	echo "$output: $(grep -aoE 'chat \(4321, pid ns [0-9]+\)' $output | sort -u | wc -l)"
done
/usr/bin/python3 -c '
import sqlite3
print(sqlite3.connect("data.db").execute("SELECT pid, label FROM process ORDER BY label").fetchall())'
