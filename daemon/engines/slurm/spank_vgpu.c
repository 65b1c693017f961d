// SPDX-License-Identifier: MIT
//
// SPANK plugin for Slurm. Calls `vgpu-slurm ensure` as root at the start of each step on a host. If
// slurmctld could not reach a host for a time and then restarts a job there, slurmd may skip the
// prolog. Without this plugin the job would then have no VF.
//
// The plugin never returns a failure, because slurmd would then drain the host. If the job still
// has no VF, `vgpu-slurm task` fails the job.
#include <slurm/spank.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef VGPU_SLURM_PROGRAM
#define VGPU_SLURM_PROGRAM "/usr/bin/vgpu-slurm"
#endif

SPANK_PLUGIN(vgpu, 1)

int slurm_spank_init(spank_t spank, int argc, char** argv) {
    const char* program = argc > 0 ? argv[0] : VGPU_SLURM_PROGRAM;
    char command[4096];
    uint32_t job = 0;

    if (spank_context() != S_CTX_REMOTE || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return 0;
    snprintf(command, sizeof(command), "%s --job %u ensure", program, job);
    if (system(command) != 0) slurm_error("vgpu: '%s' failed: job %u may have no VF", command, job);
    return 0;
}
