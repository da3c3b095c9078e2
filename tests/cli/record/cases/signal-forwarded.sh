# SPDX-License-Identifier: Apache-2.0
# xtrace forwards SIGTERM to the program, which may handle it.
"$xtrace" record sh -c 'trap "echo got it; exit 5" TERM; touch ready; while :; do sleep 0.05; done' &
pid=$!
while [ ! -e ready ]; do
	sleep 0.05
done
kill -TERM $pid
status wait $pid
