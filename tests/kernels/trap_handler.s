// SPDX-License-Identifier: MIT
// A trap handler that tells what it sees and, as the runtime's do, goes on behind s_trap and halts
// the wave after anything else. Its memory (TMA): dword 0 trap id, 1 doorbell id, 2 entries, 3
// TRAPSTS, 4 and 5 TTMP0 and TTMP1 as found, 6 STATUS, 7 TTMP11, 8 TTMP8.
.amdgcn_target "amdgcn-amd-amdhsa--gfx900"
.text
.globl trap_handler
.p2align 8
.type trap_handler,@function
trap_handler:
    s_getreg_b32 ttmp12, hwreg(HW_REG_STATUS)
    s_getreg_b32 ttmp14, hwreg(18) // SQ_SHADER_TMA_LO, no name in LLVM 14
    s_getreg_b32 ttmp15, hwreg(19) // SQ_SHADER_TMA_HI
    s_lshl_b64 [ttmp14, ttmp15], [ttmp14, ttmp15], 8
    s_store_dwordx2 [ttmp0, ttmp1], [ttmp14, ttmp15], 0x10
    s_store_dword ttmp12, [ttmp14, ttmp15], 0x18
    s_store_dword ttmp11, [ttmp14, ttmp15], 0x1c
    s_store_dword ttmp8, [ttmp14, ttmp15], 0x20
    s_getreg_b32 ttmp2, hwreg(HW_REG_TRAPSTS)
    s_store_dword ttmp2, [ttmp14, ttmp15], 0xc
    // which queue
    s_mov_b32 ttmp4, exec_lo
    s_mov_b32 ttmp5, exec_hi
    s_mov_b32 exec_lo, 0x80000000
    s_sendmsg sendmsg(MSG_GET_DOORBELL)
doorbell:
    s_nop 7
    s_bitcmp0_b32 exec_lo, 31
    s_cbranch_scc0 doorbell
    s_mov_b32 ttmp3, exec_lo
    s_mov_b32 exec_lo, ttmp4
    s_mov_b32 exec_hi, ttmp5
    s_store_dword ttmp3, [ttmp14, ttmp15], 0x4
    s_mov_b32 ttmp2, 1
    s_atomic_add ttmp2, [ttmp14, ttmp15], 0x8
    // the host hears of it: trap id above the doorbell id
    s_bfe_u32 ttmp2, ttmp1, 0x80010
    s_store_dword ttmp2, [ttmp14, ttmp15], 0x0
    s_dcache_wb
    s_lshl_b32 ttmp4, ttmp2, 10
    s_or_b32 ttmp3, ttmp3, ttmp4
    s_mov_b32 ttmp4, m0
    s_mov_b32 m0, ttmp3
    s_nop 0
    s_sendmsg sendmsg(MSG_INTERRUPT)
    s_mov_b32 m0, ttmp4
    s_cmp_eq_u32 ttmp2, 7
    s_cbranch_scc1 behind
    s_bitset1_b32 ttmp12, 13
    s_branch back
behind:
    s_add_u32 ttmp0, ttmp0, 4
    s_addc_u32 ttmp1, ttmp1, 0
back:
    s_setreg_b32 hwreg(HW_REG_STATUS), ttmp12
    s_rfe_b64 [ttmp0, ttmp1]
end_of_handler:
.size trap_handler, end_of_handler-trap_handler

// not dispatched: says where the handler is
.rodata
.p2align 6
.amdhsa_kernel trap_handler
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 16
.end_amdhsa_kernel
