#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the subjects of commits: `area: imperative summary`, at most 60 characters. Commits up to
# the first one that followed this rule are exempt. A shallow clone is checked as far as it goes.
set -eu
cd "$(dirname "$0")/.."

subject_max=60
last_exempt=1019e00604b5a28fcfcddb484d567fc1aea5e1ff
exempt_until=2026-11-23T03:27:51+00:00

if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo "check-subjects: not a git repository: nothing to check"
	exit 0
fi
range=HEAD
if git cat-file -e "$last_exempt^{commit}" 2>/dev/null; then
	range=$last_exempt..HEAD
fi

git log --no-merges --since="$exempt_until" --format='%h %s' "$range" | awk -v max=$subject_max '
function complain(reason) {
	print "commit " $1 ": " reason ": " subject
	bad++
}
{
	count++
	subject = substr($0, length($1) + 2)
	if (length(subject) > max)
		complain(length(subject) " characters, more than " max)
	if (subject !~ /^[a-z0-9_\/,. -]+: [^ ]/) {
		complain("not \"area: imperative summary\"")
		next
	}
	verb = subject
	sub(/^[^:]*: /, "", verb)
	sub(/ .*/, "", verb)
	if (verb ~ /^(add|fix|remov|mov|chang|updat|renam|mak|us|rewrit|split|test)(ed|s|es|ing)$/ ||
	    verb ~ /^[A-Z][a-z]/ || subject ~ /\.$/)
		complain("not an imperative summary in lower case without a full stop")
}
END {
	print "check-subjects: " count + 0 " commits, " bad + 0 " with a subject that breaks the rules"
	exit bad > 0
}'
