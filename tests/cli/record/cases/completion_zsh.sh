# SPDX-License-Identifier: Apache-2.0
# Completions of zsh for xtrace and its link xtrace-merge, as printed by zsh itself.
command -v zsh >/dev/null || {
	echo "there is no zsh" >&2
	exit 77
}
mkdir -p traces functions
PATH=$(dirname "$xtrace"):$PATH
xtrace completion zsh >functions/_xtrace
# zsh completes each line as if TAB were pressed at its end, then exits.
cat >.zshrc <<'END'
autoload -Uz compinit
fpath=($PWD/functions $fpath)
compinit -u -D
compadd() {
	local -a hits
	if [[ ${@[1,(i)(-|--)]} == *-[A-Za-z]#[OAD]\ * ]]; then
		builtin compadd "$@"
		return
	fi
	builtin compadd -A hits "$@"
	(( $#hits )) && print -r -- "  $hits" >>offered
	builtin compadd "$@"
}
zle -C offer list-choices _main_complete
zle-line-init() {
	while read -r line <&3; do
		print -r -- "$line" >>offered
		BUFFER=${line%.} CURSOR=$#BUFFER
		zle offer
	done
	BUFFER=exit
	zle accept-line
}
zle -N zle-line-init
exec 3<lines
END
# The dot at the end marks the cursor.
cat >lines <<'END'
xtrace bas.
xtrace baseline .
xtrace baseline save --la.
xtrace baseline save tra.
xtrace record --api .
xtrace report --finding gpu.
xtrace report --weight gpu-.
xtrace report --no-o.
xtrace diff --fail.
xtrace diff --rules tra.
xtrace help re.
xtrace diff --err.
xtrace export --filt.
xtrace-merge --by .
END
export PATH TERM=xterm ZDOTDIR="$PWD"
python3 -c 'import pty, sys; sys.exit(pty.spawn(["zsh", "-i"]))' </dev/null >screen 2>&1
cat offered
