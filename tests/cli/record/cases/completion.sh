# SPDX-License-Identifier: Apache-2.0
# Completes every command and every option that --help lists.
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
	[ ! -s helped ] || complete_words xtrace "$command" -- | sort -u | comm -13 - helped
	grep -q "^	$command)" completion.zsh || echo "zsh does not know $command"
	while read -r option; do
		grep -q -e "'\**$option" -e ",$option" completion.zsh || echo "zsh does not know $option"
	done <helped
done <commands
echo "-- arguments"
mkdir -p traces/one
complete_words xtrace record -o tra
complete_words xtrace help re
complete_words xtrace completion z
complete_words xtrace baseline pr
complete_words "$xtrace" baseline '' | sort
complete_words "$xtrace" ci ''
complete_words "$xtrace" ci init --sim
complete_words "$xtrace" baseline save --l
complete_words "$xtrace" baseline save tra
complete_words "$xtrace" report --finding gpu
complete_words "$xtrace" report --weight = gpu-e
complete_words "$xtrace" report --output tra
complete_words "$xtrace" diff --json tra
complete_words "$xtrace" diff --top 1
"$xtrace" report --version | sed 's/ .*//'
complete_words "$xtrace" report --filt
complete_words "$xtrace" report --text
complete_words "$xtrace" diff --fail
complete_words xtrace diff -f ''
complete_words xtrace baseline up
complete_words xtrace baseline update --keep 5 tra
complete_words xtrace export --filt
complete_words "$xtrace-merge" --filt
complete_words "$xtrace-merge" tra
complete_words xtrace record --api wo
complete_words xtrace record --python = o
for level in $(complete_words xtrace record --api ''); do
	"$xtrace" record --api "$level" 2>&1 | grep -e --api || :
done
for mode in $(complete_words xtrace record --python ''); do
	"$xtrace" record --python "$mode" 2>&1 | grep -e --python || :
done
bash -n completion.zsh && echo "quotes match"
status "$xtrace" completion fish
status "$xtrace" completion
