# SPDX-License-Identifier: Apache-2.0
# Passes stdin, stdout and arguments to the program unchanged.
printf 'a\nb' | "$xtrace" record -- sh -c 'cat; printf "<%s>" "$@"' sh -o '' 'two words'
