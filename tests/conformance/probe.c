/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the suite lets the driver load by CUDA_INJECTION64_PATH: it counts.
 */
#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(void);
EXPORT int probe_injection_count;

EXPORT int InitializeInjection(void)
{
	probe_injection_count++;
	return 1;
}
