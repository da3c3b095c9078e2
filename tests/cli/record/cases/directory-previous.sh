# SPDX-License-Identifier: Apache-2.0
# During a recording, the previous trace is in DIR.previous. If xtrace is killed, both are kept. The
# next recording or report decides which one stays.
wait_for() {
	for i in $(seq 500); do
		[ ! -e "$1" ] || return 0
		sleep 0.02
	done
	echo "$1 did not appear"
	return 1
}
# The same for the traced programs, which must end soon after a failed test.
wait_here='wait_for() {
	for i in $(seq 500); do [ ! -e "$1" ] || break; sleep 0.02; done
}; '
recording=
trap 'touch go later; [ -z "$recording" ] || kill -KILL $recording 2>/dev/null || true' EXIT
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
show() {
	for trace in xtrace.data*; do
		echo "$trace:" $("$bin/xtrace-merge" --quiet --text - --all "$trace" 2>&1 |
			grep -E '^ +launches +[0-9]|no log|is empty')
	done
}
# Runs the command and kills xtrace meanwhile.
interrupt() {
	rm -f started go ended
	"$xtrace" record --simulate sh -c "$wait_here"'"$@" >/dev/null 2>&1; touch started
		wait_for go; touch ended' sh "$@" &
	recording=$!
	wait_for started
	kill -KILL $recording
	wait $recording 2>/dev/null || true
	recording=
}
interrupt true
show
touch go
wait_for ended
for i in $(seq 100); do
	[ -e xtrace.data.previous ] || break
	"$xtrace" report --text >/dev/null 2>&1 || true
done
echo "an empty recording was interrupted"
show
interrupt "$sample" --tokens 3
touch go
wait_for ended
echo "a recording with work was interrupted"
show
"$xtrace" record true
show
# Simulates a kill between two steps.
mv xtrace.data xtrace.data.previous
"$xtrace" record true
mv xtrace.data xtrace.data.previous
mkdir xtrace.data
"$xtrace" record true
show
# A background process may start to record later. DIR.previous stays until it ends.
"$xtrace" record --simulate sh -c '('"$wait_here"'wait_for later
	"$1" --tokens 4; touch recorded) >/dev/null 2>&1 &' sh "$sample"
show
touch later
wait_for recorded
"$xtrace" report --text >/dev/null 2>&1 || true
show
