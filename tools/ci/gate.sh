#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A gate for GPU time. Records several runs of a program, compares them with a baseline, and returns
# the verdict. The GitHub action and the GitLab template in this folder only call it. It also works
# by hand and in any other CI. docs/CI.md explains the setup.
#
# usage: gate.sh            record, compare, report
#        gate.sh comment    put the report under the pull request (GitHub, with gh)
#
# Environment:
#
#	XTRACE_GATE_COMMAND	required: the program to measure, as a shell command line
#	XTRACE_GATE_XTRACE	xtrace as a tarball, its URL, a folder with bin/xtrace, or a package
#				for pip, such as xtrace-gpu==0.1.0. Default: search PATH and around
#				this file
#	XTRACE_GATE_SHA256	the tarball's checksum
#	XTRACE_GATE_BASELINE	the baseline (.xtrace/baseline.json)
#	XTRACE_GATE_BASE_COMMAND	replaces the baseline: another command line, run in turns
#	XTRACE_GATE_RUNS	number of measured runs (5)
#	XTRACE_GATE_WARMUP	number of warm-up runs (1)
#	XTRACE_GATE_RULES	a file with rules (.xtrace/rules, if it exists)
#	XTRACE_GATE_FAIL_ON	more rules, one per line
#	XTRACE_GATE_UNSURE	verdict if the result is inconclusive: fail (default) or pass
#	XTRACE_GATE_UPDATE	1: add the runs to the baseline instead of comparing
#	XTRACE_GATE_LABEL	their label in the baseline (the commit)
#	XTRACE_GATE_BENCH_OPTIONS	more options of xtrace bench, such as --simulate
#	XTRACE_GATE_PROFILE_OPTIONS	options that define iterations, for xtrace diff and xtrace
#				baseline: --iteration NAME, --warmup COUNT
#	XTRACE_GATE_DIFF_OPTIONS	more options of xtrace diff
#	XTRACE_GATE_OUTPUT	the output folder (xtrace-gate)
#
# The output folder gets verdict (pass, regression or unsure), report.md, junit.xml, diff.json,
# flame.html, and the runs in bench/.
#
# Exit status (the report gives the reason):
# - 0: the gate passes, or the baseline is written
# - 1: something is slower than a rule allows
# - 2: the result is inconclusive, or an error occurred
set -eu

output=${XTRACE_GATE_OUTPUT:-xtrace-gate}
baseline=${XTRACE_GATE_BASELINE:-.xtrace/baseline.json}
mark='<!-- xtrace gate -->'

say() {
	echo "xtrace gate: $*" >&2
}

# Annotations that GitHub shows with the job. Elsewhere they are plain lines.
annotate() {
	kind=$1
	shift
	if [ -n "${GITHUB_ACTIONS:-}" ]; then
		echo "::$kind title=GPU time::$*"
	else
		say "$*"
	fi
}

# Publishes the verdict for other steps and for people.
finish() {
	verdict=$1 status=$2
	echo "$verdict" >"$output/verdict"
	if [ -n "${GITHUB_OUTPUT:-}" ]; then
		{
			echo "verdict=$verdict"
			echo "report=$output/report.md"
		} >>"$GITHUB_OUTPUT"
	fi
	if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -s "$output/report.md" ]; then
		cat "$output/report.md" >>"$GITHUB_STEP_SUMMARY"
	fi
	finished=1
	exit "$status"
}

# Reports why nothing was compared, in one line, with the end of the failed program's output.
cannot() {
	printf '%s\n### GPU time: inconclusive\n\n%s\n' "$mark" "$1" >"$output/report.md"
	if [ -s "${2:-}" ]; then
		{
			printf '\n~~~~text\n'
			tail -n 20 "$2"
			printf '~~~~\n'
		} >>"$output/report.md"
	fi
	annotate error "inconclusive: $1"
	finish unsure 2
}

get_file() {
	if command -v curl >/dev/null; then
		curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
	elif command -v wget >/dev/null; then
		wget --quiet --tries=3 --output-document="$2" "$1"
	else
		say "neither curl nor wget is here to get $1"
		return 1
	fi
}

# Sets xtrace to the path of the program.
find_xtrace() {
	from=${XTRACE_GATE_XTRACE:-}
	case $from in
	'')
		xtrace=$(command -v xtrace) && return
		# In an unpacked tarball, this file is in share/xtrace/ci.
		xtrace=$(cd "$(dirname "$0")/../../.." && pwd)/bin/xtrace
		[ -x "$xtrace" ] && return
		cannot 'xtrace was not found: `XTRACE_GATE_XTRACE` names none, and none is in `PATH`.'
		;;
	http://* | https://*)
		get_file "$from" "$output/xtrace.tar.gz" || cannot "\`$from\` cannot be had."
		from=$output/xtrace.tar.gz
		;;
	xtrace-gpu==*)
		python3 -m venv "$output/venv" && "$output/venv/bin/pip" install --quiet "$from" ||
			cannot "pip cannot install \`$from\`."
		from=$output/venv
		;;
	esac
	if [ -d "$from" ]; then
		xtrace=$(cd "$from" && pwd)/bin/xtrace
	elif [ -f "$from" ]; then
		if [ -n "${XTRACE_GATE_SHA256:-}" ]; then
			echo "$XTRACE_GATE_SHA256  $from" | sha256sum --check --status ||
				cannot "\`$from\` has another checksum than \`$XTRACE_GATE_SHA256\`."
		fi
		rm -rf "$output/xtrace"
		mkdir "$output/xtrace"
		tar -xzf "$from" -C "$output/xtrace" --strip-components=1 ||
			cannot "\`$from\` cannot be unpacked."
		xtrace=$(cd "$output/xtrace" && pwd)/bin/xtrace
	else
		cannot "there is no \`$from\`."
	fi
	[ -x "$xtrace" ] || cannot "there is no \`bin/xtrace\` in \`${XTRACE_GATE_XTRACE:-}\`."
}

# Records the runs in $output/bench. The options are split into words on purpose.
record() {
	set -f
	# shellcheck disable=SC2086
	set -- -o "$output/bench" -n "${XTRACE_GATE_RUNS:-5}" --warmup "${XTRACE_GATE_WARMUP:-1}" \
		${XTRACE_GATE_BENCH_OPTIONS:-}
	set +f
	if [ -n "${XTRACE_GATE_BASE_COMMAND:-}" ]; then
		set -- "$@" --no-diff --vs "$XTRACE_GATE_BASE_COMMAND"
	fi
	"$xtrace" bench "$@" -- /bin/sh -c "$XTRACE_GATE_COMMAND" 2>"$output/bench.txt" || {
		cat "$output/bench.txt" >&2
		cannot "the program could not be recorded." "$output/bench.txt"
	}
	cat "$output/bench.txt" >&2
}

commit() {
	commit=${GITHUB_SHA:-${CI_COMMIT_SHA:-}}
	[ -n "$commit" ] || commit=$(git rev-parse HEAD 2>/dev/null) || commit=
	echo "$commit"
}

update() {
	label=${XTRACE_GATE_LABEL:-$(commit)}
	if [ -e "$baseline" ]; then verb=update; else verb=save; fi
	# shellcheck disable=SC2086
	"$xtrace" baseline $verb ${XTRACE_GATE_PROFILE_OPTIONS:-} ${label:+--label "$label"} \
		"$baseline" "$output/bench" \
		2>"$output/baseline.txt" ||
		cannot "\`$baseline\` could not be written." "$output/baseline.txt"
	cat "$output/baseline.txt" >&2
	printf '%s\n### GPU time: the baseline was written\n\n`%s`, from %s runs%s.\n' "$mark" \
		"$baseline" "${XTRACE_GATE_RUNS:-5}" "${label:+, as \`$label\`}" >"$output/report.md"
	finish pass 0
}

# Runs xtrace diff with the rules.
judge() {
	rules=${XTRACE_GATE_RULES:-}
	[ -n "$rules" ] || [ ! -e .xtrace/rules ] || rules=.xtrace/rules
	set -f
	# shellcheck disable=SC2086
	set -- "$@" ${rules:+--rules "$rules"} ${XTRACE_GATE_PROFILE_OPTIONS:-} \
		${XTRACE_GATE_DIFF_OPTIONS:-}
	set +f
	while IFS= read -r rule; do
		[ -z "$rule" ] || set -- "$@" --fail-on "$rule"
	done <<EOF
${XTRACE_GATE_FAIL_ON:-}
EOF
	"$xtrace" diff "$@"
}

compare() {
	status=0
	# Only builds made with node can write the page.
	if judge --check --html "$output/flame.html" 2>/dev/null; then
		set -- --html "$output/flame.html" "$@"
	fi
	judge --text - --markdown "$output/report.md" --junit "$output/junit.xml" \
		--json "$output/diff.json" "$@" 2>"$output/diff.txt" || status=$?
	cat "$output/diff.txt" >&2
	case $status in
	0)
		finish pass 0
		;;
	1)
		annotate error "$(verdict_line)"
		finish regression 1
		;;
	esac
	[ -s "$output/report.md" ] || cannot "the runs were not compared." "$output/diff.txt"
	# A missing comparison, or a rule that matches nothing, is not caused by noise.
	if [ "${XTRACE_GATE_UNSURE:-fail}" = pass ] && grep -q '"problems":\[\]' "$output/diff.json"; then
		annotate warning "$(verdict_line)"
		finish unsure 0
	fi
	annotate error "$(verdict_line)"
	finish unsure 2
}

# The heading of the report.
verdict_line() {
	sed -n 's/^#\{1,\} *//p' "$output/report.md" | head -n 1
}

# Maintains one comment under the pull request. Later runs update it.
comment() {
	number=${XTRACE_GATE_PULL_REQUEST:-}
	[ -s "$output/report.md" ] || { say "there is no $output/report.md"; exit 2; }
	[ -n "$number" ] || { say "this is no pull request: no comment is made"; exit 0; }
	# GitHub accepts 65,536 characters. Cut at a line end.
	LC_ALL=C awk '{ bytes += length($0) + 1 } bytes > 65000 { exit } { print }' \
		"$output/report.md" >"$output/comment.md"
	comments="repos/{owner}/{repo}/issues"
	earlier=$(gh api --paginate "$comments/$number/comments" \
		--jq ".[] | select(.body | startswith(\"$mark\")) | .id" | tail -n 1)
	if [ -n "$earlier" ]; then
		gh api --silent --method PATCH "$comments/comments/$earlier" \
			-F "body=@$output/comment.md"
	else
		gh pr comment "$number" --body-file "$output/comment.md"
	fi
}

case ${1:-} in
'') ;;
comment)
	comment
	exit
	;;
*)
	echo "usage: gate.sh [comment]" >&2
	exit 2
	;;
esac
# If the shell itself fails, for example because the disk is full, that is not a regression.
finished=
trap '[ -n "$finished" ] || exit 2' EXIT
mkdir -p "$output"
rm -f "$output/verdict" "$output/report.md" "$output/junit.xml" "$output/diff.json" \
	"$output/flame.html"
[ -n "${XTRACE_GATE_COMMAND:-}" ] || cannot '`XTRACE_GATE_COMMAND` does not say what is to be run.'
case ${XTRACE_GATE_UNSURE:-fail} in
fail | pass) ;;
*) cannot "\`XTRACE_GATE_UNSURE\` is fail or pass, not \`$XTRACE_GATE_UNSURE\`." ;;
esac
case ${XTRACE_GATE_UPDATE:-0} in
0 | 1) ;;
*) cannot "\`XTRACE_GATE_UPDATE\` is 1 or nothing, not \`$XTRACE_GATE_UPDATE\`." ;;
esac
find_xtrace
if [ -z "${XTRACE_GATE_BASE_COMMAND:-}" ] && [ "${XTRACE_GATE_UPDATE:-}" != 1 ] &&
	[ ! -e "$baseline" ]; then
	cannot "there is no baseline in \`$baseline\`: write one with \`XTRACE_GATE_UPDATE=1\`."
fi
# Check this before spending minutes on recording.
judge --check 2>"$output/check.txt" || {
	cat "$output/check.txt" >&2
	cannot 'rules or options cannot be read.' "$output/check.txt"
}
if [ -z "${XTRACE_GATE_BASE_COMMAND:-}" ] && [ -e "$baseline" ]; then
	"$xtrace" diff --check "$baseline" 2>"$output/check.txt" || {
		cat "$output/check.txt" >&2
		cannot "\`$baseline\` cannot be read." "$output/check.txt"
	}
fi
if [ "${XTRACE_GATE_UPDATE:-}" = 1 ]; then
	folder=$(dirname "$baseline")
	mkdir -p "$folder" && [ -w "$folder" ] || cannot "\`$folder\` cannot be written to."
fi
record
if [ "${XTRACE_GATE_UPDATE:-}" = 1 ]; then
	update
elif [ -n "${XTRACE_GATE_BASE_COMMAND:-}" ]; then
	compare "$output/bench/base" "$output/bench/new"
else
	compare "$baseline" "$output/bench"
fi
