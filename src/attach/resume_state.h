/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the data to write below the stack of the borrowed thread: the stub's block, and the state
 * to return to. The state has the kernel's form of a signal frame. x86-64.
 */
#ifndef XT_ATTACH_RESUME_STATE_H
#define XT_ATTACH_RESUME_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "attach/wait_calls.h"

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
		      size_t content_bytes, uint64_t block, uint64_t entry, char *why,
		      size_t why_bytes);

#endif
