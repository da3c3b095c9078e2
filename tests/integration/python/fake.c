/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that looks like a Python interpreter but is unknown: with FAKE_VERSION it has an
 * unsupported version, with FAKE_NAMELESS it lacks required symbols. Reading its thread state would
 * crash, because there is none.
 */
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void *PyGILState_GetThisThreadState(void);

void *PyGILState_GetThisThreadState(void)
{
	return (void *)8;
}

#ifdef FAKE_VERSION
EXPORTED extern const unsigned long Py_Version;
const unsigned long Py_Version = FAKE_VERSION;
#endif

#ifndef FAKE_NAMELESS
EXPORTED extern char _PyRuntime[4096];
char _PyRuntime[4096];
#endif
