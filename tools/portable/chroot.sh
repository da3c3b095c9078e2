# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that try packages in a bare system. Needs root, debootstrap and the mirror.

# make_system ROOT SUITE PACKAGE,...: sets up the system once.
make_system() {
	[ -e "$1/made" ] && return
	rm -rf "$1"
	mkdir -p "${1%/*}"
	debootstrap --variant=minbase --include="$3" "$2" "$1" \
		"${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$1.log" 2>&1 || {
		echo "${0##*/}: cannot set up $2, see $1.log" >&2
		return 1
	}
	mkdir -p "$1/mnt/given"
	touch "$1/made"
}

# in_system ROOT SCRIPT GIVEN [ARGUMENT]...: runs a shell script in the system, in an empty /tmp.
# The folder GIVEN is in /mnt/given. A private mount namespace leaves no mount behind.
in_system() {
	unshare --mount sh -eu -c '
		root=$1 script=$2 given=$3
		shift 3
		mount -t proc proc "$root/proc"
		mount -t tmpfs tmpfs "$root/tmp"
		mount --bind "$given" "$root/mnt/given"
		mkdir "$root/tmp/work"
		cp "$script" "$root/tmp/script"
		cd "$root"
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			chroot "$root" sh -eu -c "cd /tmp/work && exec sh -eu /tmp/script \"\$@\"" sh "$@"
		' sh "$@"
}
