/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/runtime/recording_state.h"

#include "inject/runtime/hot_state.h"

HOT_STATE atomic_uint recording_paused;
HOT_STATE atomic_bool recording_was_paused;
