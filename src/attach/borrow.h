/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops one thread, and lets it run the stub. If this process ends at any point, the kernel lets
 * the thread continue. Before its registers are written, it continues as if nothing had happened;
 * afterwards, with the stub.
 */
#ifndef XT_ATTACH_BORROW_H
#define XT_ATTACH_BORROW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/code_site.h"
#include "attach/target.h"
#include "attach/tracer.h"

/* The start of the stub's block. */
struct block_contents {
	uint8_t bytes[12288]; /* STUB_DATA_BYTES_MAX */
	size_t byte_count;
};

struct borrowed {
	pid_t tid;
	uint64_t stack_pointer; /* of its call */
};

/*
 * Runs in the tracer. Returns 0 with *borrowed if the stub runs or will run. Otherwise the thread
 * continues as before; the result and tracer->why are those of tracer_stop().
 */
int borrow_thread(struct target *target, struct tracer *tracer, pid_t tid,
		  const struct code_site *site, const struct address_map *map,
		  const struct block_contents *contents, struct borrowed *borrowed);

#endif
