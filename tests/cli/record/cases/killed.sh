# SPDX-License-Identifier: Apache-2.0
# A process that is killed leaves what it recorded until then, and xtrace says so. How much that is
# differs from run to run.
status "$xtrace" record --simulate timeout -s KILL 1 "$sample" --tokens 1000000 --dim 64 2>said
sed -E 's/[0-9,]+ (launches|kernels)/SOME \1/g' said >&2
"$bin/xtrace-merge" --quiet --summary - >summary || echo "merge gives $?"
grep -q "main;run;converse;chat;decode" summary && echo "its call paths are there"
