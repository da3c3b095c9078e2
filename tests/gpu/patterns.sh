#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The patterns of samples/patterns on a machine with a GPU: each, bad and good, recorded, and what is
# found held against what should be. Run from an unpacked tarball (share/xtrace/patterns.sh) or a
# build tree; nothing is installed, and no network is needed. Those of PyTorch run if it is there.
#
# Exit status: 0 if all holds, 1 if anything does not, 2 usage.
set -u

usage() {
	echo "usage: patterns.sh [-o RESULTS] [-k DIR] [-p PYTHON] [PATTERN]..." >&2
	echo "  -o  write the results to this file, too   -k  keep all traces in DIR" >&2
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

# An unpacked tarball or an installation: this lies in share/xtrace. Else a build tree.
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
	echo "PyTorch: skipped, $python has none that sees a GPU" | tee "$scratch/python"
fi
cat "$scratch/head" "$scratch/c" "$scratch/python" >"$results"
exit $status
