#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs everything once: installs missing packages, builds, records a sample program, merges, and
# shows what cost the most GPU time. Uses the simulated GPU if there is no other. Leaves
# xtrace.data/, demo.folded and demo.trace.json in DIR.
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
bin_shown=$PWD/build/bin
case $0 in
tools/demo.sh | ./tools/demo.sh)
	out_shown=${out#"$PWD"/}
	bin_shown=build/bin
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

say "Build"
mkdir -p build
if ! { cmake --preset release && cmake --build build; } >build/demo.log 2>&1; then
	cat build/demo.log
	exit 1
fi
echo "built: build/bin/xtrace, build/lib/libxtrace_inject.so"

sample=build/bin/samples/llm_inference
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
build/bin/xtrace record $simulate -o "$out/xtrace.data" "$@"

say "Merge"
build/bin/xtrace-merge "$out/xtrace.data" --folded "$out/demo.folded" --chrome "$out/demo.trace.json"
echo "wrote $out_shown/demo.folded and $out_shown/demo.trace.json"
# Without node, the build has no report.
report=
if build/bin/xtrace report --no-open -o "$out/demo.html" "$out/xtrace.data" >/dev/null 2>&1; then
	report=yes
	echo "wrote $out_shown/demo.html"
fi

say "Where the GPU's time went${simulate:+ (simulated GPU)}"
build/bin/xtrace-merge "$out/xtrace.data"

say "To look further"
cat <<END
${report:+  report        open $out_shown/demo.html in a browser
}  timeline      open $out_shown/demo.trace.json in https://ui.perfetto.dev or chrome://tracing
  flame graph   flamegraph.pl --countname ns $out_shown/demo.folded > demo.svg
                (or inferno-flamegraph, or drop demo.folded on https://www.speedscope.app)
  summary       $bin_shown/xtrace report --text $out_shown/xtrace.data
  your program  $bin_shown/xtrace record ${simulate:+--simulate }-- COMMAND, then $bin_shown/xtrace report
END
