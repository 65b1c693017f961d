/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A vfio-user client (QEMU docs/interop/vfio-user.rst, protocol 0.0) with only the functions that a
 * PF driver needs, over a stream socket: region access, interrupts by eventfd, memory for DMA by
 * memfd. Only one request is open at a time, and only one thread uses a client. Small writes may be
 * posted, as on PCI: they keep their order, and a later read sees their effect.
 *
 * Each wait for the device ends after VFIO_USER_REPLY_TIMEOUT_MS. A request may wait several times:
 * to send, for the head of the reply, and for the rest of the reply. A breach is a violation of the
 * protocol or of a time limit, or an error of the socket. Any breach closes the connection;
 * requests then fail with -ENODEV until the next connect. vfio_user_client.c describes the
 * functions.
 */
#ifndef VGPU_USER_VFIO_USER_CLIENT_H
#define VGPU_USER_VFIO_USER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

#define VFIO_USER_REPLY_TIMEOUT_MS 5000
/* numbers of regions and interrupts, as in linux/vfio.h */
#define VFIO_USER_REGION_BAR0	0u
#define VFIO_USER_REGION_BAR5	5u
#define VFIO_USER_REGION_CONFIG 7u
#define VFIO_USER_IRQ_MSIX	2u

/* one connection to one device; made valid by vgpu_user_client_init() */
struct vfio_user_client {
	int fd;		       /* owned; -1: not connected; poll() reports the connection's end */
	uint16_t next_id;      /* id of the next request; a reply with another id is a breach */
	uint32_t max_transfer; /* data bytes of one message, at least 4096; longer data is split */
	/* limit of each wait, and of the whole request (checked after each part of a message) */
	uint32_t timeout_ms;
	uint64_t started_ns; /* start of the request, CLOCK_MONOTONIC */
};

/*
 * Memory of this process that the device may access. The device maps the file, and reads and writes
 * it at any time until the connection ends; the caller keeps fd. The seals keep the file from
 * shrinking while the device has it mapped.
 */
struct vfio_user_dma {
	int fd;		 /* sealed memfd */
	uint64_t offset; /* where the memory begins in the file */
	uint64_t bus;	 /* address for the device */
	uint64_t bytes;
};

void vgpu_user_client_init(struct vfio_user_client *client);
int vgpu_user_client_connect(struct vfio_user_client *client, const char *path);
void vgpu_user_client_close(struct vfio_user_client *client);
bool vgpu_user_client_is_connected(const struct vfio_user_client *client);
int vgpu_user_client_read(struct vfio_user_client *client, uint32_t region, uint64_t offset,
			  void *data, uint32_t bytes);
int vgpu_user_client_write(struct vfio_user_client *client, uint32_t region, uint64_t offset,
			   const void *data, uint32_t bytes);
int vgpu_user_client_post(struct vfio_user_client *client, uint32_t region, uint64_t offset,
			  const void *data, uint32_t bytes);
int vgpu_user_client_set_irqs(struct vfio_user_client *client, uint32_t index, const int *fds,
			      uint32_t count);
int vgpu_user_client_map_dma(struct vfio_user_client *client, const struct vfio_user_dma *dma);

__END_DECLS

#endif
