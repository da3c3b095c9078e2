# SPDX-License-Identifier: Apache-2.0
# Moves the previous trace aside and replaces the one before it.
for tokens in 1 2 3; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
grep -o '"--tokens".*' xtrace.data/info.json xtrace.data.old/info.json
ls
