# SPDX-License-Identifier: Apache-2.0
# Accepts any path of a directory. Prints a reason for each refusal.
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
# Simulates a kill before the new directory exists.
mv xtrace.data xtrace.data.previous
"$xtrace" report --text xtrace.data/ >/dev/null
ls
# A symbolic link stays. The recording goes to its target.
ln -s xtrace.data link
for tokens in 3 4; do
	"$xtrace" record -o link --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
grep -o '"--tokens".*' link/info.json xtrace.data.old/info.json
ls
# Simulates an interrupted removal of DIR.previous or DIR.old.
rm -r xtrace.data.old
mkdir xtrace.data.previous xtrace.data.old
status "$xtrace" record --simulate "$sample" --tokens 5 2>/dev/null | tail -n 1
grep -o '"--tokens".*' xtrace.data/info.json xtrace.data.old/info.json
# xtrace report locks the directory briefly.
flock xtrace.data/info.json sh -c 'touch held; sleep 0.2' &
for i in $(seq 200); do
	[ ! -e held ] || break
	sleep 0.02
done
status "$xtrace" record --simulate "$sample" --tokens 6 2>/dev/null | tail -n 1
wait
rm held
# The name is too long for the suffixes.
long=$(printf '%0253d' 0)
status "$xtrace" record -o "$long" --simulate "$sample" --tokens 7 2>/dev/null | tail -n 1
status "$xtrace" record -o "$long" true
ls | sed 's/0\{253\}/LONG/'
