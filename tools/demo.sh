#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs everything once: installs missing packages, builds without tests, records a sample program,
# and writes a page that shows what cost the most GPU time. Uses the simulated GPU if there is no
# other. Leaves demo.html, demo.trace.json, demo.folded and xtrace.data/ in DIR (default: demo-out).
set -eu

out=${1:-demo-out}
if [ $# -gt 1 ] || [ "${out#-}" != "$out" ]; then
	echo "usage: tools/demo.sh [DIR]" >&2
	exit 2
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
# The shown commands can be pasted: relative paths if called from the top of the tree, else
# absolute.
out_shown=$out
cd "$(dirname "$0")/.."
# A folder of its own: build/ is configured with tests.
build="build-demo"
bin_shown=$PWD/$build/bin
case $0 in
tools/demo.sh | ./tools/demo.sh)
	out_shown=${out#"$PWD"/}
	bin_shown=$build/bin
	;;
esac
quoted() {
	case $1 in
	*[!A-Za-z0-9_@%+=:,./-]*) printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
	*) printf %s "$1" ;;
	esac
}
out_shown=$(quoted "$out_shown")
bin_shown=$(quoted "$bin_shown")

say() {
	printf '\n== %s\n' "$1"
}

say "Dependencies"
tools/install-deps.sh

fail() {
	echo "demo: $*" >&2
	exit 1
}

# Replaces ninja's line for each target by one for each tenth of them. Other lines go to the log
# alone.
show_progress() {
	shown=0
	while IFS= read -r line; do
		case $line in
		\[[0-9]*/[0-9][0-9]*\]\ *)
			number=${line%%/*} total=${line#*/}
			number=${number#\[} total=${total%%\]*}
			tenth=$((number * 10 / total))
			if [ $tenth -gt $shown ]; then
				shown=$tenth
				echo "built $number of $total targets"
			fi
			;;
		esac
		printf '%s\n' "$line" >>$build/demo.log
	done
}

say "Build"
mkdir -p $build
echo "configuring, and fetching the packages of the HTML page from npm's registry"
cmake --preset release -B $build -DBUILD_TESTING=OFF >$build/demo.log 2>&1 || {
	cat $build/demo.log >&2
	fail "cannot configure the build"
}
if grep -q 'HTML report: \(not built\|disabled\)' $build/demo.log; then
	sed -n '/HTML report: \(not built\|disabled\)/,/^$/p' $build/demo.log >&2
	fail "cannot build the HTML page. If npm failed, make its registry reachable" \
		"(npm config get registry) and call this again; to build without the page, see" \
		"docs/INSTALL.md#build"
fi
if [ -t 1 ]; then
	cmake --build $build || fail "cannot build xtrace"
else
	rm -f $build/demo.failed $build/demo.log
	{ cmake --build $build 2>&1 || touch $build/demo.failed; } | show_progress
	if [ -e $build/demo.failed ]; then
		grep -v '^\[' $build/demo.log | tail -n 50 >&2
		fail "cannot build xtrace, see $build/demo.log"
	fi
fi
echo "built: $build/bin/xtrace, $build/lib/libxtrace_inject.so"

sample=$build/bin/samples/llm_inference
simulate=
if ! $sample --layers 1 --tokens 1 >/dev/null 2>&1; then
	simulate=--simulate
fi

say "Record"
if [ -n "$simulate" ]; then
	echo "There is no GPU here: this runs on the simulated GPU, its times are made up."
fi
set -- $sample --streams 2 --layers 4 --tokens 64
echo "$bin_shown/xtrace record ${simulate:+$simulate }-o $out_shown/xtrace.data $*"
$build/bin/xtrace record $simulate -o "$out/xtrace.data" "$@"

say "Report"
$build/bin/xtrace merge --quiet "$out/xtrace.data" --folded "$out/demo.folded" \
	--chrome "$out/demo.trace.json"
page=$($build/bin/xtrace report --quiet --no-open -o "$out/demo.html" "$out/xtrace.data")
# The headline is the first paragraph.
$build/bin/xtrace report --quiet --text "$out/xtrace.data" | sed -n '1,/^$/p' | sed '$d'
cat <<END

To look further
  timeline      open $out_shown/demo.trace.json in https://ui.perfetto.dev
  flame graph   drop $out_shown/demo.folded on https://www.speedscope.app
  all tables    $bin_shown/xtrace report --text --all $out_shown/xtrace.data
  your program  $bin_shown/xtrace record ${simulate:+--simulate }-- COMMAND, then $bin_shown/xtrace report

Open this page in a browser:
$page
END
