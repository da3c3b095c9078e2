# SPDX-License-Identifier: Apache-2.0
# xtrace report compares two runs, and shows the parts of a job together.
"$xtrace" record --simulate -o a -- "$sample" --tokens 2 --layers 2 >/dev/null 2>&1
"$xtrace" record --simulate -o b -- "$sample" --tokens 2 --layers 3 >/dev/null 2>&1
for rank in 0 1; do
	RANK=$rank WORLD_SIZE=2 "$xtrace" record --simulate -o "rank$rank" -- "$sample" --tokens 2 \
		>/dev/null 2>&1
done
COLUMNS=80
export COLUMNS
# Prints which way the inputs are shown.
way() {
	echo "$1"
	shift
	code=0
	"$xtrace" report "$@" >out || code=$?
	if grep -q 'One run each: noise unknown' out; then
		echo "  compared, status $code"
	else
		echo "  together, status $code"
	fi
}
way "two recordings" --text a b
way "two logs" --text a/*.xtr b/*.xtr
way "two recordings in Markdown" --brief a b
way "one recording twice" --text a a
way "two recordings, but --together" --text --together a b
way "two ranks" --text rank0 rank1
way "two ranks, but --compare" --text --compare rank0 rank1
way "a rank and no rank" --text a rank0
way "three recordings" --text a b rank0
way "one that does not exist" --text a nowhere
status "$xtrace" report --text --compare a
status "$xtrace" report --text --compare a b a
status "$xtrace" report --text --compare --together a b
status "$xtrace" report -n rank0 rank1
# By default, five rows of a table are shown. No line is wider than the terminal.
"$xtrace" report --text a b >some
"$xtrace" report --text --all a b >all
awk 'length > 80' some all
sed -n '/^Headline/,/^$/p' some | cut -c 48- | grep .
grep -q 'use --all' some && ! grep -q 'use --all' all
grep -q rope_kernel all && [ "$(wc -l <some)" -lt "$(wc -l <all)" ]
[ "$("$xtrace" report --text --top 1 a b | wc -l)" -lt "$(wc -l <some)" ]
grep -A1 ' matmul_kernel' all | sed 's/^ .* ms .*us .*  / /; s/,.*//'
# Paths and arguments are private.
mkdir secret-folder
mv a b secret-folder
"$xtrace" report --text --all --redact secret-folder/a secret-folder/b >out
! grep -q 'secret-folder\|--layers' out
mv secret-folder/* .
# The page is that of the second run, and has the summary of the first one.
if "$bin/xtrace-merge" a --html probe.html 2>/dev/null; then
	status "$xtrace" report -n a b --html-size 1M
	grep -c 'id="xtrace-base"' b/report.html
	"$xtrace" report -n a/*.xtr b/*.xtr | sed 's|b/.*|b/LOG.html|'
else
	printf 'file://CWD/b/report.html\nstatus 0\n1\nfile://CWD/b/LOG.html\n'
fi
