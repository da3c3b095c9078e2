#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records the patterns of samples/patterns on a machine with a GPU and checks the findings. Installs
# nothing and needs no network. The PyTorch patterns are skipped if PyTorch is missing.
#
# Exit status: 0 all as expected, 1 not, 2 usage.
set -u

usage() {
	echo "usage: patterns.sh [--xtrace PATH] [-o RESULTS] [-k DIR] [-p PYTHON] [PATTERN]..." >&2
	echo "  -o  also write the results to this file   -k  keep all traces in DIR" >&2
	echo "  -p  the Python that has PyTorch (python3)" >&2
	echo "  --xtrace  the program to check, built or installed (build/bin/xtrace)" >&2
	exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
results=/dev/null
keep=
python=python3
xtrace=
while [ $# -gt 0 ]; do
	case $1 in
	-o | -k | -p | --xtrace)
		[ $# -ge 2 ] || usage
		case $1 in -o) results=$2 ;; -k) keep=$2 ;; -p) python=$2 ;; *) xtrace=$2 ;; esac
		shift 2
		;;
	-*) usage ;;
	*) break ;;
	esac
done
. "$here/places.sh"
patterns=$samples/patterns

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
	"$xtrace" --version
} | tee "$scratch/head"
python3 "$patterns/check.py" --xtrace "$xtrace" --merge "$merge" \
	--programs "$programs/samples/patterns" ${keep:+--keep "$keep"} -o "$scratch/c" "$@"
status=$?
: >"$scratch/python"
if [ $# -eq 0 ] && "$python" -c 'import torch; torch.cuda.init()' 2>/dev/null; then
	python3 "$patterns/check.py" --xtrace "$xtrace" --merge "$merge" \
		${keep:+--keep "$keep"} --pytorch "$python" -o "$scratch/python" || status=1
elif [ $# -eq 0 ]; then
	echo "PyTorch: skipped, $python has no PyTorch that finds a GPU" | tee "$scratch/python"
fi
cat "$scratch/head" "$scratch/c" "$scratch/python" >"$results"
exit $status
