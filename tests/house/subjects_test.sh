#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks commits of a repository that it makes: tools/check-subjects.sh accepts those that keep the
# rules, and names those that break one.
# Usage: subjects_test.sh SOURCE
set -eu
source=$1

command -v git >/dev/null || {
	echo "git is not installed"
	exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME="$folder"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE="2030-01-01T00:00:00+00:00"
export GIT_COMMITTER_DATE="2026-11-29T21:13:00+00:00"
git init -q -b main .
mkdir -p tools tests/cases/expected
cp "$source/tools/check-subjects.sh" tools/

# add SUBJECT [BODY]: commits what has changed.
add() {
	git add .
	if [ $# -gt 1 ]; then
		git commit -q --allow-empty -m "$1" -m "$2"
	else
		git commit -q --allow-empty -m "$1"
	fi
}

# lines COUNT TEXT: as many different lines.
lines() {
	seq "$1" | sed "s/^/$2 /"
}

# expect RC [TEXT]: the result of the check, and a line that it prints.
expect() {
	rc=0
	tools/check-subjects.sh >output || rc=$?
	if [ "$rc" != "$1" ] || ! grep -qF "${2:-: 0 breaches}" output; then
		echo "expected status $1 and '${2:-}', but status $rc:"
		cat output
		exit 1
	fi
	rm output
}

# breaks TEXT: the last commit breaks one rule. Removes the commit.
breaks() {
	expect 1 "$1"
	expect 1 ": 1 breaches"
	git reset -q --hard HEAD^
}

lines 900 old >file
add "tools: have no body before the rule"
GIT_COMMITTER_DATE="2026-12-24T00:00:00+00:00"
expect 0

# What keeps the rules.
lines 400 new >new
add "tools: insert what is allowed" "A change of this size can be reviewed."
sed 's/^/	/' file | split -l 500 - part
git rm -q file
add "tools: move lines and indent them" "Moves are easy to review."
cp partaa tests/copy
echo more >>partaa
add "tests: copy a file" "A copy inserts nothing."
lines 900 expected >tests/cases/expected/out
mkdir -p docs/images
lines 900 image >docs/images/page.svg
lines 900 schema >docs/summary.schema.json
add "tests: replace expected output" "Nobody writes or reviews these lines by hand."
expect 0

# What breaks them.
add "tools: give no reason"
breaks "no body that gives the reason: tools: give no reason"
add "tools: give a trailer" "Signed-off-by: a <a@b>"
breaks "no body that gives the reason: tools: give a trailer"
add "tools: added a file" "The verb is not an imperative."
breaks "not an imperative summary"
add "tools: describe at great length what this change is all about" "The subject is too long."
breaks "61 characters, more than 60"
lines 401 more >more
add "tools: insert too much" "Nobody can review this in one piece."
breaks "401 inserted lines, more than 400"
git checkout -q -b work HEAD^
add "tools: work elsewhere" "A branch is to be merged."
git checkout -q main
git merge -q --no-ff -m "tools: merge the branch" -m "A merge hides its changes." work
expect 1 "a merge; rebase instead: tools: merge the branch"
