# SPDX-License-Identifier: Apache-2.0
# An older trace that contains foreign files is not removed. Nothing is moved or run.
"$xtrace" record --simulate "$sample" --tokens 1 >/dev/null 2>&1
"$xtrace" record --simulate "$sample" --tokens 2 >/dev/null 2>&1
echo mine >xtrace.data.old/notes
status "$xtrace" record echo third
cat xtrace.data.old/notes
rm -r xtrace.data.old
mkdir -p xtrace.data.old/theirs
status "$xtrace" record echo third
grep -o '"--tokens".*' xtrace.data/info.json
