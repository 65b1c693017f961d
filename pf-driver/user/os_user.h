/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The services of core/base/os.h for the process vgpu-pf: the device behind a vfio-user socket, one
 * timerfd, one eventfd for each MSI-X vector, one memfd for all DMA memory. The event loop in
 * main.c owns struct os_user and polls its descriptors. Services wait for the device, but never for
 * a client. os_user.c describes the functions.
 */
#ifndef VGPU_USER_OS_USER_H
#define VGPU_USER_OS_USER_H

#include <sys/cdefs.h>

#include "pf-driver/core/base/os.h"
#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/process/log_limit.h"
#include "pf-driver/user/vfio_user_client.h"

__BEGIN_DECLS

#define OS_USER_DMA_BLOCKS 8u /* maximum number of allocated pieces of DMA memory */

struct uapi_server;

/* a piece of the DMA memory that the core has allocated */
struct os_user_block {
	uint64_t offset; /* in dma_fd */
	uint32_t bytes;	 /* a multiple of the page size; 0: not in use */
};

/* the state behind the services */
struct os_user {
	struct vgpu_os os; /* the core's handle; first member, because os_of() casts it back */
	struct vfio_user_client device;	     /* connection to the PF; may be closed */
	struct uapi_server *server;	     /* gets events, streams and ends of requests */
	int timer_fd;			     /* readable when vgpu_pf_timer() is due */
	int vector_fds[GPUIOV_VECTOR_COUNT]; /* eventfds that the device's process writes */
	int dma_fd;			     /* sealed memfd that the device maps as a whole */
	void *dma_memory;		     /* the memory of dma_fd, mapped into this process */
	struct os_user_block blocks[OS_USER_DMA_BLOCKS]; /* allocated pieces, unordered */
	/* lines of a level above this one, which are less severe, are not written */
	enum vgpu_os_log_level log_level;
	struct vgpu_log_limit log_limit; /* keeps guests and clients from filling the log */
	bool is_line_cut;		 /* true if the last line was not written whole */
};

int vgpu_user_os_init(struct os_user *os, enum vgpu_os_log_level log_level);
void vgpu_user_os_fini(struct os_user *os);
int vgpu_user_os_connect(struct os_user *os, const char *path);
void vgpu_user_os_log(struct os_user *os, enum vgpu_os_log_level level, const char *text);

__END_DECLS

#endif
