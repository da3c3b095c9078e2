/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library that the driver loads through CUDA_INJECTION64_PATH. It counts its loads.
 */
#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(void);
EXPORT int probe_injection_count;

EXPORT int InitializeInjection(void)
{
	probe_injection_count++;
	return 1;
}
