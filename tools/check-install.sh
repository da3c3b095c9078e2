#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build into an empty folder, moves it like an unpacked tarball, and records and merges
# there. The programs must find their parts relative to themselves.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: tools/check-install.sh BUILD_DIR" >&2
	exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
build=$(cd "$1" && pwd)
cmake --install "$build" --prefix "$scratch/there" >"$scratch/log" || {
	cat "$scratch/log"
	exit 1
}
mv "$scratch/there" "$scratch/here"
cd "$scratch/here"

status=0
for part in bin/xtrace bin/xtrace-merge lib/libxtrace_inject.so \
	lib/xtrace/libunwind-x86_64.so.8 lib/xtrace/libunwind.so.8 lib/xtrace/libdw.so.1 \
	lib/xtrace/simgpu/libcuda.so.1 lib/xtrace/simgpu/libcupti.so \
	lib/xtrace/simgpu/libcupti.so.13 \
	share/xtrace/samples/python_work.py share/xtrace/samples/llm_inference \
	share/xtrace/samples/llm_inference.c share/xtrace/samples/pytorch_train.py \
	share/xtrace/samples/traces/h200-llm.xtr share/xtrace/samples/traces/h200-pytorch.xtr \
	share/xtrace/samples/traces/h200-pytorch-graph.xtr share/xtrace/samples/traces/h100-training.xtr \
	share/xtrace/samples/traces/h200-idle share/xtrace/built-from \
	share/man/man1/xtrace.1 share/bash-completion/completions/xtrace-merge \
	share/bash-completion/completions/xtrace \
	share/zsh/site-functions/_xtrace \
	share/man/man1/xtrace-merge.1 share/man/man1/xtrace-diff.1 share/man/man1/xtrace-baseline.1 share/man/man1/xtrace-history.1 share/doc/xtrace/LICENSE \
	share/xtrace/ci/gate.sh share/xtrace/ci/github/action.yml share/xtrace/ci/gitlab/xtrace-gate.yml share/xtrace/ci/gitlab/workflow.yml.in \
	share/xtrace/ci/github/workflow.yml.in share/xtrace/ci/rules share/xtrace/grafana/xtrace.json; do
	if [ ! -e "$part" ]; then
		echo "check-install: $part was not installed"
		status=1
	fi
done
# Scripts and programs of developers are in no package.
for part in $(ls -d bin/* lib* share/xtrace/*); do
	case $part in
	bin/xtrace | bin/xtrace-merge | lib | share/xtrace/built-from) ;;
	share/xtrace/samples | share/xtrace/ci | share/xtrace/grafana) ;;
	*)
		echo "check-install: $part must not be installed"
		status=1
		;;
	esac
done
# On Debian, every library that we bundle or link must have its licence here.
for package in libunwind8 libzstd1 libcjson1 libiberty-dev; do
	if [ -e "/usr/share/doc/$package/copyright" ] &&
		[ ! -s "share/doc/xtrace/private-libraries/copyright.$package" ]; then
		echo "check-install: the licence of $package was not installed"
		status=1
	fi
done
for program in bin/xtrace bin/xtrace-merge; do
	if ldd "$program" | grep -vE "$scratch|linux-vdso|ld-linux|/lib(c|m|gcc_s|pthread|dl)\.so"; then
		echo "check-install: $program takes that from outside"
		status=1
	fi
done
# A build on a newer system needs newer symbols.
if [ "$(printf '%s\n' 2.36 "$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" | sort -V | tail -n 1)" = 2.36 ]; then
	"$source/tools/check-portable.py" --glibc 2.36 . || status=1
fi
for trace in share/xtrace/samples/traces/*.xtr; do
	if ! bin/xtrace-merge --all "$trace" | grep -q 'attributed to a call path  *100.0 %'; then
		echo "check-install: $trace is not attributed in full"
		status=1
	fi
done
bin/xtrace record --simulate -o "$scratch/data" share/xtrace/samples/llm_inference --tokens 4 >/dev/null
"$source/tests/tools/check-trace.py" "$scratch/data" --dump "$source/tests/tools/xtrace-dump" \
	--merge bin/xtrace-merge || status=1
mkdir -p "$scratch/repository/.git"
(cd "$scratch/repository" && "$scratch/here/bin/xtrace" ci init github --simulate \
	--xtrace "$scratch/here" -- ../here/share/xtrace/samples/llm_inference --tokens 40) >"$scratch/ci" 2>&1 &&
	[ -x "$scratch/repository/.xtrace/ci/gate.sh" ] || {
	echo "check-install: xtrace ci init does not work"
	cat "$scratch/ci"
	status=1
}

# The other component, and the scripts of the checkout that need it.
cmake --install "$build" --prefix . --component tests >"$scratch/log" || {
	cat "$scratch/log"
	exit 1
}
for part in tests/conformance tests/conformance_probe.so samples/patterns/sync_idle samples/idle/lock \
	samples/llm_inference bench/bench_sampled_share; do
	if [ ! -e "libexec/xtrace/$part" ]; then
		echo "check-install: libexec/xtrace/$part was not installed"
		status=1
	fi
done
"$source/tests/gpu/python_frames.py" --xtrace bin/xtrace --simulate --pairs 1 --steps 20 driver >"$scratch/python" &&
	grep -q '100.00 % with Python frames' "$scratch/python" || {
	echo "check-install: python_frames.py does not work"
	cat "$scratch/python"
	status=1
}
"$source/tools/bench.sh" cpu gpu --xtrace bin/xtrace --simulate --quick --rounds 1 -o "$scratch/bench.json" >"$scratch/bench" &&
	grep -q 'xtrace, native stacks' "$scratch/bench" && ! grep -q '"failure": "' "$scratch/bench.json" || {
	cat "$scratch/bench"
	status=1
}
exit $status
