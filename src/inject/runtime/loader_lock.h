/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer's lock around work that must not be in progress when the program forks. Such work asks
 * the C library for the loaded libraries, or has a file open for a moment.
 *
 * The C library holds its list lock (that of dl_iterate_phdr()) during such a query. A child forked
 * then could never load a library again, and would inherit the open file.
 *
 * Lock order: this lock, then the C library's list lock. The program does not follow this order. A
 * thread may fork or exit while it holds the list lock, in a signal handler that interrupted
 * dlopen(). fork() therefore does not wait for a holder that waits for the list lock.
 */
#ifndef XT_INJECT_LOADER_LOCK_H
#define XT_INJECT_LOADER_LOCK_H

#include <link.h>
#include <stddef.h>

/* Once, before any other function here. InitializeInjection() calls it. */
void loader_lock_begin(void);

/* Takes and release the tracer's lock (see above). Not recursive. */
void loader_lock(void);
void loader_unlock(void);

/*
 * Returns the loader's exported data; *bytes_out is 0 if there is none. Takes the loader's own
 * lock.
 */
const void *loader_data(size_t *bytes_out);

/* dl_iterate_phdr() under the lock. */
int loader_iterate(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);

/*
 * Handlers for fork(): before it, then in the parent and in the child. The first does not take the
 * lock if its holder waits for this thread or has been blocked for 0.1 s. The holder does not have
 * the list lock then, so the child is safe. A signal handler that forks while its thread holds the
 * lock keeps it.
 */
void loader_lock_before_fork(void);
void loader_lock_in_parent(void);
void loader_lock_in_child(void);

#endif
