# SPDX-License-Identifier: Apache-2.0
# An older trace moves aside, in place of a still older one.
for tokens in 1 2 3; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
grep -o '"--tokens".*' xtrace.data/info.json xtrace.data.old/info.json
ls
