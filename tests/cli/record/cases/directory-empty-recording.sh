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
show
# CUDA is initialised but nothing is launched, so the log has no work.
"$xtrace" record --simulate --paused "$sample" --tokens 3 >/dev/null
show
"$xtrace" report --text --all 2>/dev/null | sed -n 's/^  *launches  */launches /p'
# If there was no trace, none is left, unless a process may still record into it.
"$xtrace" record -o other echo first
status "$xtrace" record -o other ./script
ls
mkdir other
"$xtrace" record -o other echo second
"$xtrace" record -o other echo third
ls
"$xtrace" record -o other sh -c 'sleep 100 & echo $! >pid'
ls
status "$xtrace" report --text other
kill "$(cat pid)"
