/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>

#include "attach/attach.h"

bool attach_is_interrupted(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action;
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (sigismember(&pending, signals[i]) == 1 &&
		    !sigaction(signals[i], NULL, &action) && action.sa_handler != SIG_IGN)
			return true;
	return false;
}
