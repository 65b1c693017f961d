/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Confines softgpu and vgpu-pf. If a guest or a client takes over a confined process, the process
 * reaches only its memory, its descriptors, and the few paths that it sealed before.
 *
 * The order of the calls: vgpu_seal_*() (sealed.h) names the paths. vgpu_confine_files() takes
 * capabilities and files away from the calling thread and from the threads that this thread starts
 * later. vgpu_confine_calls() takes system calls away from all threads, and no thread can be
 * started afterwards.
 *
 * vgpu_confine_files() and vgpu_confine_calls() return 0 or a negative errno; after an error,
 * vgpu_confine_step() names the step that has failed. A process that cannot confine itself must not
 * serve.
 */
#ifndef VGPU_CONFINE_CONFINE_H
#define VGPU_CONFINE_CONFINE_H

#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* what a program may call in addition to common_calls (filter.c) */
struct vgpu_confine_rules {
	const char *program;   /* begins the program's log lines */
	int socket_type;       /* of the program's sockets: SOCK_STREAM or SOCK_SEQPACKET */
	int other_socket_type; /* a second type, or the same type */
	const int *calls;      /* numbers of system calls, allowed with all arguments */
	uint32_t call_count;
};

/* confine.c and landlock.c describe the functions */

int vgpu_confine_files(int real_time_priority);
int vgpu_confine_calls(const struct vgpu_confine_rules *rules);
const char *vgpu_confine_step(void);
int vgpu_confine_landlock_version(void);

__END_DECLS

#endif
