# SPDX-License-Identifier: Apache-2.0
# Exits with 127 or 126 like a shell. Creates and moves no directory.
status "$xtrace" record no-such-command-anywhere
status "$xtrace" record ./no-such-file
echo text >plain
status "$xtrace" record ./plain
status "$xtrace" record .
printf '#!/no/such/interpreter\n' >script
chmod +x script
ls
status "$xtrace" record ./script
# A program for another processor (s390), which cannot load the library.
head -c 64 "$xtrace" >foreign
printf '\026\000' | dd of=foreign bs=1 seek=18 conv=notrunc status=none
chmod +x foreign
status "$xtrace" record ./foreign 2>&1 | sed "s/not $(uname -m | tr _ -);/not this one;/"
rm foreign
# Nsight's tools are not started.
printf '#!/bin/sh\necho started\n' >ncu
chmod +x ncu
status "$xtrace" record ./ncu python3 train.py
# Inside ncu, which sets this variable, nothing is recorded.
status env NV_COMPUTE_PROFILER_PERFWORKS_DIR=/opt/ncu "$xtrace" record true
