# SPDX-License-Identifier: Apache-2.0
# Completion knows all commands, and all options that their help knows.
"$xtrace" completion bash >completion.bash
complete_words() {
	bash -c '. ./completion.bash
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_xtrace
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
"$xtrace" completion zsh >completion.zsh
"$xtrace" help | sed -nE 's/^  ([a-z]+) .*/\1/p' | sort >commands
complete_words xtrace '' | sort | comm -3 - commands
while read -r command; do
	"$xtrace" help "$command" | sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+) .*/\2/p' | sort >helped
	[ ! -s helped ] || complete_words xtrace "$command" -- | sort | comm -3 - helped
	grep -q "^	$command)" completion.zsh || echo "zsh does not know $command"
	while read -r option; do
		grep -q -e "'$option" -e ",$option" completion.zsh || echo "zsh does not know $option"
	done <helped
done <commands
echo "-- arguments"
mkdir -p traces/one
complete_words xtrace record -o tra
complete_words xtrace help re
complete_words xtrace completion z
bash -n completion.zsh && echo "quotes match"
status "$xtrace" completion fish
status "$xtrace" completion
