# SPDX-License-Identifier: Apache-2.0
# The environment of the recorded program.
"$xtrace" record -o here sh -c 'echo $CUDA_INJECTION64_PATH; echo $XTRACE_DATA; echo ${LD_LIBRARY_PATH-none}'
LD_LIBRARY_PATH=/some/where "$xtrace" record --simulate sh -c 'echo $LD_LIBRARY_PATH; echo $XTRACE_CUPTI'
"$xtrace" record --simulate sh -c 'echo $LD_LIBRARY_PATH'
CUDA_INJECTION64_PATH=/other/tool.so "$xtrace" record sh -c 'echo $CUDA_INJECTION64_PATH'
# Variables of earlier versions.
XTRACE_DUTY=1s/60s XTRACE_MAX_OVERHEAD=2 "$xtrace" record -q --simulate "$sample" --tokens 1 2>&1 |
	grep -E 'DUTY|OVERHEAD'
