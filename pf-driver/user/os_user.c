// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define _GNU_SOURCE
#include "pf-driver/user/os_user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "pf-driver/user/uapi_server.h"

/*
 * All DMA memory is one file, which the device maps as a whole after each connect. The core gets
 * pieces of it, so nothing is mapped or unmapped while the engine runs. The base is 4 GiB, so that
 * a bus address that was cut to 32 bits by mistake matches no memory.
 */
#define DMA_BYTES    0x4000000ull /* size of the file; pages are allocated on first use */
#define DMA_BUS_BASE 0x100000000ull
#define PAGE_BYTES   4096u

/* PCI command register: memory space and bus master on */
#define PCI_COMMAND	  0x04u
#define PCI_COMMAND_VALUE 0x0006u

static struct os_user *os_of(struct vgpu_os *os)
{
	return (struct os_user *)os;
}

static int config_read(struct vgpu_os *os, uint32_t offset, uint32_t bytes, uint32_t *value)
{
	*value = 0;
	return vgpu_user_client_read(&os_of(os)->device, VFIO_USER_REGION_CONFIG, offset, value,
				     bytes);
}

static int config_write(struct vgpu_os *os, uint32_t offset, uint32_t bytes, uint32_t value)
{
	return vgpu_user_client_post(&os_of(os)->device, VFIO_USER_REGION_CONFIG, offset, &value,
				     bytes);
}

static int mmio_read(struct vgpu_os *os, uint32_t reg, uint32_t *value)
{
	return vgpu_user_client_read(&os_of(os)->device, VFIO_USER_REGION_BAR5,
				     (uint64_t)reg * sizeof(*value), value, sizeof(*value));
}

/* posted, as on PCI: a write to a lost device may return 0, but the next read returns -ENODEV */
static int mmio_write(struct vgpu_os *os, uint32_t reg, uint32_t value)
{
	return vgpu_user_client_post(&os_of(os)->device, VFIO_USER_REGION_BAR5,
				     (uint64_t)reg * sizeof(value), &value, sizeof(value));
}

static int vram_read(struct vgpu_os *os, uint64_t offset, void *data, uint32_t bytes)
{
	return vgpu_user_client_read(&os_of(os)->device, VFIO_USER_REGION_BAR0, offset, data,
				     bytes);
}

static int vram_write(struct vgpu_os *os, uint64_t offset, const void *data, uint32_t bytes)
{
	return vgpu_user_client_write(&os_of(os)->device, VFIO_USER_REGION_BAR0, offset, data,
				      bytes);
}

/* finds the first gap between blocks that is large enough; returns false if there is none */
static bool find_gap(const struct os_user *os, uint32_t bytes, uint64_t *offset)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < OS_USER_DMA_BLOCKS; i++) {
		const struct os_user_block *block = &os->blocks[i];

		if (block->bytes == 0 || at + bytes <= block->offset ||
		    at >= block->offset + block->bytes)
			continue;
		at = block->offset + block->bytes;
		i = UINT32_MAX; /* start again at block 0, because blocks are unordered */
	}
	*offset = at;
	return at + bytes <= DMA_BYTES;
}

static int dma_alloc(struct vgpu_os *core_os, uint32_t bytes, struct vgpu_os_dma *dma)
{
	struct os_user *os = os_of(core_os);
	struct os_user_block *block = NULL;
	uint32_t rounded = (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

	for (uint32_t i = 0; i < OS_USER_DMA_BLOCKS && !block; i++)
		if (os->blocks[i].bytes == 0)
			block = &os->blocks[i];
	if (!block || !find_gap(os, rounded, &block->offset))
		return -ENOMEM;
	/* frees the pages, so that the new block reads as zeroes */
	if (fallocate(os->dma_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)block->offset,
		      rounded))
		return -errno;
	block->bytes = rounded;
	dma->cpu = (char *)os->dma_memory + block->offset;
	dma->bus = DMA_BUS_BASE + block->offset;
	dma->bytes = bytes;
	return 0;
}

static void dma_free(struct vgpu_os *core_os, struct vgpu_os_dma *dma)
{
	struct os_user *os = os_of(core_os);

	for (uint32_t i = 0; i < OS_USER_DMA_BLOCKS; i++)
		if (os->blocks[i].bytes && dma->bus == DMA_BUS_BASE + os->blocks[i].offset)
			os->blocks[i].bytes = 0;
	dma->cpu = NULL;
}

static uint64_t now_ns(struct vgpu_os *os)
{
	struct timespec now;

	(void)os;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * VGPU_NS_PER_S + (uint64_t)now.tv_nsec;
}

static void timer_arm(struct vgpu_os *os, uint64_t deadline_ns)
{
	struct itimerspec when = {.it_value = {(time_t)(deadline_ns / VGPU_NS_PER_S),
					       (long)(deadline_ns % VGPU_NS_PER_S)}};

	timerfd_settime(os_of(os)->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void events_notify(struct vgpu_os *os)
{
	vgpu_user_server_events(os_of(os)->server);
}

static int64_t stream_write(struct vgpu_os *os, const void *data, uint32_t bytes)
{
	return vgpu_user_server_stream_write(os_of(os)->server, data, bytes);
}

static int64_t stream_read(struct vgpu_os *os, void *data, uint32_t bytes)
{
	return vgpu_user_server_stream_read(os_of(os)->server, data, bytes);
}

static void request_done(struct vgpu_os *os, uint64_t token, int error, const char *message)
{
	vgpu_user_server_request_done(os_of(os)->server, token, error, message);
}

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/*
 * Write one line to stderr, unless its level is above os->log_level. Drop lines of a subject that
 * logs too often (process/log_limit.h), except debug lines.
 */
void vgpu_user_os_log(struct os_user *os, enum vgpu_os_log_level level, const char *text)
{
	uint64_t now_ms = now_ns(&os->os) / 1000000u;
	char more[64] = "";
	uint32_t left_out = 0;

	if (level > os->log_level)
		return;
	if (level != VGPU_OS_LOG_DEBUG &&
	    !vgpu_log_admit(&os->log_limit, now_ms, level, text, strlen(text), &left_out))
		return;
	if (left_out)
		snprintf(more, sizeof(more), " (%u more lines about this were left out)", left_out);
	/* fprintf() makes one write. If a full disk has cut the last line, end that line first. */
	os->is_line_cut = fprintf(stderr, "%svgpu-pf: %s: %s%s\n", os->is_line_cut ? "\n" : "",
				  level_names[level], text, more) < 0;
}

static void log_line(struct vgpu_os *os, enum vgpu_os_log_level level, const char *text)
{
	vgpu_user_os_log(os_of(os), level, text);
}

static const struct vgpu_os_ops ops = {
	.config_read = config_read,
	.config_write = config_write,
	.mmio_read = mmio_read,
	.mmio_write = mmio_write,
	.vram_read = vram_read,
	.vram_write = vram_write,
	.dma_alloc = dma_alloc,
	.dma_free = dma_free,
	.now_ns = now_ns,
	.timer_arm = timer_arm,
	.events_notify = events_notify,
	.log = log_line,
	.stream_write = stream_write,
	.stream_read = stream_read,
	.request_done = request_done,
};

static int init_dma(struct os_user *os)
{
	os->dma_fd = memfd_create("vgpu-pf-dma", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (os->dma_fd < 0 || ftruncate(os->dma_fd, (off_t)DMA_BYTES) ||
	    fcntl(os->dma_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return -errno;
	os->dma_memory = mmap(NULL, DMA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, os->dma_fd, 0);
	return os->dma_memory == MAP_FAILED ? -errno : 0;
}

/* Make descriptors and memory, without a connection. Return: 0 or a negative errno. */
int vgpu_user_os_init(struct os_user *os, enum vgpu_os_log_level log_level)
{
	memset(os, 0, sizeof(*os));
	os->os.ops = &ops;
	os->log_level = log_level;
	vgpu_user_client_init(&os->device);
	os->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (os->timer_fd < 0)
		return -errno;
	for (uint32_t i = 0; i < GPUIOV_VECTOR_COUNT; i++) {
		os->vector_fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (os->vector_fds[i] < 0)
			return -errno;
	}
	return init_dma(os);
}

/* Close the connection, and release descriptors and memory. */
void vgpu_user_os_fini(struct os_user *os)
{
	vgpu_user_client_close(&os->device);
	close(os->timer_fd);
	for (uint32_t i = 0; i < GPUIOV_VECTOR_COUNT; i++)
		close(os->vector_fds[i]);
	munmap(os->dma_memory, DMA_BYTES);
	close(os->dma_fd);
}

/* Connect to the PF's socket; set up interrupts and DMA memory. Return: 0 or negative errno. */
int vgpu_user_os_connect(struct os_user *os, const char *path)
{
	struct vfio_user_dma dma = {.fd = os->dma_fd, .bus = DMA_BUS_BASE, .bytes = DMA_BYTES};
	int error = vgpu_user_client_connect(&os->device, path);

	if (!error)
		error = config_write(&os->os, PCI_COMMAND, 2, PCI_COMMAND_VALUE);
	if (!error)
		error = vgpu_user_client_map_dma(&os->device, &dma);
	if (!error)
		error = vgpu_user_client_set_irqs(&os->device, VFIO_USER_IRQ_MSIX, os->vector_fds,
						  GPUIOV_VECTOR_COUNT);
	if (error)
		vgpu_user_client_close(&os->device);
	return error;
}
