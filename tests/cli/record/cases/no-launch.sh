# SPDX-License-Identifier: Apache-2.0
# The program initialised CUDA but launched nothing.
"$xtrace" record --simulate python3 -c '
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuInit(0))
'
