/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our hold on CUPTI: the subscriber, the kinds of records and what is set for the whole process.
 * Taken when tracing starts; with --yield given up and taken again (yield.h).
 */
#ifndef XT_INJECT_CUPTI_SUBSCRIBER_H
#define XT_INJECT_CUPTI_SUBSCRIBER_H

#include <stdbool.h>
#include <stddef.h>

#include "inject/cupti/api_table.h"

/* The function that CUPTI calls at each enabled API call. Once, before subscribing. */
void cupti_subscriber_set_callback(xt_cupti_callback callback);

/* Becomes CUPTI's subscriber. 0 or -EBUSY, with one line in why: who is, if that can be known. */
int cupti_subscriber_subscribe(char *why, size_t why_bytes);

/*
 * After this, CUPTI takes buffers and makes callbacks. sets_clock: have it use our clock, which each
 * time but the first spoils a record. 0, or -EIO with one line in why, and nothing is recorded.
 */
int cupti_subscriber_start(enum api_level level, bool sets_clock, char *why, size_t why_bytes);

/* No further records; what is set for the process is as it was. Records that are under way come yet. */
void cupti_subscriber_stop(void);

/* The subscriber is gone, and no callbacks come. */
void cupti_subscriber_unsubscribe(void);

/* Callbacks where the program says what is to be recorded (profiler_calls.h), as long as we subscribe. */
void cupti_subscriber_follow_profiler(void);

#endif
