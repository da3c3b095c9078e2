#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the library's imports: it must not end the program, print on its stdout, query stacks
# slowly, or detach CUPTI. It may use one pointer of static TLS.
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
[ $((tls_bytes)) -eq 8 ] || { echo "$3 uses $((tls_bytes)) bytes of static TLS, not 8"; bad=1; }
exit $bad
