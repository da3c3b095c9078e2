# SPDX-License-Identifier: Apache-2.0
# A log without work is not called empty if it is damaged, cut off, or lacks what is in a spool.
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
show() {
	grep -o '"--tokens".*' xtrace.data*/info.json
}
name_logs() {
	sed -E 's|[^/ ]*\.[0-9]+\.xtr|HOST.PID.xtr|'
}
# Records nothing, and runs the command with the log as argument.
spoil() {
	"$xtrace" record --simulate --paused sh -c '"$1" --tokens 3 >/dev/null
		sh -c "$2" sh "$XTRACE_DATA"/*.xtr' sh "$sample" "$1" 2>&1 |
		grep -v ' launches\|no kernel was launched' | name_logs
}
spoil 'truncate -s -20 "$1"'
show
ls
spoil 'printf garbage | dd of="$1" bs=1 seek=500 conv=notrunc status=none'
ls
# The spool may hold work: keep both traces, and let the user decide.
rm -r xtrace.data
mv xtrace.data.old xtrace.data
"$xtrace" record --simulate "$sample" --tokens 4 >/dev/null 2>&1
spoil 'echo garbage >"$1.spool"'
ls
status "$xtrace" record --simulate "$sample" --tokens 5 2>&1 | name_logs
ls
rm xtrace.data/*.spool
"$xtrace" record --simulate "$sample" --tokens 5 >/dev/null 2>&1
show | grep -v previous | tail -n 1
ls
