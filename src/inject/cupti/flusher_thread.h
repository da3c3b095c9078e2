/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_INJECT_FLUSHER_THREAD_H
#define XT_INJECT_FLUSHER_THREAD_H

/*
 * The main function of the flusher thread. Returns after flusher_stop() and a last, forced flush.
 */
void *flusher_main(void *unused);

#endif
