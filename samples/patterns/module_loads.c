/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the same code again in each step.
 */
#include "pattern.h"

#define STEPS	  60
#define KERNEL_NS 100000

STACK_FRAME static void step_bad(const struct pattern *p)
{
	struct pattern own = *p;

	CHECK(cuModuleLoadData(&own.module, pattern_ptx)); /* finding */
	CHECK(cuModuleGetFunction(&own.spin, own.module, "spin"));
	pattern_spin(&own, p->stream, FULL_BLOCKS, KERNEL_NS);
}

STACK_FRAME static void step_good(const struct pattern *p)
{
	pattern_spin(p, p->stream, FULL_BLOCKS, KERNEL_NS);
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	for (int i = 0; i < STEPS; i++)
		(p.is_bad ? step_bad : step_good)(&p);
	return pattern_end(&p);
}
