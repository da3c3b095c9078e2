# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that fetch packages of Debian 11, whose glibc tools/portable.sh builds for.
# Needs Debian's mirror (DEBIAN_MIRROR) and the package debian-archive-keyring.

# The architecture as Debian calls it, and its library folders.
case $(uname -m) in
x86_64) architecture=amd64 triplet=x86_64-linux-gnu ;;
*)
	echo "${0##*/}: no recipe for $(uname -m)" >&2
	exit 2
	;;
esac
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
signed=signed-by=/usr/share/keyrings/debian-archive-keyring.gpg

# private_apt DIR [SOURCE]...: fetches the package lists of Debian 11 and of the given lines of
# sources.list. Later apt commands use these. Nothing on this machine is installed or configured.
private_apt() {
	apt=$1
	shift
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	printf '%s\n' "deb [arch=$architecture $signed] $mirror bullseye main" "$@" >"$apt/sources.list"
	cat >"$apt/apt.conf" <<-EOF
		Dir::Etc::SourceList "$apt/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::State::Lists "$apt/lists";
		Dir::State::Status "/dev/null";
		Dir::Cache "$apt/cache";
		APT::Architecture "$architecture";
		APT::Sandbox::User "";
		Acquire::Languages "none";
		Acquire::Retries "3";
	EOF
	export APT_CONFIG="$apt/apt.conf"
	apt-get -qq update
}
