#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of DIST_DIR in bare Debian systems, and uses and removes them there.
#
#   tools/check-packages.sh [-d DIR] DIST_DIR
#
# Wheels are tried on Debian 11 (glibc 2.31) and 12. The systems are set up once in DIR
# (default: build-systems). Needs root, debootstrap and Debian's mirror.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/tools/portable/chroot.sh"
work=$source/build-systems
while getopts d: option; do
	case $option in
	d) work=$OPTARG ;;
	*)
		sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
dist=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# From a bare Python to the first flame graph, then everything that the package offers.
cat >"$scratch/wheel" <<'EOF'
export PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -m venv venv
began=$(date +%s%N)
venv/bin/pip install -q --no-index /mnt/given/xtrace_gpu-*.whl
venv/bin/xtrace record -q --simulate venv/share/xtrace/samples/llm_inference
venv/bin/xtrace merge --html flame.html
ended=$(date +%s%N)
grep -q '</html>' flame.html
venv/bin/xtrace report --no-open >report
grep -q '</html>' xtrace.data/report.html
cat >script.py <<'PY'
import ctypes
import xtrace_gpu

with xtrace_gpu.recording():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, memory = ctypes.c_void_p(), ctypes.c_void_p()
    assert not cuda.cuInit(0)
    assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    assert not cuda.cuCtxSetCurrent(context)
    assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
    assert not cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(4096))
assert not cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(4096))
PY
venv/bin/python -m xtrace_gpu record -q -s --paused -o script.data script.py
venv/bin/python -c '
import xtrace_gpu
work, = xtrace_gpu.load("script.data")["work"]
assert work["bytes"] == 4096, work
assert "GPU time" in str(xtrace_gpu.report("script.data"))'
venv/bin/pip uninstall -q -y xtrace-gpu
[ -z "$(find venv -name '*xtrace*' ! -name __pycache__)" ]
[ $(((ended - began) / 1000000)) -lt 10000 ] || echo "check-packages: the limit is 10 s" >&2
[ $(((ended - began) / 1000000)) -lt 10000 ]
echo "check-packages: wheel with $(ldd --version | head -n 1):" \
	"from pip install to the first flame graph in $(((ended - began) / 1000000)) ms"
EOF

tried=0
for wheel in "$dist"/*.whl; do
	[ -e "$wheel" ] || break
	if [ "$(stat -c %s "$wheel")" -gt 10000000 ]; then
		echo "check-packages: $wheel is larger than 10 MB" >&2
		exit 1
	fi
	for suite in bullseye bookworm; do
		make_system "$work/$suite-venv" $suite python3-venv
		in_system "$work/$suite-venv" "$scratch/wheel" "$dist"
	done
	tried=1
done
[ $tried -eq 1 ] || {
	echo "check-packages: there is no package in $dist" >&2
	exit 2
}
