# SPDX-License-Identifier: Apache-2.0
# If a signal ends the program, the exit status is 128 + n, as in a shell.
status "$xtrace" record sh -c 'kill -TERM $$'
status "$xtrace" record sh -c 'kill -KILL $$'
