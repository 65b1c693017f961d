/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The fifteen services through which the PF core reaches everything outside. A home (the platform
 * on which the core runs: the kernel module, the process vgpu-pf, or a test) fills struct
 * vgpu_os_ops and embeds struct vgpu_os.
 *
 * The home serialises all calls into the core, so the core needs no locks. The core never sleeps.
 * It allocates only DMA memory, through dma_alloc(). To wait, it arms the one timer and returns.
 * A service fails with -ENODEV if the device is gone; the home then calls vgpu_pf_detach().
 * Services never call back into the core.
 */
#ifndef VGPU_CORE_OS_H
#define VGPU_CORE_OS_H

#include "pf-driver/core/base/types.h"

struct vgpu_os;

enum vgpu_os_log_level {
	VGPU_OS_LOG_ERROR = 0,
	VGPU_OS_LOG_WARNING = 1,
	VGPU_OS_LOG_INFO = 2,
	VGPU_OS_LOG_DEBUG = 3,
};

/* memory that the core reads and writes at cpu and the device at bus; page aligned, zeroed */
struct vgpu_os_dma {
	void *cpu;
	uint64_t bus;
	uint32_t bytes;
};

struct vgpu_os_ops {
	/* PF config space: 1, 2 or 4 bytes, naturally aligned */
	int (*config_read)(struct vgpu_os *os, uint32_t offset, uint32_t bytes, uint32_t *value);
	int (*config_write)(struct vgpu_os *os, uint32_t offset, uint32_t bytes, uint32_t value);
	/* PF registers (BAR5), by dword number */
	int (*mmio_read)(struct vgpu_os *os, uint32_t reg, uint32_t *value);
	int (*mmio_write)(struct vgpu_os *os, uint32_t reg, uint32_t value);
	/* device VRAM (PF BAR0), by device offset */
	int (*vram_read)(struct vgpu_os *os, uint64_t offset, void *data, uint32_t bytes);
	int (*vram_write)(struct vgpu_os *os, uint64_t offset, const void *data, uint32_t bytes);
	int (*dma_alloc)(struct vgpu_os *os, uint32_t bytes, struct vgpu_os_dma *dma);
	void (*dma_free)(struct vgpu_os *os, struct vgpu_os_dma *dma);
	/* CLOCK_MONOTONIC */
	uint64_t (*now_ns)(struct vgpu_os *os);
	/* the home calls vgpu_pf_timer() at or after deadline_ns, the only deadline; 0 disarms */
	void (*timer_arm)(struct vgpu_os *os, uint64_t deadline_ns);
	/* the event ring has new entries: wake pollers */
	void (*events_notify)(struct vgpu_os *os);
	void (*log)(struct vgpu_os *os, enum vgpu_os_log_level level, const char *text);
	/* bytes moved; 0: end of input; -EAGAIN: the home calls vgpu_pf_stream_ready() later */
	int64_t (*stream_write)(struct vgpu_os *os, const void *data, uint32_t bytes);
	int64_t (*stream_read)(struct vgpu_os *os, void *data, uint32_t bytes);
	/* reports that a request that returned -EINPROGRESS has finished; its payload is set */
	void (*request_done)(struct vgpu_os *os, uint64_t token, int error, const char *message);
};

struct vgpu_os {
	const struct vgpu_os_ops *ops;
};

#endif
