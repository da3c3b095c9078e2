# SPDX-License-Identifier: Apache-2.0
# A program that a signal ended gives 128 + n, as in a shell.
status "$xtrace" record sh -c 'kill -TERM $$'
status "$xtrace" record sh -c 'kill -KILL $$'
