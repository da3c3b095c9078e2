/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads all data before the first kernel. Good: loads what the first step needs. xtrace must name
 * the function as the cause of the time before the first kernel, and not as an idle gap.
 */
#include "idle.h"

#define LOAD_NS	      400000000
#define LOAD_FIRST_NS 4000000

STACK_FRAME static void load_dataset(uint64_t ns) /* cause */
{
	compute(ns);
}

int main(int argc, char **argv)
{
	struct pattern p;

	pattern_begin(&p, argc, argv);
	load_dataset(p.is_bad ? LOAD_NS : LOAD_FIRST_NS);
	for (int step = 0; step < STEPS; step++)
		idle_launch(&p);
	return pattern_end(&p);
}
