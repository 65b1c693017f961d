/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Mailbox numbers, expanded from mailbox.def, and the time limits of the guest's driver (Linux
 * amdgpu mxgpu_ai.h). The PF must answer within half of each limit (docs/hardware-contract.md).
 */
#ifndef VGPU_HW_MAILBOX_H
#define VGPU_HW_MAILBOX_H

#include "pf-driver/hw/types.h"

enum mailbox_to_pf {
#define MAILBOX_TO_PF(name, number, answer, doc) MAILBOX_##name = (number),
#define MAILBOX_TO_VF(name, number, doc)
#include "pf-driver/hw/mailbox.def"
#undef MAILBOX_TO_PF
#undef MAILBOX_TO_VF
};

enum mailbox_to_vf {
#define MAILBOX_TO_PF(name, number, answer, doc)
#define MAILBOX_TO_VF(name, number, doc) MAILBOX_VF_##name = (number),
#include "pf-driver/hw/mailbox.def"
#undef MAILBOX_TO_PF
#undef MAILBOX_TO_VF
};

#define MAILBOX_DWORDS		   4u
#define MAILBOX_GUEST_ACK_LIMIT_MS 500u	 /* until the PF acknowledges a message */
#define MAILBOX_GUEST_MSG_LIMIT_MS 6000u /* until the PF sends the answer */

#endif
