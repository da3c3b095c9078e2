# SPDX-License-Identifier: Apache-2.0
# While a recording runs, the trace before it waits in DIR.previous. If xtrace is killed, neither
# is lost: the next recording or report decides.
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
show() {
	for trace in xtrace.data*; do
		echo "$trace:" $("$bin/xtrace-merge" --quiet --text - "$trace" 2>&1 |
			grep -E '^ +launches|no log')
	done
}
wait_for() {
	while [ ! -e "$1" ]; do
		sleep 0.02
	done
}
# Runs the command, and kills xtrace while the command still runs.
interrupt() {
	rm -f started go ended
	"$xtrace" record --simulate sh -c '"$@" >/dev/null 2>&1; touch started
		while [ ! -e go ]; do sleep 0.02; done; touch ended' sh "$@" &
	recording=$!
	wait_for started
	kill -KILL $recording
	wait $recording 2>/dev/null || true
}
interrupt true
show
touch go
wait_for ended
while [ -e xtrace.data.previous ]; do
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
# Killed between two steps.
mv xtrace.data xtrace.data.previous
"$xtrace" record true
mv xtrace.data xtrace.data.previous
mkdir xtrace.data
"$xtrace" record true
show
# A process that still runs may record later.
"$xtrace" record --simulate sh -c 'while [ ! -e later ]; do sleep 0.02; done
	"$1" --tokens 4 >/dev/null; touch recorded' sh "$sample" &
recording=$!
while [ ! -e xtrace.data.previous ]; do
	sleep 0.02
done
touch later
wait $recording
show
"$xtrace" record --simulate sh -c '(while [ ! -e much-later ]; do sleep 0.02; done
	"$1" --tokens 5; touch recorded-again) >/dev/null 2>&1 &' sh "$sample"
touch much-later
wait_for recorded-again
"$xtrace" report --text >/dev/null 2>&1 || true
show
