#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A gate for GPU time: records some runs of a program, compares them with a baseline, and ends with the
# verdict. The GitHub action and the GitLab template beside this file only call it; it works in any
# other CI, and by hand. docs/CI.md says how to set it up.
#
# usage: gate.sh            record, compare, report
#        gate.sh comment    put the report under the pull request (GitHub, with gh)
#
# What is to be done, the environment says:
#
#	XTRACE_GATE_COMMAND	the program to measure, a line for the shell; needed
#	XTRACE_GATE_XTRACE	where xtrace is: a tarball, its URL, or a folder with bin/xtrace. Else
#				it is looked for in PATH and around this file
#	XTRACE_GATE_SHA256	what the tarball's checksum has to be
#	XTRACE_GATE_BASELINE	what is compared with (.xtrace/baseline.json)
#	XTRACE_GATE_BASE_COMMAND	instead of a baseline: another line for the shell, run in turns
#	XTRACE_GATE_RUNS	how many runs count (5)
#	XTRACE_GATE_WARMUP	how many before them do not (1)
#	XTRACE_GATE_RULES	a file with rules (.xtrace/rules, if it is there)
#	XTRACE_GATE_FAIL_ON	more rules, one a line
#	XTRACE_GATE_UNSURE	fail (default) or pass: what it means if nothing can be said
#	XTRACE_GATE_UPDATE	1: put the runs into the baseline, rather than compare with it
#	XTRACE_GATE_LABEL	what they are called there (the commit)
#	XTRACE_GATE_BENCH_OPTIONS	more options of xtrace bench, such as --simulate
#	XTRACE_GATE_PROFILE_OPTIONS	what an iteration is, for xtrace diff and xtrace baseline alike:
#				--iteration NAME, --warmup COUNT
#	XTRACE_GATE_DIFF_OPTIONS	more options of xtrace diff
#	XTRACE_GATE_OUTPUT	the folder for all that is written (xtrace-gate)
#
# Written there: verdict (pass, regression or unsure), report.md, junit.xml, diff.json, flame.html,
# and the runs, in bench/.
#
# Exit status: 0 pass, or the baseline is written; 1 something got slower than a rule allows; 2 it
# cannot be told, or something went wrong: the report says which.
set -eu

output=${XTRACE_GATE_OUTPUT:-xtrace-gate}
baseline=${XTRACE_GATE_BASELINE:-.xtrace/baseline.json}
mark='<!-- xtrace gate -->'

say() {
	echo "xtrace gate: $*" >&2
}

# Annotations that GitHub shows beside the job; elsewhere they are plain lines.
annotate() {
	kind=$1
	shift
	if [ -n "${GITHUB_ACTIONS:-}" ]; then
		echo "::$kind title=GPU time::$*"
	else
		say "$*"
	fi
}

# The verdict, for other steps and for people.
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

# Nothing was compared: the report says why, in a line, and shows the end of what a program said.
cannot() {
	printf '%s\n### GPU time: could not be judged\n\n%s\n' "$mark" "$1" >"$output/report.md"
	if [ -s "${2:-}" ]; then
		{
			printf '\n~~~~text\n'
			tail -n 20 "$2"
			printf '~~~~\n'
		} >>"$output/report.md"
	fi
	annotate error "could not be judged: $1"
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

# Sets xtrace to the program.
find_xtrace() {
	from=${XTRACE_GATE_XTRACE:-}
	case $from in
	'')
		xtrace=$(command -v xtrace) && return
		# An unpacked tarball: this lies in share/xtrace/ci.
		xtrace=$(cd "$(dirname "$0")/../../.." && pwd)/bin/xtrace
		[ -x "$xtrace" ] && return
		cannot 'xtrace was not found: `XTRACE_GATE_XTRACE` names none, and none is in `PATH`.'
		;;
	http://* | https://*)
		get_file "$from" "$output/xtrace.tar.gz" || cannot "\`$from\` cannot be had."
		from=$output/xtrace.tar.gz
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

# The runs, in $output/bench. (Options are words, on purpose.)
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

# Runs xtrace diff, with the rules.
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
	# (Only builds that were made with node have the page.)
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
	# What was not even compared, or a rule that fits nothing, is no matter of noise.
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

# One comment under the pull request, which later runs change.
comment() {
	number=${XTRACE_GATE_PULL_REQUEST:-}
	[ -s "$output/report.md" ] || { say "there is no $output/report.md"; exit 2; }
	[ -n "$number" ] || { say "this is no pull request: no comment is made"; exit 0; }
	# GitHub takes 65,536 characters. (Whole lines, so that none is cut.)
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
# (Where the shell itself gives up, say because of a full disk, that is no regression.)
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
# (Before minutes are spent on recording.)
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
