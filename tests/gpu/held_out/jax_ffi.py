# SPDX-License-Identifier: Apache-2.0
"""A custom call into a library with CUDA kernels, alone and in a scan.

With --build, compiles jax_ffi.cu with nvcc into the file HELD_OUT_FFI names.
"""

import ctypes
import os
import subprocess
import sys

import numpy

import jax
import jax.numpy as jnp

LIBRARY = os.environ.get("HELD_OUT_FFI", "")


def build():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jax_ffi.cu")
    nvcc = os.environ.get("NVCC", "/usr/local/cuda/bin/nvcc")
    subprocess.run([nvcc, "-O2", "-std=c++17", "-gencode", "arch=compute_90,code=sm_90", "-cudart",
                    "static", "-shared", "-Xcompiler", "-fPIC", "-I", jax.ffi.include_dir(), "-o",
                    LIBRARY, source], check=True)


def main():
    if not os.path.exists(LIBRARY):
        print("no library")
        return
    library = ctypes.cdll.LoadLibrary(LIBRARY)
    jax.ffi.register_ffi_target("scale_twice", jax.ffi.pycapsule(library.ScaleTwice),
                                platform="CUDA")
    x = jnp.arange(1024, dtype=jnp.float32)

    def scale(v, factor):
        call = jax.ffi.ffi_call("scale_twice", jax.ShapeDtypeStruct(v.shape, v.dtype))
        return call(v, factor=numpy.float32(factor))
    print("call", float(jnp.sum(jax.jit(lambda v: scale(v, 3))(x))))

    def body(v, _):
        return scale(v, 0.5) + 1, jnp.max(v)
    final, peaks = jax.jit(lambda v: jax.lax.scan(body, v, None, length=30))(x)
    print("calls in a scan", round(float(jnp.sum(final)), 2), round(float(peaks[1]), 2))


if __name__ == "__main__":
    if "--build" in sys.argv:
        build()
    else:
        main()
