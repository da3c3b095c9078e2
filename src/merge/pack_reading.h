/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs the sums that a worker made of a log into a message.
 *
 * The message has no tables of the log. The coordinator loads them from the log itself. So the
 * message is small, and every index in it can be checked.
 */
#ifndef XT_MERGE_PACK_READING_H
#define XT_MERGE_PACK_READING_H

#include "merge/base/pack.h"

struct reading;

/*
 * When writing: the log has been read. When reading: the reading was only initialised, but has the
 * model of its log. Afterwards it is as if it had been read here. The pack's error is -ESTALE if
 * the log has changed meanwhile.
 */
void pack_reading(struct pack *pack, struct reading *reading);

#endif
