/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_INJECT_STACK_CACHE_EVICT_H
#define XT_INJECT_STACK_CACHE_EVICT_H

#include "inject/capture/stack_cache.h"

/*
 * Evicts at least an eighth of a full stack cache and compacts the rest.
 *
 * It evicts every second variant that was not hit since the last eviction. If too many were hit, it
 * evicts some of those too. Pointers into the cache are void afterwards. Takes milliseconds, at
 * most once per few thousand new stacks. Used by the owning thread alone: no lock, no malloc, no
 * system call.
 */
void stack_cache_make_room(struct stack_cache *cache);

#endif
