#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the house rules that a script can check. Prints every breach. Exit status 1 if there are
# any. --format also compares the C files with .clang-format, if clang-format is installed.
set -eu
cd "$(dirname "$0")/.."

lines_max=1000
lines_of_all_max=$(cat .ci/line-budget)
root=".ci .clang-format .github .gitignore CHANGELOG.md CMakeLists.txt CMakePresets.json
	CONTRIBUTING.md LICENSE README.md bench cmake docs include samples src tests tools"
breaches=$(mktemp)
files=$(mktemp)
output=$(mktemp)
trap 'rm -f "$breaches" "$files" "$output"' EXIT

breach() {
	echo "$1" >>"$breaches"
}

find CMakeLists.txt .ci .github cmake include src tools samples bench tests docs README.md \
	CONTRIBUTING.md CHANGELOG.md \
	-type f ! -path '*/traces/*' ! -path '*/expected/*' ! -path '*/__pycache__/*' \
	2>/dev/null | sort >"$files"

# No circles between source files, and no use of a folder in a layer above.
tools/check-cycles.py >"$output" || cat "$output" >>"$breaches"

# No structure that several folders share is large.
tools/check-structures.py >"$output" || cat "$output" >>"$breaches"

# No function name that says nothing because many files have it.
tools/check-names.py >"$output" || cat "$output" >>"$breaches"

# Every source file names its licence in one line near the top.
grep -E '(\.(c|h|cu|py|sh|cmake|yml|def)|CMakeLists\.txt|/run|/xtrace-dump)$' "$files" |
	xargs awk '
		FNR == 1 { seen[FILENAME] = 0 }
		FNR <= 3 && /SPDX-License-Identifier: Apache-2.0/ { seen[FILENAME] = 1 }
		FNR > 3 { nextfile }
		END { for (name in seen) if (!seen[name]) print name ": no SPDX line in the first three" }
	' >>"$breaches"

# A reader can take in a file of this length. The dumper is exempt: it is one file, so that it can
# be copied anywhere.
grep -E '\.(c|h|cu|py|sh|def)$' "$files" | xargs wc -l |
	awk -v max=$lines_max '$2 != "total" && $1 > max { print $2 ": " $1 " lines, more than " max }' \
		>>"$breaches"

# All code but tests: it grows only if somebody decides so. PTX in headers is generated.
lines=$(grep -E '^(src|include|tools|bench|samples)/.*\.(c|h|S|ts|tsx|css)$' "$files" |
	grep -v 'ptx\.h$' | tr '\n' '\0' | xargs -0 cat | wc -l)
[ "$lines" -le "$lines_of_all_max" ] ||
	breach "$lines lines of code, more than the $lines_of_all_max of .ci/line-budget"

# Files that a mistyped command left in the root. A release without git has no tracked files.
if [ -e .git ] && command -v git >/dev/null; then
	git -c safe.directory='*' ls-files >"$output" || breach "git cannot list the tracked files"
	for entry in $(cut -d / -f 1 "$output" | sort -u); do
		case " $(echo $root) " in
		*" $entry "*) ;;
		*) breach "$entry: not on the list of files in the root (tools/check-house.sh)" ;;
		esac
	done
fi

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
	echo "check-house: breaches of the house rules"
	exit 1
fi
echo "check-house: $(wc -l <"$files") files keep the house rules"
