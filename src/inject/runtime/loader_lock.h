/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer's own lock around what must not be under way when the process forks: to ask the C library
 * which libraries are loaded, and to have a file open for a moment. The C library holds its list lock
 * (that of dl_iterate_phdr()) as it answers; a child that is made meanwhile could never load a library
 * again, and a file that is open then stays open in it.
 *
 * This lock is taken before the C library's list lock, never within it. The program knows nothing of that:
 * its threads may hold the list lock when they fork or end the process (in a signal handler that has
 * interrupted dlopen(), in a callback of dl_iterate_phdr()), while the writer has this lock and waits for
 * the other. So fork() does not wait for it where that is so.
 */
#ifndef XT_INJECT_LOADER_LOCK_H
#define XT_INJECT_LOADER_LOCK_H

#include <link.h>
#include <stddef.h>

/* Once, before any of what follows. By InitializeInjection(). */
void loader_lock_begin(void);

/* Not by a thread that has it. */
void loader_lock(void);
void loader_unlock(void);

/* Returns the loader's exported data; *bytes_out is 0 if there is none. Takes the loader's own lock. */
const void *loader_data(size_t *bytes_out);

/* dl_iterate_phdr() under the lock. */
int loader_ask(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);

/*
 * fork(): before it, and after it in the parent and in the child. The lock is not taken where its holder waits
 * for this thread, or for a tenth of a second waits for anything: it does not have the list lock then, and
 * the child is what it would be without us. A thread that forks in a signal handler while it has the lock
 * keeps it.
 */
void loader_lock_before_fork(void);
void loader_lock_in_parent(void);
void loader_lock_in_child(void);

#endif
