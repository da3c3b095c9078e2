#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks commits:
# - The subject is `area: imperative summary` in at most 60 characters.
# - A body gives the reason.
# - At most 400 lines are inserted.
# - The history has no merges.
# Each rule exempts the commits that came before it. A shallow clone is checked as far as it goes.
set -eu
cd "$(dirname "$0")/.."

subject_max=60
subject_exempt=1019e00604b5a28fcfcddb484d567fc1aea5e1ff
subject_exempt_until=2026-11-23T03:27:51+00:00

# CONTRIBUTING.md asks for about 300 lines.
inserted_max=400
content_exempt=807c52c6214de627e3a68dda41369b5764ca01af
content_exempt_until=2026-11-29T21:13:34+00:00

# The checkout may be another user's, as in a container.
git() {
	command git -c safe.directory='*' "$@"
}

if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo "check-subjects: not a git repository: nothing to check"
	exit 0
fi
breaches=$(mktemp)
trap 'rm -f "$breaches"' EXIT

# commits_after COMMIT DATE ARGUMENT...: runs git log. A rewritten or shallow history has no COMMIT.
commits_after() {
	range=HEAD
	if git cat-file -e "$1^{commit}" 2>/dev/null; then
		range=$1..HEAD
	fi
	date=$2
	shift 2
	git log --since="$date" "$range" "$@"
}

commits_after $subject_exempt $subject_exempt_until --no-merges --format='%h %s' |
	awk -v max=$subject_max '
function complain(reason) {
	print "commit " $1 ": " reason ": " subject
}
{
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
}' >>"$breaches"

commits_after $content_exempt $content_exempt_until --merges \
	--format='commit %h: a merge; rebase instead: %s' >>"$breaches"

# Each commit begins with the character 1, which no text contains. Trailers give no reason.
commits_after $content_exempt $content_exempt_until --no-merges --format='%x01%h: %s%n%b' | awk '
function end_commit() {
	if (commit && !has_body)
		print "commit " commit ": no body that gives the reason: " subject
}
/^\001/ {
	end_commit()
	commit = substr($1, 2, length($1) - 2)
	subject = substr($0, length($1) + 2)
	has_body = 0
	next
}
/[^ ] +[^ ]/ && !/^[A-Z][A-Za-z-]*: / { has_body = 1 }
END { end_commit() }' >>"$breaches"

# Lines that also were deleted count as moved. A commit without parents, as the oldest one of a
# shallow clone, inserts all there is, and is not counted.
commits_after $content_exempt $content_exempt_until --no-merges --format='%x01%h %p' \
	--no-color --no-ext-diff -p -U0 -M -C -- . ':(exclude,glob)tests/**/expected/**' \
	':(exclude,glob)tests/**/cases/*.stdout' ':(exclude,glob)tests/**/cases/*.stderr' \
	':(exclude,glob)**/*.out' ':(exclude)docs/summary.schema.json' ':(exclude)docs/images' \
	':(exclude,glob)**/package-lock.json' ':(exclude,glob)**/*.ptx.h' \
	':(exclude)tests/fuzz/corpus' | awk -v max=$inserted_max '
function end_commit(	line, count) {
	for (line in inserted)
		if (inserted[line] > deleted[line])
			count += inserted[line] - deleted[line]
	if (has_parent && count > max)
		print "commit " commit ": " count " inserted lines, more than " max
	split("", inserted)
	split("", deleted)
}
/^\001/ {
	end_commit()
	commit = substr($1, 2)
	has_parent = NF > 1
	next
}
/^diff / { in_lines = 0 }
/^@@ / { in_lines = 1 }
in_lines && /^[+-]/ {
	line = $0
	gsub(/^[+-][ \t]*/, "", line)
	if (/^\+/)
		inserted[line]++
	else
		deleted[line]++
}
END { end_commit() }' >>"$breaches"

cat "$breaches"
echo "check-subjects: $(wc -l <"$breaches") breaches of the rules for commits"
[ ! -s "$breaches" ]
