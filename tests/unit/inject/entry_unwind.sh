#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the unwind tables of the entry code: no rule refers to memory below the stack pointer,
# which a signal handler may overwrite. Usage: entry_unwind.sh NM READELF LIBRARY
set -eu
functions=$("$1" "$3" | awk '
	{ place[$3] = $1 }
	END {
		print place["callback_entry"]
		for (name in place) {
			entry = name
			if (sub(/^nvtx_body_/, "nvtx_", entry))
				print place[entry]
		}
	}')
# A row is: place, CFA as "rsp+64", then for each register "u" or the offset from the CFA as "c-16".
"$2" --debug-dump=frames-interp "$3" | awk -v functions="$functions" '
	BEGIN {
		count = split(functions, list)
		for (i = 1; i <= count; i++)
			is_entry[list[i]] = 1
	}
	/ FDE / {
		sub(/.*pc=/, "")
		sub(/\.\..*/, "")
		is_checked = $0 in is_entry
		checked += is_checked
		next
	}
	is_checked && $2 ~ /sp\+/ {
		cfa = substr($2, index($2, "+") + 1)
		for (i = 3; i <= NF; i++)
			if ($i ~ /^c-/ && substr($i, 3) + 0 > cfa + 0) {
				print "a rule refers to memory below the stack pointer: " $0
				is_bad = 1
				next
			}
	}
	END {
		if (checked < 20 || checked != count) {
			print "found " checked + 0 " of " count " functions"
			is_bad = 1
		}
		exit is_bad
	}'
