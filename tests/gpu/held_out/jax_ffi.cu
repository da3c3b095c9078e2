/* SPDX-License-Identifier: Apache-2.0 */
/* A custom call of jax_ffi.py: two launches on the stream of XLA. */

#include "xla/ffi/api/ffi.h"
#include <cuda_runtime_api.h>

namespace ffi = xla::ffi;

__global__ void scale(const float *in, float *out, float factor, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		out[i] = in[i] * factor;
}

static ffi::Error scale_twice(cudaStream_t stream, float factor, ffi::Buffer<ffi::F32> in,
			      ffi::ResultBuffer<ffi::F32> out)
{
	int count = (int)in.element_count();
	int blocks = (count + 255) / 256;

	scale<<<blocks, 256, 0, stream>>>(in.typed_data(), out->typed_data(), factor, count);
	scale<<<blocks, 256, 0, stream>>>(out->typed_data(), out->typed_data(), factor, count);
	return cudaGetLastError() == cudaSuccess ? ffi::Error::Success()
						 : ffi::Error::Internal("the launch failed");
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(ScaleTwice, scale_twice,
			      ffi::Ffi::Bind()
				      .Ctx<ffi::PlatformStream<cudaStream_t>>()
				      .Attr<float>("factor")
				      .Arg<ffi::Buffer<ffi::F32>>()
				      .Ret<ffi::Buffer<ffi::F32>>());
