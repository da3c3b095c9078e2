# SPDX-License-Identifier: Apache-2.0
"""multiple.py METHOD: processes as Python creates them, each with launches. METHOD is "fork" or
"spawn" of multiprocessing, or "tree": workers as torchrun starts them, with their own data
loaders.
"""

import ctypes
import multiprocessing
import subprocess
import sys

PTX = (b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kernel() { ret; }\n")


def launch(count):
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, function = ctypes.c_int(), *(ctypes.c_void_p() for _ in range(3))
    results = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
               cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
               cuda.cuCtxSetCurrent(context),
               cuda.cuModuleLoadData(ctypes.byref(module), PTX),
               cuda.cuModuleGetFunction(ctypes.byref(function), module, b"kernel")]
    for _ in range(count):
        results.append(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None))
    results.append(cuda.cuCtxSynchronize())
    return sum(map(bool, results))


def load(number):
    """The work of a data loader, without the GPU."""
    return number * number


def work(number):
    return number, launch(number + 1)


def main():
    method = sys.argv[1]
    if method == "worker":
        failed = launch(3)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            loaded = pool.map(load, range(5))
        print(sys.argv[2], failed, launch(2), loaded, flush=True)
        return 0
    if method == "tree":
        workers = [subprocess.Popen([sys.executable, __file__, "worker", str(rank)],
                                    stdout=subprocess.PIPE) for rank in range(3)]
        for worker in workers:
            print(worker.communicate()[0].decode(), worker.returncode)
        return 0
    if method == "spawn":
        print(launch(2))  # a child of a process that has used CUDA cannot use it
    with multiprocessing.get_context(method).Pool(2) as pool:
        print(sorted(pool.map(work, range(4))), pool.map(load, range(3)))
        pool.close()
        pool.join()
    return 3


if __name__ == "__main__":
    sys.exit(main())
