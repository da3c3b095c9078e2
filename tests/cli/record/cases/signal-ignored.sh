# SPDX-License-Identifier: Apache-2.0
# Signals that are ignored at the start, for example by nohup, are also ignored in the program.
(
	trap '' HUP
	"$xtrace" record sh -c 'kill -HUP $$; echo survived'
)
