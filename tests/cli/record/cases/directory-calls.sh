# SPDX-License-Identifier: Apache-2.0
# A recording with CUDA calls but without a launch is kept. A recording of cuInit() alone is empty.
"$xtrace" record --simulate "$sample" --tokens 1 >/dev/null 2>&1
run_calls() {
	"$xtrace" record --simulate python3 -c '
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
memory = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for i in range(int(sys.argv[1])):
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1024))
' "$1" 2>&1 | tail -n 1
	ls
}
run_calls 0
run_calls 1000
