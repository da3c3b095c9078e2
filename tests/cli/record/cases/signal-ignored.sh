# SPDX-License-Identifier: Apache-2.0
# What was ignored before, as nohup has it, is ignored in the program, too.
(
	trap '' HUP
	"$xtrace" record sh -c 'kill -HUP $$; echo survived'
)
