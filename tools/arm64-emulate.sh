#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in which aarch64 programs are emulated by qemu, also those that other programs
# start. Needs qemu-user and Linux 6.7 or later; no root.
# Usage: XTRACE_ARM64_ROOT=DIR tools/arm64-emulate.sh [--chroot] COMMAND [ARGUMENT]...
# --chroot: DIR is the system, so all programs are emulated. It needs tools/arm64-root.sh --system.
# The current folder and /tmp are those outside.
#
# A user namespace has its own table of program formats (binfmt_misc), so the machine's table does
# not change. The flag F opens qemu once, so that programs in other mount namespaces find it.
set -eu
chroot=
if [ "${1-}" = --chroot ]; then
	chroot=1
	shift
fi
if [ $# -eq 0 ] || [ ! -d "${XTRACE_ARM64_ROOT-}" ]; then
	echo "usage: XTRACE_ARM64_ROOT=DIR tools/arm64-emulate.sh [--chroot] COMMAND [ARGUMENT]..." >&2
	exit 2
fi
XTRACE_ARM64_ROOT=$(realpath "$XTRACE_ARM64_ROOT")
export XTRACE_QEMU
XTRACE_QEMU=$(command -v qemu-aarch64) || {
	echo "arm64-emulate: cannot find qemu-aarch64; install qemu-user" >&2
	exit 2
}
# A signature of qemu's own, because the architecture's takes most of the time.
export QEMU_CPU=${QEMU_CPU:-max,pauth-impdef=on}

register='
	table=/proc/sys/fs/binfmt_misc
	magic="\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
	mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
	if ! mount -t binfmt_misc none $table ||
		! printf %s ":aarch64:M::$magic:$mask:$XTRACE_QEMU:F" >$table/register; then
		echo "arm64-emulate: cannot set up binfmt_misc in a user namespace" >&2
		exit 2
	fi
	unset XTRACE_QEMU'

# System calls that qemu lacks. The loader replaces $PLATFORM by aarch64 or x86_64.
calls=/usr/lib/emulation/\$PLATFORM/qemu_calls.so
if [ ! "$chroot" ]; then
	# --chroot leaves this folder behind. qemu would look there for devices.
	rmdir "$XTRACE_ARM64_ROOT/dev" 2>/dev/null || :
	export QEMU_LD_PREFIX=$XTRACE_ARM64_ROOT
	export LD_PRELOAD=${LD_PRELOAD-$XTRACE_ARM64_ROOT$calls}
	exec unshare --user --map-root-user --mount -- bash -c "$register"'
		exec "$@"' emulate "$@"
fi

# qemu itself is a program of the host, whose libraries have folders of their own.
exec unshare --user --map-root-user --mount --pid --fork --kill-child -- bash -c "$register"'
	root=$1 calls=$2
	shift 2
	mount --bind "$root" "$root" && cd "$root" && mkdir -p usr/lib64 usr/lib/x86_64-linux-gnu ".$OLDPWD"
	ln -sfn usr/lib64 lib64
	mount -t proc proc proc || exit 2
	for folder in /dev /sys /tmp "$OLDPWD" /usr/lib64 /usr/lib/x86_64-linux-gnu; do
		mkdir -p ".$folder" && mount --rbind "$folder" ".$folder" || exit 2
	done
	exec chroot . /usr/bin/env -C "$OLDPWD" -u OLDPWD -u XTRACE_ARM64_ROOT PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LD_PRELOAD="$calls" "$@"' emulate "$XTRACE_ARM64_ROOT" "$calls" "$@"
