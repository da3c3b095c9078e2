# SPDX-License-Identifier: Apache-2.0
# xtrace report writes a page beside the input, or text.
status "$xtrace" help report
status "$xtrace" report --text -o page.html
status "$xtrace" report -o
status "$xtrace" report --text nowhere
status "$xtrace" report --text
# A long command is shortened, and the build may have a long path.
ln -s "$sample" sample
"$xtrace" record --simulate -- ./sample --tokens 2 >/dev/null 2>&1
"$xtrace" report --text --all --top 1 | sed -n '1p; /^GPU time by frame/p' | sed -E 's/[0-9.]+ %/SHARE/'
# Without node this build has no page. Then print what a build with a page prints.
mv xtrace.data data
if "$bin/xtrace-merge" data --html probe.html 2>/dev/null; then
	status "$xtrace" report data
	status "$xtrace" report --no-open data/*.xtr -o page.html
	grep -c 'id="xtrace-data"' data/report.html page.html
else
	printf 'file://CWD/data/report.html\nstatus 0\nfile://CWD/page.html\nstatus 0\n'
	printf 'data/report.html:1\npage.html:1\n'
fi
# A build without the page prints the text, and why.
"$xtrace" report --text data >text
"$bin/xtrace_without_page" report data | cmp - text
"$bin/xtrace_without_page" report --text data | cmp - text
# Requires --output for several inputs. Values of options are not inputs.
mkdir logs folder
cp data/*.xtr logs/one.xtr
status "$xtrace" report -n logs/one.xtr data
"$bin/xtrace-merge" --help | sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+)( ?[A-Za-z=|-]*).*/\2\3/p' >options
[ "$(wc -l <options)" -gt 30 ] || echo "the help is not understood"
while read -r option value; do
	case $option in --help | --completion | --version | --text | --all) continue ;; esac
	[ -n "$value" ] || cp logs/one.xtr folder
	"$xtrace" report -n "$option" folder ${value:+logs/one.xtr} >/dev/null 2>&1 || :
	if [ -n "$value" ] && [ -e folder/report.html ]; then
		echo "the page is in the value of $option"
	elif [ -z "$value" ] && [ -e probe.html ] && [ ! -e folder/report.html ]; then
		echo "$option takes no value"
	fi
	rm -rf folder
	mkdir folder
done <options
rm -r folder logs
# A report in a trace directory does not prevent its replacement.
[ -e data/report.html ] || touch data/report.html
mv data xtrace.data.old
"$xtrace" record --simulate -- "$sample" --tokens 2 >/dev/null 2>&1
status "$xtrace" record --simulate -- "$sample" --tokens 2 >/dev/null 2>&1
ls xtrace.data.old | sed 's/.*\.xtr/LOG/'
