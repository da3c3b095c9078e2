# SPDX-License-Identifier: Apache-2.0
# A recording without GPU work leaves the last traces that have some where they are, however often.
for tokens in 1 2; do
	"$xtrace" record --simulate "$sample" --tokens $tokens >/dev/null 2>&1
done
show() {
	grep -o '"--tokens".*' xtrace.data/info.json xtrace.data.old/info.json
	ls
}
"$xtrace" record true
"$xtrace" record true
show
status "$xtrace" record no-such-command
printf '#!/no-such-interpreter\n' >script
chmod +x script
status "$xtrace" record ./script
status "$xtrace" record ./script
rm script
show
# CUDA is initialised and nothing is launched: there is a log, but no work in it.
"$xtrace" record --simulate --paused "$sample" --tokens 3 >/dev/null
show
"$xtrace" report --text 2>/dev/null | sed -n 's/^ *launches  */launches /p'
# An empty recording where there was no trace stays, and makes way for the next.
"$xtrace" record -o other echo first
"$xtrace" record -o other echo second
grep -o '"echo".*' other/info.json
ls
status "$xtrace" report --text other
