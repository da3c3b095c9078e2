# SPDX-License-Identifier: Apache-2.0
# stdin, stdout and arguments pass through as they are.
printf 'a\nb' | "$xtrace" record -- sh -c 'cat; printf "<%s>" "$@"' sh -o '' 'two words'
