/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of the driver's error codes. */
#include "simgpu/sim.h"

static const struct {
	CUresult code;
	const char *name;
	const char *text;
} errors[] = {
#define ERROR(code, text)                                                                          \
	{                                                                                          \
		code, #code, text                                                                  \
	}
	ERROR(CUDA_SUCCESS, "no error"),
	ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	ERROR(CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised"),
	ERROR(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
	ERROR(CUDA_ERROR_NO_DEVICE, "no device"),
	ERROR(CUDA_ERROR_INVALID_DEVICE, "no such device"),
	ERROR(CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor a library"),
	ERROR(CUDA_ERROR_INVALID_CONTEXT, "no context is current, or it is not valid"),
	ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "the image has no code for this device"),
	ERROR(CUDA_ERROR_INVALID_PTX, "the PTX text cannot be compiled"),
	ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid handle"),
	ERROR(CUDA_ERROR_ILLEGAL_STATE, "not permitted in this state"),
	ERROR(CUDA_ERROR_NOT_FOUND, "the named symbol was not found"),
	ERROR(CUDA_ERROR_NOT_READY, "not finished yet"),
	ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "work on the device used memory that is not its own"),
	ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs too many resources"),
	ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "a kernel did not end in time"),
	ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "the context has access already"),
	ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "the context has no access"),
	ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is in use"),
	ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context has been destroyed"),
	ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory is registered already"),
	ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory is not registered"),
	ERROR(CUDA_ERROR_LAUNCH_FAILED, "the launch failed"),
	ERROR(CUDA_ERROR_NOT_SUPPORTED, "not supported"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is captured"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an earlier error invalidated the capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "this would join two captures"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin on this stream"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "work that was forked was not joined"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a dependency leaves the capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy stream cannot be captured"),
	ERROR(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread"),
	ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph differs too much for an update"),
	ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

static const char *find_error(CUresult code, bool wants_name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code)
			return wants_name ? errors[i].name : errors[i].text;
	return NULL;
}

CUresult sim_get_error_string(CUresult code, const char **text)
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = find_error(code, false);
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_get_error_name(CUresult code, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = find_error(code, true);
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
