#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that the given programs and libraries, or those in the given folders, need no symbol newer
# than glibc 2.34. They then run on older systems.
set -eu

newest_major=2
newest_minor=34
if [ $# -eq 0 ]; then
	echo "usage: tools/check-glibc.sh FILE|DIR..." >&2
	exit 2
fi
breaches=$(mktemp)
trap 'rm -f "$breaches"' EXIT

is_elf() {
	[ "$(head -c 4 "$1" | od -An -tx1 | tr -d ' \n')" = 7f454c46 ]
}

checked=0
for file in $(find -L "$@" -type f); do
	is_elf "$file" || continue
	checked=$((checked + 1))
	objdump -T "$file" 2>/dev/null | awk -v file="$file" -v major=$newest_major -v minor=$newest_minor '
		/\*UND\*/ && match($0, /GLIBC_[0-9]+\.[0-9]+/) {
			split(substr($0, RSTART + 6, RLENGTH - 6), version, ".")
			if (version[1] > major || version[1] == major && version[2] > minor)
				print file ": needs " $NF " of glibc " version[1] "." version[2]
		}' >>"$breaches"
done
if [ "$checked" -eq 0 ]; then
	echo "check-glibc: there is no program or library in: $*" >&2
	exit 2
fi
if [ -s "$breaches" ]; then
	cat "$breaches"
	exit 1
fi
echo "check-glibc: $checked programs and libraries need no glibc newer than $newest_major.$newest_minor"
