# SPDX-License-Identifier: Apache-2.0
# Rejects wrong usage with a hint on stderr. Runs and creates nothing.
status "$xtrace"
status "$xtrace" recrod true
status "$xtrace" --record
status "$xtrace" help recrod
status "$xtrace" help record more
status "$xtrace" version now
status "$xtrace" record
status "$xtrace" record --
status "$xtrace" record --simulat0r echo ran
status "$xtrace" record -x echo ran
status "$xtrace" record -o
status "$xtrace" record -o '' echo ran
# Options and triggers of earlier versions.
status "$xtrace" record --duty 1s/60s echo ran
status "$xtrace" attach --duty=1s/60s 1
status "$xtrace" record --max-overhead 2 echo ran
status "$xtrace" record --snapshot-on 'error,idle>2s' echo ran
status "$xtrace" record --snapshot-on 'iteration:step>3x' echo ran
ls
# Commands of other tools, a program without "record", and xtrace-merge.
for command in stats flamegraph view show info profile trace run compare rec python3 no-such-thing; do
	status "$xtrace" $command
done
status "$xtrace" export --folde
status "$xtrace" merge --foldedd x
status "$bin/xtrace-merge" record
