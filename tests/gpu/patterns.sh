#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records the patterns of samples/patterns on a machine with a GPU and checks the findings. Runs
# from an unpacked tarball (share/xtrace/patterns.sh) or a build tree. Installs nothing and needs no
# network. The PyTorch patterns are skipped if PyTorch is missing.
#
# Exit status: 0 all as expected, 1 not, 2 usage.
set -u

usage() {
	echo "usage: patterns.sh [-o RESULTS] [-k DIR] [-p PYTHON] [PATTERN]..." >&2
	echo "  -o  also write the results to this file   -k  keep all traces in DIR" >&2
	echo "  -p  the Python that has PyTorch (python3)" >&2
	exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
results=/dev/null
keep=
python=python3
while getopts o:k:p: option; do
	case $option in
	o) results=$OPTARG ;;
	k) keep=$OPTARG ;;
	p) python=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))

# A tarball or an installation has this script in share/xtrace. Otherwise use the build tree.
patterns=$here/samples/patterns
root=$(cd "$here/../.." && pwd)
programs=$patterns
if [ ! -d "$patterns" ]; then
	patterns=$root/samples/patterns
	programs=$root/build/bin/samples/patterns
	root=$root/build
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
	"$root/bin/xtrace" --version
} | tee "$scratch/head"
python3 "$patterns/check.py" --xtrace "$root/bin/xtrace" --merge "$root/bin/xtrace-merge" \
	--programs "$programs" ${keep:+--keep "$keep"} -o "$scratch/c" "$@"
status=$?
: >"$scratch/python"
if [ $# -eq 0 ] && "$python" -c 'import torch; torch.cuda.init()' 2>/dev/null; then
	python3 "$patterns/check.py" --xtrace "$root/bin/xtrace" --merge "$root/bin/xtrace-merge" \
		${keep:+--keep "$keep"} --pytorch "$python" -o "$scratch/python" || status=1
elif [ $# -eq 0 ]; then
	echo "PyTorch: skipped, $python has no PyTorch that finds a GPU" | tee "$scratch/python"
fi
cat "$scratch/head" "$scratch/c" "$scratch/python" >"$results"
exit $status
