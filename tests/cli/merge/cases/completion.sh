# SPDX-License-Identifier: Apache-2.0
# Completes every option that --help lists, and their values.
"$merge_program" --completion bash >completion.bash
complete_words() {
	bash -c '. ./completion.bash
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_xtrace
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
"$merge_program" --help | sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+).*/\2/p' | sort >helped
complete_words xtrace-merge -- | sort | comm -3 - helped
echo "-- values"
complete_words xtrace-merge --by st
complete_words xtrace-merge --weight gpu-
complete_words xtrace-merge --by = st
complete_words xtrace-merge --finding gpu-
complete_words xtrace-merge --python =
touch one.xtr
complete_words xtrace-merge on
echo "-- zsh"
"$merge_program" --completion zsh >completion.zsh
head -n 1 completion.zsh
while read -r option; do
	grep -qE "^		'(\*?|.*\{-[a-zA-Z],)$option" completion.zsh || echo "zsh does not know $option"
done <helped
grep -c "'" completion.zsh >/dev/null && bash -n completion.zsh && echo "quotes match"
merge --completion fish
