# SPDX-License-Identifier: Apache-2.0
# A directory may be given by any of its names. Each refusal has a message.
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
# xtrace was killed before it made the new directory.
mv xtrace.data xtrace.data.previous
"$xtrace" report --text xtrace.data/ >/dev/null
ls
# A symlink stays, and its target is recorded into.
ln -s xtrace.data link
for tokens in 3 4; do
	"$xtrace" record -o link --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
grep -o '"--tokens".*' link/info.json xtrace.data.old/info.json
ls
# The removal of DIR.previous or DIR.old was interrupted.
rm -r xtrace.data.old
mkdir xtrace.data.previous xtrace.data.old
status "$xtrace" record --simulate "$sample" --tokens 5 2>/dev/null | tail -n 1
grep -o '"--tokens".*' xtrace.data/info.json xtrace.data.old/info.json
# xtrace report holds the directory for a moment.
flock xtrace.data/info.json sh -c 'touch held; sleep 0.2' &
for i in $(seq 200); do
	[ ! -e held ] || break
	sleep 0.02
done
status "$xtrace" record --simulate "$sample" --tokens 6 2>/dev/null | tail -n 1
wait
rm held
# No room for the suffixes.
long=$(printf '%0253d' 0)
status "$xtrace" record -o "$long" true 2>/dev/null
status "$xtrace" record -o "$long" true
ls | sed 's/0\{253\}/LONG/'
