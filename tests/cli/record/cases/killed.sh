# SPDX-License-Identifier: Apache-2.0
# The recording of a killed process has all events up to then, and a message says that it was
# killed. The number of events differs between runs.
"$xtrace" record --simulate "$sample" --tokens 1000000 --dim 64 2>said &
recording=$!
while [ -z "$(find xtrace.data -name '*.xtr' -size +200k 2>/dev/null)" ]; do
	sleep 0.05
done
kill -KILL "$(ls xtrace.data | sed -n 's/.*\.\([0-9]*\)\.xtr$/\1/p')"
status wait $recording
sed -E "s/[0-9,]+ (launches|kernels|lost)/SOME \\1/g" said >&2
names=$("$here/../../../tests/tools/xtrace-dump" --kind ACCOUNT xtrace.data/*.xtr | sed -nE 's/.*name=([^[:space:]]*).*/\1/p')
echo "$names" | grep -c '^recovered\.calls$'
for name in $names; do
	grep -qF "\"$name\"" "$here/../../../include/xtrace/account.h" || echo "$name is in no list"
done
# Status 1 if a kernel had no end time.
"$bin/xtrace-merge" --quiet --text - --all >summary || [ $? = 1 ] || echo "merge gives $?"
grep -q "main;run;converse;chat;decode" summary && echo "its call paths are there"
