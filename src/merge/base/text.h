/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
