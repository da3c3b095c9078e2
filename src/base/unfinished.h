/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders that are removed if the process ends before they are complete: by a signal that
 * ends it, or for lack of memory.
 */
#ifndef XT_BASE_UNFINISHED_H
#define XT_BASE_UNFINISHED_H

/* path must live until unfinished_remove(). NULL is ignored. Main thread only. */
void unfinished_add(const char *path);
void unfinished_remove(const char *path);

/*
 * Hold back the signals that end the process while a file exists that is not added yet, or no
 * longer. Main thread only: the other threads block all signals.
 */
void unfinished_hold(void);
void unfinished_release(void);

/* Deletes them, folders after their files. For signal handlers, too. */
void unfinished_delete(void);

#endif
