/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Client side of vfio-user (QEMU docs/interop/vfio-user.rst, protocol 0.0) over a stream socket, as
 * far as a PF driver needs it: region access, interrupts by eventfd, memory for DMA by memfd.
 * Requests are answered one at a time within VFIO_USER_REPLY_TIMEOUT_MS; small writes may be
 * posted, as on PCI: they keep their order, and a read after them sees their effect. Any breach of
 * protocol or time closes the connection, after which every call returns -ENODEV until the next
 * connect. Single-threaded. Used by os_user.c.
 */
#ifndef VGPU_USER_VFIO_USER_CLIENT_H
#define VGPU_USER_VFIO_USER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VFIO_USER_REPLY_TIMEOUT_MS 5000
#define VFIO_USER_REGION_BAR0	   0u
#define VFIO_USER_REGION_BAR5	   5u
#define VFIO_USER_REGION_CONFIG	   7u
#define VFIO_USER_IRQ_MSIX	   2u

/**
 * struct vfio_user_client - one connection to one device; made valid by vgpu_user_client_init()
 * @fd: the socket, owned; -1: not connected. The event loop may poll it, but only for its end:
 *      between two requests a well-behaved device sends nothing.
 * @next_id: message id of the next request; a reply that does not repeat it is a breach
 * @max_transfer: data bytes of one message, the lesser of both sides' limits, at least 4096;
 *                longer reads and writes are split
 */
struct vfio_user_client {
	int fd; /* -1: not connected */
	uint16_t next_id;
	uint32_t max_transfer; /* data bytes of one message */
};

/*
 * Memory of ours that the device may reach. The device maps the file itself and reads and writes it
 * at any time until the connection ends; fd stays the caller's. The seals keep it from shrinking
 * under the device's feet.
 */
struct vfio_user_dma {
	int fd; /* sealed memfd */
	uint64_t offset;
	uint64_t bus;
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

#ifdef __cplusplus
}
#endif

#endif
