/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What looks like a Python interpreter from outside and is none that is known: with FAKE_VERSION a
 * version that no table has, with FAKE_NAMELESS without the symbols that matter. Were anything read of it
 * as if it were one, the program would crash: there is nothing behind its thread state.
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
