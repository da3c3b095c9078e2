#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the library must never do to its host, seen in what it imports: end it, print on its stdout, ask
# for a stack in a way that is slow, detach CUPTI. And of static TLS it takes one pointer.
# Usage: imports.sh NM READELF LIBRARY
set -eu
forbidden='
exit
_exit
_Exit
quick_exit
abort
kill
raise
printf
vprintf
puts
putchar
stdout
fork
system
signal
sigaction
pthread_getattr_np
__tls_get_addr
cuptiFinalize
'
bad=0
imports=$("$1" -D --undefined-only --format=posix "$3" | cut -d' ' -f1 | sed 's/@.*//')
[ "$(echo "$imports" | wc -l)" -gt 50 ] || { echo "no list of imports"; exit 1; }
for symbol in $forbidden; do
	if echo "$imports" | grep -qx "$symbol"; then
		echo "$3 imports $symbol"
		bad=1
	fi
done
tls_bytes=$("$2" -lW "$3" | sed -nE 's/^ *TLS +(0x[0-9a-f]+ +){4}(0x[0-9a-f]+) .*/\2/p')
[ $((tls_bytes)) -eq 8 ] || { echo "its static TLS is of $((tls_bytes)) bytes"; bad=1; }
exit $bad
