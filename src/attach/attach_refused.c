/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place of attach.c on processors other than x86-64, for which there is no stub.
 */
#include <errno.h>

#include "attach/attach.h"

bool attach_is_supported(void)
{
	return false;
}

int attach_process(struct target *target, const struct attach_request *request,
		   const struct why *why)
{
	(void)target, (void)request;
	return refuse(why, -ENOSYS, "xtrace attaches on x86-64 only");
}
