# SPDX-License-Identifier: Apache-2.0
# Two processes with the same host name and pid, as in containers, remain separate. This also holds
# if one is killed and its log is recovered.
unshare -fp true 2>/dev/null || {
	echo "pid namespaces cannot be made here" >&2
	exit 77
}
identity() {
	"$here/../../../tests/tools/xtrace-dump" --kind META "$1" |
		sed -nE 's/.*key=process.identity\tvalue=([0-9a-f]{32})$/\1/p'
}
"$xtrace" record --simulate sh -c 'unshare -fp "$1" --tokens 1 >/dev/null
	unshare -fp "$1" --tokens 1000000 --dim 64 >/dev/null &
	while [ -z "$(find "$XTRACE_DATA" -name "*.xtr" -size +100k)" ]; do sleep 0.05; done
	cp "$(find "$XTRACE_DATA" -name "*.xtr" -size +100k)" before-the-kill
	kill -KILL $(pgrep -P $!); wait' sh "$sample" 2>&1 | grep -v ':.* launches\|unshare' >&2
for log in xtrace.data/*.xtr; do
	identity "$log"
done | sort -u | wc -l
killed=$(find xtrace.data -name '*.xtr' -size +100k)
[ "$(identity before-the-kill)" = "$(identity "$killed")" ] && echo "the identity is kept"
"$here/../../../tests/tools/xtrace-dump" --kind ACCOUNT "$killed" | grep -c name=recovered.calls
# The kernel may give the second namespace the number of the first one, so xtrace counts them.
"$bin/xtrace-merge" --quiet --folded - --by process | cut -d ';' -f 1 | sort -u |
	sed -E 's/(pid ns [0-9]+|#[12])\)$/pid ns N)/'
