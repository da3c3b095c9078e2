# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled at run time, and the libraries that CuPy calls."""

import cupy
import numpy

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] += a * x[i];
}
extern "C" __global__ void fill(float *y, float value)
{
	y[threadIdx.x] = value;
}
"""


def main():
    n = 1 << 16
    x, y = cupy.arange(n, dtype=cupy.float32) / n, cupy.ones(n, dtype=cupy.float32)
    saxpy = cupy.RawKernel(SOURCE, "saxpy")
    for _ in range(10):
        saxpy((n // 256,), (256,), (cupy.float32(0.5), x, y, cupy.int32(n)))
    print("raw kernel", round(float(y.sum()), 0))
    module = cupy.RawModule(code=SOURCE)
    small = cupy.zeros(32, dtype=cupy.float32)
    module.get_function("fill")((1,), (32,), (small, cupy.float32(3)))
    print("raw module", float(small.sum()))
    square = cupy.ElementwiseKernel("T x", "T y", "y = x * x", "square")
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    print("elementwise, reduction", round(float(square(x).sum()), 1), round(float(norm(x)), 2))

    @cupy.fuse()
    def fused(a, b):
        return cupy.sqrt(a * a + b * b) + 1
    print("fused", round(float(fused(x, y).mean()), 3))
    matrix = cupy.random.RandomState(1).rand(64, 64, dtype=cupy.float32)
    print("product", round(float((matrix @ matrix).sum()), 0))
    print("svd", round(float(cupy.linalg.svd(matrix, compute_uv=False)[0]), 2))
    print("solve", round(float(cupy.linalg.solve(matrix + 9 * cupy.eye(64), matrix).sum()), 1))
    print("fft", round(float(cupy.abs(cupy.fft.fft(x)).sum()), 0))
    print("sort", cupy.sort(matrix.ravel())[:3].round(3).tolist())
    print("unique", cupy.unique(cupy.arange(100) % 7).tolist())
    pinned = cupy.cuda.alloc_pinned_memory(x.nbytes)
    host = numpy.frombuffer(pinned, dtype=numpy.float32, count=n)
    host[:] = 2
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y.set(host, stream=stream)
        back = y.get(stream=stream)
    stream.synchronize()
    print("copies", float(back.sum()))
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    print("managed", float((cupy.ones(1000) * 2).sum()))


if __name__ == "__main__":
    main()
