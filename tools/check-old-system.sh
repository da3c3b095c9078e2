#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records and reports on Debian 11 (glibc 2.31), the oldest Debian that the mirror has.
#
#   tools/check-old-system.sh [-d DIR] [TREE]
#
# TREE is an output of tools/portable.sh. Without it, the last commit is built twice, in two places,
# and the results must have the same bytes. debootstrap sets up the system once in DIR (default:
# build-old-system). Needs root and Debian's mirror.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/tools/portable/chroot.sh"
work=$source/build-old-system
while getopts d: option; do
	case $option in
	d) work=$OPTARG ;;
	*)
		sed -n '3,9s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
mkdir -p "$work"
work=$(cd "$work" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Places of different lengths, so that no path can get into the files unnoticed.
build_twice() {
	for place in first/place second; do
		git clone -q --no-hardlinks "$source" "$scratch/$place/source"
		"$scratch/$place/source/tools/portable.sh" "$scratch/$place/tree" "$scratch/$place/cache"
	done
	diff -r --no-dereference "$scratch/first/place/tree" "$scratch/second/tree" || {
		echo "check-old-system: two builds differ" >&2
		exit 1
	}
	echo "check-old-system: two builds have the same bytes"
}

if [ $# -eq 0 ]; then
	build_twice
	tree=$scratch/second/tree
else
	tree=$(cd "$1" && pwd)
fi

root=$work/bullseye
make_system "$root" bullseye python3

cat >"$scratch/check" <<'EOF'
set +e
PATH=/mnt/given/bin:$PATH
share=/mnt/given/share/xtrace
failed=0
fail() {
	echo "check-old-system: $*"
	failed=1
}
find /mnt/given -name '*.so*' -exec ldd {} + 2>&1 | grep 'not found' | grep -v 'libcu' &&
	fail "libraries are missing"
xtrace record --simulate -o data $share/samples/llm_inference --tokens 4 >record 2>&1 &&
	grep -q 'recorded 1 process, 288 launches, 288 kernels, 0 lost' record || fail "$(cat record)"
tests=/mnt/given/checkout/tests
$tests/tools/check-trace.py data --dump $tests/tools/xtrace-dump --merge xtrace-merge >trace ||
	fail "$(cat trace)"
xtrace-merge data --folded folded >merge && grep -q 'main;.*;\[GPU_Kernel\]matmul_kernel' folded ||
	fail "the sample's functions have no names: $(cat merge)"
for trace in $share/samples/traces/*.xtr; do
	xtrace-merge --all "$trace" | grep -q 'attributed to a call path  *100.0 %' ||
		fail "$trace is not attributed in full"
done
xtrace report data >report && grep -q '</html>' data/report.html || fail "$(cat report)"
xtrace diff data data >diff 2>&1 || true
grep -q '^INCONCLUSIVE' diff || fail "$(cat diff)" # one run measures no noise
$tests/gpu/python_frames.py --xtrace /mnt/given/bin/xtrace --simulate --pairs 1 --steps 20 driver >python &&
	grep -q '100.00 % with Python frames' python || fail "$(cat python)"
[ $failed -eq 0 ] && echo "check-old-system: records and reports with $(ldd --version | head -n 1)"
EOF
# With the scripts that check recordings.
cp -a "$tree" "$scratch/given"
mkdir -p "$scratch/given/checkout/tests"
cp -a "$source/bench" "$source/samples" "$scratch/given/checkout"
cp -a "$source/tests/gpu" "$source/tests/tools" "$scratch/given/checkout/tests"
in_system "$root" "$scratch/check" "$scratch/given"
