# SPDX-License-Identifier: Apache-2.0
# 'xtrace record FILE.py' runs a script that is not executable with python3, or with the program
# that XTRACE_INTERPRETER names.
echo 'import sys; print(sys.argv)' >plain.py
status "$xtrace" record -q -s plain.py -x y
XTRACE_INTERPRETER=/bin/echo status "$xtrace" record -q -s plain.py -x y
printf '#!/bin/sh\necho executed "$@"\n' >executable.py
chmod +x executable.py
status "$xtrace" record -q -s ./executable.py -x
XTRACE_INTERPRETER=/bin/echo status "$xtrace" record -q -s ./executable.py -x
XTRACE_INTERPRETER=/missing status "$xtrace" record -q -s plain.py
status "$xtrace" record -q -s missing.py
mkdir folder.py
status "$xtrace" record -q -s folder.py
