#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the house rules that a script can check. Prints every breach. Exit status 1 if there are
# any. --format also compares the C files with .clang-format, if clang-format is installed.
set -eu
cd "$(dirname "$0")/.."

lines_max=650
breaches=$(mktemp)
files=$(mktemp)
trap 'rm -f "$breaches" "$files"' EXIT

breach() {
	echo "$1" >>"$breaches"
}

find CMakeLists.txt .ci .github cmake include src tools samples bench tests docs README.md CHANGELOG.md \
	-type f ! -path '*/traces/*' ! -path '*/expected/*' ! -path '*/__pycache__/*' \
	2>/dev/null | sort >"$files"

# The two halves meet only in include/ and src/log.
grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](.*/)?merge/' -r src/inject >>"$breaches" || true
grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](.*/)?inject/' -r src/merge >>"$breaches" || true

# The rooms of the merge stand on each other: each uses those below it. (exporter.h and reading.h, which
# all share, stand beside them.)
above=
for room in export findings profile sums naming symbolize read base; do
	[ -z "$above" ] || grep -nE "^#include \"merge/($above)/" -r "src/merge/$room" >>"$breaches" || true
	above=${above:+$above|}$room
done

# The folders of the injected library are layers, lowest first: see src/inject/CMakeLists.txt.
above=
for layer in lifecycle writer nvtx capture cupti python unwind memory runtime; do
	[ -z "$above" ] || grep -nE "^#include \"inject/($above)/" -r "src/inject/$layer" >>"$breaches" || true
	above=${above:+$above|}$layer
done

# Comparing knows of runs by their profiles alone.
grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](.*/)?(merge|inject)/' -r src/diff >>"$breaches" || true

# Every source file names its licence in one line near the top.
grep -E '(\.(c|h|cu|py|sh|cmake|yml|def)|CMakeLists\.txt|/run|/xtrace-dump)$' "$files" |
	while read -r file; do
		head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
			breach "$file: no SPDX line in the first three"
	done

# A reader can take in a file of this length. The dumper is exempt: it is one file, so that it can
# be copied anywhere.
grep -E '\.(c|h|cu|py|sh|def)$' "$files" | while read -r file; do
	lines=$(wc -l <"$file")
	[ "$lines" -le $lines_max ] || breach "$file: $lines lines, more than $lines_max"
done

# No path of a developer's machine.
xargs grep -nIE '(^|[^A-Za-z0-9_.])/([w]ork|[h]ome|[r]oot|[t]mp/xt)/' <"$files" >>"$breaches" || true

if [ "${1:-}" = --format ]; then
	if command -v clang-format >/dev/null; then
		grep -E '\.(c|h)$' "$files" | while read -r file; do
			clang-format "$file" | cmp -s - "$file" ||
				breach "$file: not formatted; run clang-format -i on it"
		done
	else
		echo "check-house: clang-format is not installed: formatting was not checked"
	fi
fi

if [ -s "$breaches" ]; then
	cat "$breaches"
	echo "check-house: $(wc -l <"$breaches") breaches of the house rules"
	exit 1
fi
echo "check-house: $(wc -l <"$files") files keep the house rules"
