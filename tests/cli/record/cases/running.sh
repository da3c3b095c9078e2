# SPDX-License-Identifier: Apache-2.0
# A process that runs on is not waited for, its log is left alone, and xtrace says so.
"$xtrace" record --simulate sh -c '"$1" --tokens 1000000 --dim 64 >/dev/null & echo $! >pid
	while [ -z "$(find "$XTRACE_DATA" -name "*.xtr" -size +200k)" ]; do sleep 0.05; done' \
	sh "$sample" 2>said
kill -KILL "$(cat pid)" && echo "was still there"
sed -E 's/[0-9,]+ (launches|kernels)/SOME \1/g' said >&2
