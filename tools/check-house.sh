#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rules of the house that a script can see. Prints every breach, ends with 1 if there are any.
# With --format also holds the C files against .clang-format, if clang-format is there.
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

# Comparing knows of runs by their profiles alone.
grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](.*/)?(merge|inject)/' -r src/diff >>"$breaches" || true

# Every source file says its licence in one line near the top.
grep -E '(\.(c|h|cu|py|sh|cmake|yml|def)|CMakeLists\.txt|/run|/xtrace-dump)$' "$files" |
	while read -r file; do
		head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
			breach "$file: no SPDX line in the first three"
	done

# A file is something that can be read at one go. The dumper is not in the list: one file by design,
# so that it can be copied anywhere.
grep -E '\.(c|h|cu|py|sh|def)$' "$files" | while read -r file; do
	lines=$(wc -l <"$file")
	[ "$lines" -le $lines_max ] || breach "$file: $lines lines, more than $lines_max"
done

# Nothing knows the machine it was written on.
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
