# SPDX-License-Identifier: Apache-2.0
# Recordings without GPU work do not replace the last trace that has some.
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
# CUDA is initialised but nothing is launched, so the log has no work.
"$xtrace" record --simulate --paused "$sample" --tokens 3 >/dev/null
show
"$xtrace" report --text 2>/dev/null | sed -n 's/^  *launches  */launches /p'
# If there was no trace, an empty recording stays until the next one.
"$xtrace" record -o other echo first
"$xtrace" record -o other echo second
grep -o '"echo".*' other/info.json
ls
status "$xtrace" report --text other
