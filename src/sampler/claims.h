/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sees to it that one sampler alone works for each process and trace directory. Sampler thread
 * only.
 */
#ifndef XT_SAMPLER_CLAIMS_H
#define XT_SAMPLER_CLAIMS_H

#include <stdbool.h>
#include <sys/types.h>

struct claims {
	int epoll_fd; /* of the sockets of all claims; -1: none can be made */
	const char *data_dir;
};

/* data_dir must outlive the claims. */
void claims_open(struct claims *claims, const char *data_dir);
void claims_close(struct claims *claims);

/*
 * Returns the descriptor of the claim, which the caller closes, or -errno. The error is -EADDRINUSE
 * if another sampler has the process. Any other error does not forbid sampling it.
 */
int claims_take(struct claims *claims, pid_t pid);

/* Answers the processes that asked who samples them. True if one asked this sampler to end. */
bool claims_answer(struct claims *claims);

#endif
