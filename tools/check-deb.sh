#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian package in a bare Debian 12, and uses, removes and purges it there. No file of
# it may remain.
#
#   tools/check-deb.sh [-d DIR] [DEB]
#
# Without DEB, the last commit is built twice, in two places, and the packages must have the same
# bytes. The system is set up once in DIR (default: build-systems). Needs root, debootstrap and
# Debian's mirror.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/tools/portable/chroot.sh"
work=$source/build-systems
while getopts d: option; do
	case $option in
	d) work=$OPTARG ;;
	*)
		sed -n '3,10s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
mkdir -p "$work"
work=$(cd "$work" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/given"

# Places of different lengths, so that no path can get into the files unnoticed.
build_twice() {
	for place in first/place second; do
		git clone -q --no-hardlinks "$source" "$scratch/$place/source"
		"$scratch/$place/source/tools/deb.sh" "$scratch/$place"
	done
	for deb in "$scratch"/second/*.deb; do
		cmp "$scratch/first/place/${deb##*/}" "$deb" || {
			echo "check-deb: two builds differ" >&2
			exit 1
		}
	done
	echo "check-deb: two builds have the same bytes"
}

if [ $# -eq 0 ]; then
	build_twice
	cp "$scratch"/second/*.deb "$scratch/given"
else
	cp "$1" "$scratch/given"
fi

cat >"$scratch/check" <<'EOS'
fail() {
	echo "check-deb: $*"
	exit 1
}
# Logs, caches and copies of older states are not the package's.
list_files() {
	find / -xdev \( -path /tmp -o -path /proc -o -path /var/log -o -path /var/cache \) -prune -o \
		! -path '/var/lib/apt/*' ! -path '/var/lib/dpkg/*-old' ! -path '*/__pycache__*' -print | sort
}
apt() {
	apt-get -q -y -o Dpkg::Use-Pty=0 "$@" >apt 2>&1 || fail "apt-get $*: $(cat apt)"
}
apt update
list_files >before
apt install --no-install-recommends /mnt/given/xtrace-gpu_*.deb

private=$(dirname "$(dpkg -L xtrace-gpu | grep '/libxtrace_inject.so$')")
find "$private" /usr/bin/xtrace -type f -exec ldd {} + 2>&1 | grep 'not found' | grep -v libcuda &&
	fail "libraries are missing"
xtrace record --simulate "$private/samples/llm_inference" --tokens 4 >record 2>&1 || fail "$(cat record)"
grep -q 'recorded 1 process, 288 launches, 288 kernels, 0 lost' record || fail "$(cat record)"
xtrace report --text --all >text 2>&1 && grep -q matmul_kernel text || fail "$(cat text)"
xtrace report --no-open >report 2>&1 && grep -q '</html>' xtrace.data/report.html ||
	fail "$(cat report)"
xtrace-merge xtrace.data --folded folded >merge 2>&1 &&
	grep -q 'main;.*;\[GPU_Kernel\]matmul_kernel' folded || fail "$(cat merge)"
xtrace version --verbose | grep -q '^commit  *[0-9a-f]' || fail "the commit is unknown"

for page in xtrace xtrace-merge xtrace-diff xtrace-baseline xtrace-history; do
	MANWIDTH=100 man --warnings "$page" >page 2>warnings && grep -q '^NAME' page && [ ! -s warnings ] ||
		fail "man $page: $(cat warnings)"
done
bash -ec '. /usr/share/bash-completion/bash_completion
	_completion_loader xtrace || true
	function=$(complete -p xtrace | sed "s/.* -F \([^ ]*\) .*/\1/")
	COMP_WORDS=(xtrace rec) COMP_CWORD=1 COMP_LINE="xtrace rec" COMP_POINT=10
	$function xtrace rec xtrace
	[[ " ${COMPREPLY[*]} " == *" record "* ]]' || fail "bash does not complete 'xtrace rec'"
[ "$(zsh -fc 'autoload -U compinit; compinit -D; print $_comps[xtrace]')" = _xtrace ] ||
	fail "zsh finds no completion"
apt-get -s install xtrace >conflict
grep -q '^Remv xtrace-gpu ' conflict || fail "Debian's xtrace could be installed beside it"

apt remove xtrace-gpu
dpkg --purge xtrace-gpu >purge 2>&1 || fail "$(cat purge)"
apt autoremove --purge
list_files >after
diff before after || fail "files remain"
echo "check-deb: installed, used, removed and purged on Debian $(cat /etc/debian_version)"
EOS
make_system "$work/bookworm-deb" bookworm python3,man-db,bash-completion,zsh
# A copy, so that a failed check leaves the system as it was.
cp -a "$work/bookworm-deb" "$scratch/root"
in_system "$scratch/root" "$scratch/check" "$scratch/given"
