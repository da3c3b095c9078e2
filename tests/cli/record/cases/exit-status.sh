# SPDX-License-Identifier: Apache-2.0
# Returns the exit status of the program.
status "$xtrace" record true
status "$xtrace" record -- sh -c 'exit 3'
status "$xtrace" record sh -c 'exit 255'
