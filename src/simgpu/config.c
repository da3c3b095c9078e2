/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables of the simulated driver, read once, before main() or when the library
 * is opened.
 *
 *	XTRACE_SIMGPU_SEED=N		seed of the kernel durations
 *	XTRACE_SIMGPU_KERNEL_NS=MIN:MAX	range of kernel durations
 *	XTRACE_SIMGPU_LAUNCH_NS=N	minimum time that a launch takes
 *	XTRACE_SIMGPU_STACK_BYTES=N	minimum stack that a call uses
 *	XTRACE_SIMGPU_DEVICES=N		number of devices, 0 to 8
 *	XTRACE_SIMGPU_SET_UP_MS=N	time that cuInit() and the creation of a context take
 *	XTRACE_SIMGPU_REUSE_IDS=1	new graphs and nodes get the ids of destroyed ones
 *	XTRACE_SIMGPU_REUSE_NAMES=1	names of new kernels reuse the memory of unloaded ones
 *	XTRACE_SIMGPU_TRUTH=FILE	write the ground truth; %p in FILE is the process id
 *	XTRACE_SIMGPU_RANKS=FOLDER	collectives wait for other processes with this folder
 *	XTRACE_SIMGPU_RANKS_TIMEOUT=S	how long they wait at most
 *	XTRACE_SIMGPU_LINK=N		bytes per microsecond of this rank's link
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/sim.h"

static struct sim_config config = {
	.seed = 1,
	.device_count = 1,
	.ranks_timeout_ns = UINT64_C(10000000000),
	.link_bytes_per_us = 100000,
};

const struct sim_config *sim_config(void)
{
	return &config;
}

static void read_kernel_range(const char *text)
{
	char *end;

	config.kernel_min_ns = strtoull(text, &end, 10);
	config.kernel_max_ns = *end == ':' ? strtoull(end + 1, &end, 10) : config.kernel_min_ns;
	if (*end || config.kernel_max_ns < config.kernel_min_ns || !config.kernel_max_ns) {
		fprintf(stderr, "xtrace simulated GPU: XTRACE_SIMGPU_KERNEL_NS=%s is not MIN:MAX\n",
			text);
		config.kernel_min_ns = config.kernel_max_ns = 0;
	}
}

__attribute__((constructor(101))) static void read_environment(void)
{
	const char *text;

	text = getenv("XTRACE_SIMGPU_SEED");
	if (text)
		config.seed = strtoull(text, NULL, 0);
	text = getenv("XTRACE_SIMGPU_KERNEL_NS");
	if (text && *text)
		read_kernel_range(text);
	text = getenv("XTRACE_SIMGPU_LAUNCH_NS");
	if (text)
		config.launch_ns = strtoull(text, NULL, 10);
	text = getenv("XTRACE_SIMGPU_STACK_BYTES");
	if (text)
		config.stack_bytes = strtoull(text, NULL, 10);
	text = getenv("XTRACE_SIMGPU_SET_UP_MS");
	if (text)
		config.set_up_ms = strtoull(text, NULL, 10);
	text = getenv("XTRACE_SIMGPU_DEVICES");
	if (text && *text)
		config.device_count = atoi(text);
	if (config.device_count < 0 || config.device_count > SIM_DEVICES_MAX)
		config.device_count = SIM_DEVICES_MAX;
	text = getenv("XTRACE_SIMGPU_REUSE_IDS");
	config.reuses_ids = text && !strcmp(text, "1");
	text = getenv("XTRACE_SIMGPU_REUSE_NAMES");
	config.reuses_names = text && !strcmp(text, "1");
	text = getenv("XTRACE_SIMGPU_RANKS");
	if (text && *text)
		config.ranks_folder = text;
	text = getenv("XTRACE_SIMGPU_RANKS_TIMEOUT");
	if (text && *text)
		config.ranks_timeout_ns = (uint64_t)(strtod(text, NULL) * 1e9);
	text = getenv("XTRACE_SIMGPU_LINK");
	if (text && strtoull(text, NULL, 10))
		config.link_bytes_per_us = strtoull(text, NULL, 10);
	text = getenv("XTRACE_SIMGPU_TRUTH");
	if (text && *text)
		config.truth_path = text;
}
