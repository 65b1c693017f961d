/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/**
 * DOC: Services of the platform
 *
 * The platform is the program that runs the PF core: the kernel module, the process vgpu-pf, or a
 * test. struct vgpu_os_ops has the fifteen services that the platform provides to the core. Apart
 * from these and the C functions in types.h, the core calls nothing outside the core, so the same
 * core runs on every platform. Each platform fills struct vgpu_os_ops and embeds struct vgpu_os.
 *
 * The platform calls one function of the core at a time (pf.h names the exceptions, which only
 * read), so the core needs no locks. The core itself never sleeps (a service may): to wait, the
 * core arms its only timer or expects an interrupt, and returns. The core allocates only DMA
 * memory, through dma_alloc(). A service may call functions of the core that only read, such as
 * vgpu_pf_view_next_event(), but no other function of the core.
 *
 * If the platform knows that the device is gone, a service that reads from the device returns
 * -ENODEV. Until then the read may give all ones. A service that writes to a device that is gone
 * may return 0, because writes may be posted. The platform calls vgpu_pf_surprise_remove() for a
 * device that is gone, but only after the present call into the core has returned.
 */
#ifndef VGPU_CORE_OS_H
#define VGPU_CORE_OS_H

#include "pf-driver/core/base/types.h"

struct vgpu_os;

/**
 * enum vgpu_os_log_level - severity of a log line
 * @VGPU_OS_LOG_ERROR: a failure; an operator may have to act
 * @VGPU_OS_LOG_WARNING: unexpected, but handled
 * @VGPU_OS_LOG_INFO: a state that an operator cares about
 * @VGPU_OS_LOG_DEBUG: details
 */
enum vgpu_os_log_level {
	VGPU_OS_LOG_ERROR = 0,
	VGPU_OS_LOG_WARNING = 1,
	VGPU_OS_LOG_INFO = 2,
	VGPU_OS_LOG_DEBUG = 3,
};

/**
 * struct vgpu_os_dma - memory that the core and the device share; page aligned, zeroed at first
 * @cpu: address for the core; NULL: no memory
 * @bus: address for the device
 * @bytes: length
 */
struct vgpu_os_dma {
	void *cpu;
	uint64_t bus;
	uint32_t bytes;
};

/**
 * struct vgpu_os_ops - services of the platform; functions that return int return 0 or negative
 *	errno
 * @config_read: read 1, 2 or 4 bytes of the PF's config space, naturally aligned
 * @config_write: write 1, 2 or 4 bytes of the PF's config space, naturally aligned
 * @mmio_read: read a register of the PF (BAR5); reg: dword number
 * @mmio_write: write a register of the PF (BAR5); reg: dword number
 * @vram_read: read device VRAM (BAR0 of the PF); offset: in bytes from the start of VRAM
 * @vram_write: write device VRAM (BAR0 of the PF); offset: in bytes from the start of VRAM
 * @dma_alloc: allocate memory that the device can reach
 * @dma_free: free memory of dma_alloc()
 * @now_ns: read CLOCK_MONOTONIC
 * @timer_arm: have the platform call vgpu_pf_timer() once, at or after deadline_ns on
 *	CLOCK_MONOTONIC; replaces the previous deadline; 0: disarm the timer
 * @events_notify: wake the pollers of the event ring, which has new entries
 * @log: write one log line; text: without a line end
 * @stream_write: write to the client's file, for SAVE or DUMP. Return: bytes written, maybe fewer
 *	than requested; -EAGAIN if the file takes no data now: the platform will call
 *	vgpu_pf_stream_ready(); or another negative errno
 * @stream_read: read from the client's file, for RESTORE. Return: bytes read, maybe fewer than
 *	requested; 0 at the end of the input; -EAGAIN if the file has no data now: the platform will
 *	call vgpu_pf_stream_ready(); or another negative errno
 * @request_done: report the end of a request for which vgpu_pf_request_run_for() returns
 *	-EINPROGRESS; unless the platform has cancelled the request, its payload is filled in;
 *	token: of the request; error: 0 or negative errno; message: text of the error
 *	(empty if error is 0)
 */
struct vgpu_os_ops {
	int (*config_read)(struct vgpu_os *os, uint32_t offset, uint32_t bytes, uint32_t *value);
	int (*config_write)(struct vgpu_os *os, uint32_t offset, uint32_t bytes, uint32_t value);
	int (*mmio_read)(struct vgpu_os *os, uint32_t reg, uint32_t *value);
	int (*mmio_write)(struct vgpu_os *os, uint32_t reg, uint32_t value);
	int (*vram_read)(struct vgpu_os *os, uint64_t offset, void *data, uint32_t bytes);
	int (*vram_write)(struct vgpu_os *os, uint64_t offset, const void *data, uint32_t bytes);
	int (*dma_alloc)(struct vgpu_os *os, uint32_t bytes, struct vgpu_os_dma *dma);
	void (*dma_free)(struct vgpu_os *os, struct vgpu_os_dma *dma);
	uint64_t (*now_ns)(struct vgpu_os *os);
	void (*timer_arm)(struct vgpu_os *os, uint64_t deadline_ns);
	void (*events_notify)(struct vgpu_os *os);
	void (*log)(struct vgpu_os *os, enum vgpu_os_log_level level, const char *text);
	int64_t (*stream_write)(struct vgpu_os *os, const void *data, uint32_t bytes);
	int64_t (*stream_read)(struct vgpu_os *os, void *data, uint32_t bytes);
	void (*request_done)(struct vgpu_os *os, uint64_t token, int error, const char *message);
};

/**
 * struct vgpu_os - the core's handle of the platform, which embeds this struct in its own
 * @ops: services
 */
struct vgpu_os {
	const struct vgpu_os_ops *ops;
};

#endif
