# SPDX-License-Identifier: Apache-2.0
# CUDA was initialised, and nothing was launched.
"$xtrace" record --simulate python3 -c '
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuInit(0))
'
