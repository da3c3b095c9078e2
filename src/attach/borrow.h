/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops one thread, and lets it run the stub. If this process ends at any point, the kernel lets
 * the thread continue. Before its registers are written, it continues as if nothing had happened;
 * afterwards, with the stub.
 */
#ifndef XT_ATTACH_BORROW_H
#define XT_ATTACH_BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "attach/candidates.h"
#include "attach/code_site.h"
#include "attach/stub.h"

struct tracer {
	pid_t pid;
	bool holds_main;
	bool is_stuck; /* a thread did not stop: the end of the tracer lets it go */
	struct why why;
};

/* Before the tracer ends. */
void tracer_end(struct tracer *tracer);

#define RESUME_EXTENDED_BYTES_MAX 16384 /* AVX-512 needs 2.7 KiB, AMX 11 KiB */
#define RESUME_IMAGE_BYTES_MAX	  (STUB_DATA_BYTES_MAX + RESUME_EXTENDED_BYTES_MAX + 4096)

/* The state of a thread that was stopped in a system call. */
struct thread_state {
	struct user_regs_struct registers;
	uint64_t blocked;			     /* signals */
	uint8_t extended[RESUME_EXTENDED_BYTES_MAX]; /* as of NT_X86_XSTATE */
	size_t extended_bytes;
};

/* Bytes for the thread's stack, and the registers with which the stub starts. */
struct resume_image {
	uint64_t address;
	uint8_t *bytes; /* of RESUME_IMAGE_BYTES_MAX */
	size_t byte_count;
	struct user_regs_struct registers;
};

/*
 * Fills the image. contents: of the block. entry: where the stub starts. Returns 0, or -ENOTSUP
 * with *why if the state cannot be restored exactly.
 */
int resume_image_make(struct resume_image *image, const struct thread_state *state,
		      const struct wait_restart *restart, const void *contents,
		      size_t content_bytes, uint64_t block, uint64_t entry, const struct why *why);

/* The start of the stub's block. */
struct block_contents {
	uint8_t bytes[STUB_DATA_BYTES_MAX];
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
