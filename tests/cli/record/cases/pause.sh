# SPDX-License-Identifier: Apache-2.0
# Starts paused, starts by directory and stops by process, under other names. A recording that is
# killed during a pause also lacks the paused events. A stopped process does not confirm a request.
dump=$here/../../../tests/tools/xtrace-dump
switches() {
	while [ "$("$dump" --kind SWITCH xtrace.data/*.xtr | grep -c '^SWITCH')" -lt "$1" ]; do
		sleep 0.05
	done
}
"$xtrace" record --simulate --paused "$sample" --layers 1 --dim 64 --tokens 10
"$dump" --kernels-total xtrace.data/*.xtr | cut -d' ' -f1,2
"$dump" --kind ACCOUNT xtrace.data/*.xtr | grep -oE 'name=(calls.seen|kernels.written).value=[0-9]*' | sort -u
"$dump" --check xtrace.data/*.xtr >/dev/null && echo good
status "$xtrace" pause
status "$xtrace" resume nowhere
status "$xtrace" pause a b
status "$xtrace" resume --fast
"$xtrace" record --simulate --paused sh -c '"$1" --tokens 1000000 --dim 64 >/dev/null & echo $! >pid
	while [ -z "$(find "$XTRACE_DATA" -name "*.xtr.spool")" ]; do sleep 0.05; done' sh "$sample" \
	2>/dev/null
status "$xtrace" resume 2>/dev/null
switches 2
status "$xtrace" pause "$(cat pid)" 2>/dev/null
switches 3
"$dump" --kind SWITCH xtrace.data/*.xtr | sed -n 's,^SWITCH.*[[:space:]]\(on=[01]\).*,\1,p'
kill -STOP "$(cat pid)"
status "$xtrace" resume 2>said
grep -c "is it stopped by a signal" said
status "$xtrace" pause "$(cat pid)" 2>said
kill -CONT "$(cat pid)"
status "$xtrace" pause 2>/dev/null
sleep 0.2
kill -KILL "$(cat pid)"
while kill -0 "$(cat pid)" 2>/dev/null; do sleep 0.05; done
status "$bin/xtrace-merge" --quiet --text summary --all xtrace.data
grep -c "unattributed" summary || true
"$dump" --check xtrace.data/*.xtr | grep -o good
"$dump" --kind ACCOUNT xtrace.data/*.xtr | grep 'records.skipped' | tail -n 1 | grep -cE 'value=[1-9]'
