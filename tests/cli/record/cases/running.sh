# SPDX-License-Identifier: Apache-2.0
# Does not wait for a background process that records. Its log stays open, and a message says so.
"$xtrace" record --simulate sh -c '"$1" --tokens 1000000 --dim 64 >/dev/null & echo $! >pid
	while [ -z "$(find "$XTRACE_DATA" -name "*.xtr" -size +200k)" ]; do sleep 0.05; done' \
	sh "$sample" 2>said
kill -KILL "$(cat pid)" && echo "was still there"
sed -E 's/[0-9,]+ (launches|kernels)/SOME \1/g' said >&2
