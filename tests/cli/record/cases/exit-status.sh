# SPDX-License-Identifier: Apache-2.0
# The exit status is the program's own.
status "$xtrace" record true
status "$xtrace" record -- sh -c 'exit 3'
status "$xtrace" record sh -c 'exit 255'
