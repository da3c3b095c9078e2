# SPDX-License-Identifier: Apache-2.0
# A log without work does not count as empty if it is damaged, truncated, or has a crash buffer.
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
show() {
	grep -o '"--tokens".*' xtrace.data*/info.json
}
name_logs() {
	sed -E 's|[^/ ]*\.[0-9]+\.xtr|HOST.PID.xtr|'
}
# Makes an empty recording, then runs the command with its log.
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
# The crash buffer may contain work: keep both traces and let the user decide.
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
