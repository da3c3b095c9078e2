#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `xtrace diff` on a real GPU, with a PyTorch training step and versions of it that each have
# one regression. Needs python3 with torch and a GPU, but no network.
#
# - Unchanged program: records a pool of runs. Ten comparisons of five against five runs must pass.
# - Changed versions: records five runs of each, alternating with the pool. Compared with five runs
#   of the pool, each must be reported as a regression that names the changed code.
#
# Exit status: 0 all as expected, 1 not, 2 usage or no GPU.
set -u

usage() {
	echo "usage: diff.sh [--xtrace PATH] [-o RESULTS_DIR] [-n STEPS] [-p PYTHON]" >&2
	exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
results=$(pwd)/gpu-diff
steps=150
python=python3
xtrace=
while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || usage
	case $1 in
	-o) results=$2 ;;
	-n) steps=$2 ;;
	-p) python=$2 ;;
	--xtrace) xtrace=$2 ;;
	*) usage ;;
	esac
	shift 2
done
. "$here/places.sh"
sample=$samples/pytorch_train.py
if ! "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	echo "diff.sh: $python has no torch that finds a GPU" >&2
	exit 2
fi
mkdir -p "$results" && results=$(cd "$results" && pwd) || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table=$results/table.txt
: >"$table"
failures=0
pool=12
sides=5

say() {
	printf "$@"
	printf "$@" >>"$table"
}

# Records one run and keeps only its profile.
record() {
	name=$1
	shift
	if ! "$xtrace" record -o "$work/run" -- "$python" "$sample" --steps "$steps" "$@" \
		>"$work/out" 2>&1 ||
		! "$merge" -q "$work/run" --by none --lines on --profile "$work/$name.json"; then
		echo "diff.sh: cannot record $name" >&2
		tail -n 20 "$work/out" >&2
		[ -f "$work/$name.json" ] || exit 1
	fi
	rm -rf "$work/run" "$work/run.old"
}

# The options of each version. The first one is unchanged.
options_of() {
	case $1 in
	base) echo "--foreach" ;;
	slow-silu) echo "--foreach --slow-silu" ;;
	extra-sync) echo "--foreach --extra-sync" ;;
	extra-copy) echo "--foreach --extra-copy" ;;
	no-foreach) echo "" ;;
	esac
}

# Extended regular expressions that must all match the result of a version.
named_of() {
	case $1 in
	slow-silu) echo "activate" ;;
	extra-sync) echo "cudaDeviceSynchronize" ;;
	extra-copy) echo "Memcpy_HtoD" ;;
	no-foreach) echo "_single_tensor_adam" ;;
	esac
}

changed="slow-silu extra-sync extra-copy no-foreach"

begin=$(date +%s)
record warm $(options_of base)
run=1
while [ $run -le $pool ]; do
	record "base.$run" $(options_of base)
	if [ $run -le $sides ]; then
		for version in $changed; do
			record "$version.$run" $(options_of "$version")
		done
	fi
	run=$((run + 1))
done
say 'recorded %s runs of %s steps in %s s\n' $((pool + 4 * sides)) "$steps" $(($(date +%s) - begin))
cp "$work"/*.1.json "$results" 2>/dev/null

# Ten ways to select two groups of five from twelve runs. The letter at a run's position gives its
# group; x omits the run.
pairs="abababababxx xababababxab abbaabbaabxx xxabbaabbaab aabbaabbabxx xabbaxabbaab baabbaxabxab
ababxbabaxab abxababaxbab xbabaxababab"

list() {
	letters=$1
	wanted=$2
	place=1
	found=
	while [ $place -le $pool ]; do
		if [ "$(printf '%s' "$letters" | cut -c $place)" = "$wanted" ]; then
			found="$found${found:+,}$work/base.$place.json"
		fi
		place=$((place + 1))
	done
	printf '%s' "$found"
}

number=0
say '\n%-14s %-12s %-8s %s\n' comparison expected status passes
for letters in $pairs; do
	number=$((number + 1))
	"$xtrace" diff "$(list "$letters" a)" "$(list "$letters" b)" \
		--text "$results/aa.$number.txt" --json "$results/aa.$number.json" 2>"$results/aa.$number.err"
	status=$?
	holds=yes
	[ $status -eq 0 ] || { holds=NO; failures=$((failures + 1)); }
	say '%-14s %-12s %-8s %s\n' "A/A $number" pass $status $holds
done

runs_of() {
	found=
	for run in 1 2 3 4 5; do
		found="$found${found:+,}$work/$1.$run.json"
	done
	printf '%s' "$found"
}

for version in $changed; do
	"$xtrace" diff "$(runs_of base)" "$(runs_of "$version")" \
		--text "$results/$version.txt" --json "$results/$version.json" \
		2>"$results/$version.err"
	status=$?
	holds=yes
	[ $status -eq 1 ] || holds=NO
	for name in $(named_of "$version"); do
		pattern=$(printf '%s' "$name" | tr _ .)
		# Search only the broken rules and the locations below them.
		sed -n '/^REGRESSION/,/^The run as a whole/p' "$results/$version.txt" |
			awk '/^ +(worse|[?]|pass|FAIL) / { is_worse = $1 == "worse" } is_worse' |
			grep -Eq "$pattern" || holds="NO, $name is not named"
	done
	[ "$holds" = yes ] || failures=$((failures + 1))
	say '%-14s %-12s %-8s %s\n' "$version" regression $status "$holds"
done
say '%s of %s comparisons failed; all results are in %s\n' $failures $((number + 4)) "$results"
[ $failures -eq 0 ]
