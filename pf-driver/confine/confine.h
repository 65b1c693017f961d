/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Confines softgpu and vgpu-pf. A process that a guest or a client has taken over then reaches
 * nothing but its memory, its descriptors, and the few paths that it sealed before.
 *
 * The order of the calls: vgpu_seal_*() names the paths. vgpu_confine_files() takes capabilities
 * and files away from the calling thread and from the threads that it starts later.
 * vgpu_confine_calls() takes system calls away from all threads, and no thread can be started
 * afterwards.
 *
 * vgpu_confine_files() and vgpu_confine_calls() return 0 or a negative errno; vgpu_confine_step()
 * then names the step that has failed. A process that cannot confine itself must not serve.
 */
#ifndef VGPU_CONFINE_CONFINE_H
#define VGPU_CONFINE_CONFINE_H

#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* a program's system calls besides those that every program has (filter.c); constant */
struct vgpu_confine_rules {
	const char *program;   /* begins the program's log lines */
	int socket_type;       /* of the program's sockets: SOCK_STREAM, SOCK_SEQPACKET */
	int other_socket_type; /* a second type, or the same type */
	const int *calls;      /* allowed with all arguments */
	uint32_t call_count;
};

int vgpu_confine_files(int real_time_priority);
int vgpu_confine_calls(const struct vgpu_confine_rules *rules);
const char *vgpu_confine_step(void);
int vgpu_confine_landlock_version(void);

__END_DECLS

#endif
