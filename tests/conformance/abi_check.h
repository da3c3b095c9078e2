/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares our declarations of CUPTI with the headers of an installed toolkit, at compile time.
 * Included only if the toolkit is installed.
 */
#ifndef XTRACE_CONFORMANCE_ABI_CHECK_H
#define XTRACE_CONFORMANCE_ABI_CHECK_H

#include <cuda.h>
#include <cupti.h>

#include "cuda_abi/cupti_abi.h"

#define SAME_VALUE(ours, theirs)                                                                   \
	_Static_assert((long long)(ours) == (long long)(theirs), #ours " is " #theirs)
#define SAME_SIZE(ours, theirs)                                                                    \
	_Static_assert(sizeof(struct ours) == sizeof(theirs), #ours " has the size of " #theirs)
#define SAME_PLACE(ours, our_field, theirs, their_field)                                           \
	_Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field) &&        \
			       sizeof(((struct ours *)0)->our_field) ==                            \
				       sizeof(((theirs *)0)->their_field),                         \
		       #ours "." #our_field " is " #theirs "." #their_field)

#endif
