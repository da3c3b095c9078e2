#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in which aarch64 programs are emulated by qemu, also those that other programs
# start. Needs qemu-user and Linux 6.7 or later; no root.
# Usage: XTRACE_ARM64_ROOT=DIR tools/arm64-emulate.sh COMMAND [ARGUMENT]...
#
# A user namespace has its own table of program formats (binfmt_misc), so the machine's table does
# not change. The flag F opens qemu once, so that programs in other mount namespaces find it.
set -eu
if [ $# -eq 0 ] || [ ! -d "${XTRACE_ARM64_ROOT-}" ]; then
	echo "usage: XTRACE_ARM64_ROOT=DIR tools/arm64-emulate.sh COMMAND [ARGUMENT]..." >&2
	exit 2
fi
export XTRACE_QEMU
XTRACE_QEMU=$(command -v qemu-aarch64) || {
	echo "arm64-emulate: cannot find qemu-aarch64; install qemu-user" >&2
	exit 2
}
export QEMU_LD_PREFIX=$XTRACE_ARM64_ROOT
# A signature of qemu's own, because the architecture's takes most of the time.
export QEMU_CPU=${QEMU_CPU:-max,pauth-impdef=on}
# System calls that qemu lacks. The loader replaces $PLATFORM by aarch64 or x86_64.
export LD_PRELOAD=${LD_PRELOAD-$XTRACE_ARM64_ROOT/usr/lib/emulation/\$PLATFORM/qemu_calls.so}
exec unshare --user --map-root-user --mount -- bash -c '
	table=/proc/sys/fs/binfmt_misc
	magic="\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
	mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
	if ! mount -t binfmt_misc none $table ||
		! printf %s ":aarch64:M::$magic:$mask:$XTRACE_QEMU:F" >$table/register; then
		echo "arm64-emulate: cannot set up binfmt_misc in a user namespace" >&2
		exit 2
	fi
	unset XTRACE_QEMU
	exec "$@"' emulate "$@"
