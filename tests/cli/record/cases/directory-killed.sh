# SPDX-License-Identifier: Apache-2.0
# A recording without work that is killed with its program does not replace an older trace.
trap 'kill -KILL $(cat pid 2>/dev/null) 2>/dev/null || true' EXIT
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
"$xtrace" record --simulate --paused sh -c 'echo $$ >pid; exec "$1" --tokens 1000000 --dim 64' \
	sh "$sample" >/dev/null 2>&1 &
recording=$!
for i in $(seq 200); do
	[ -z "$(find xtrace.data -name '*.spool' -size +0 2>/dev/null)" ] || break
	sleep 0.05
done
sleep 0.2
kill -KILL $recording "$(cat pid)"
wait $recording 2>/dev/null || true
for i in $(seq 200); do
	flock -n "$(echo xtrace.data/*.xtr)" true && break
	sleep 0.05
done
rm pid
ls
"$xtrace" record --simulate "$sample" --tokens 3 >/dev/null 2>&1
grep -o '"--tokens".*' xtrace.data/info.json xtrace.data.old/info.json
ls
