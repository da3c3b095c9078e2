/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the tracer: environment variables, or the text that xtrace attach passed instead.
 *
 * A process that runs already may be changing its environment, so getenv() could read freed memory
 * there. Everything that is read at start-up goes through here.
 */
#ifndef XT_INJECT_SETTINGS_H
#define XT_INJECT_SETTINGS_H

#include <stdbool.h>

/*
 * From now on, settings come from `block` alone: strings NAME=VALUE, ended by an empty one. The
 * block must stay valid while the tracer starts. NULL: from the environment again.
 */
void settings_use(const char *block);

/* Whether a process that ran already was attached. */
bool settings_are_attached(void);

/* The value of a variable, or NULL. Only in the thread that starts the tracer. */
const char *setting(const char *name);

#endif
