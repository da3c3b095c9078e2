# SPDX-License-Identifier: Apache-2.0
# Every launch of the sample on the simulated GPU is recorded. Each of 2 conversations has 3 forward
# passes of 2 layers with 17 launches each, and 4 more per forward pass: 228 in all.
status "$xtrace" record --simulate "$sample" --threads 2 --layers 2 --dim 64 --prompt 4 --tokens 3
status "$xtrace" record --simulate "$sample" --layers 1 --dim 64 --tokens 1 --verify
ls xtrace.data | sed 's/^[^.]*.*\.[0-9]*\.xtr$/HOST.PID.xtr/'
