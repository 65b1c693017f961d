// SPDX-License-Identifier: MIT
// The first lane of each wave sends an interrupt with the wave's number and waits for an answer.
#include "kernel.h"

kernel void interrupt(global volatile uint* mailbox, uint payload) {
    const uint wave = group_x() * (group_size_x() / 64) + local_x() / 64;
    if (local_x() % 64 != 0) return;
    __builtin_amdgcn_s_sendmsg(1, payload + wave);
    while (mailbox[wave] == 0) __builtin_amdgcn_s_sleep(1);
    mailbox[wave] = mailbox[wave] + 1;
}
