# SPDX-License-Identifier: Apache-2.0
# A background process continues to write to its log. The directory stays reserved until it ends,
# and is not removed after it was moved.
"$xtrace" record --simulate sh -c '"$1" --tokens 1000000 --dim 64 >/dev/null & echo $! >pid
	while [ -z "$(find "$XTRACE_DATA" -name "*.xtr" -size +100k)" ]; do sleep 0.05; done' \
	sh "$sample" 2>/dev/null
name_logs() {
	sed -E 's|[^/ ]*\.[0-9]+\.xtr|HOST.PID.xtr|'
}
status "$xtrace" record echo second 2>&1 | name_logs
mv xtrace.data xtrace.data.old
"$xtrace" record --simulate "$sample" --tokens 3 >/dev/null 2>&1
status "$xtrace" record echo fourth 2>&1 | name_logs
kill -KILL "$(cat pid)"
while ! flock -n xtrace.data.old/*.xtr true; do
	sleep 0.05
done
status "$xtrace" record --simulate "$sample" --tokens 5 2>/dev/null | tail -n 1
grep -o '"--tokens".*' xtrace.data/info.json xtrace.data.old/info.json
