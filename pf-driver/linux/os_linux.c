// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The services of core/base/os.h in the kernel. The core calls all of them under platform->lock, in
 * process context. If a register or a dword of configuration space reads as all ones, this file
 * asks the PCI core whether the device still answers. If the device does not answer, this file sets
 * is_device_lost, and vgpu_platform_unlock() detaches the core.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/poll.h>

#include "pf-driver/linux/platform.h"

static struct vgpu_platform *platform_of(struct vgpu_os *os)
{
	return container_of(os, struct vgpu_platform, os);
}

/* Return: true if the PF answers. */
bool vgpu_linux_is_device_there(struct vgpu_platform *platform)
{
	return !pci_channel_offline(platform->pdev) && pci_device_is_present(platform->pdev);
}

static int check_reachable(const struct vgpu_platform *platform)
{
	return platform->is_device_lost || platform->is_device_suspended ? -ENODEV : 0;
}

/* asks the PCI core whether the device is gone, because all ones may be a valid value */
static int check_answer(struct vgpu_platform *platform, u32 value)
{
	if (value != U32_MAX || vgpu_linux_is_device_there(platform))
		return 0;
	platform->is_device_lost = true;
	return -ENODEV;
}

static int config_read_byte(struct vgpu_platform *platform, u32 offset, u32 *value)
{
	u8 byte = 0xff;
	int error = pci_read_config_byte(platform->pdev, (int)offset, &byte);

	*value = byte;
	return error;
}

static int config_read_word(struct vgpu_platform *platform, u32 offset, u32 *value)
{
	u16 word = 0xffff;
	int error = pci_read_config_word(platform->pdev, (int)offset, &word);

	*value = word;
	return error;
}

static int config_read(struct vgpu_os *os, u32 offset, u32 bytes, u32 *value)
{
	struct vgpu_platform *platform = platform_of(os);
	int error = check_reachable(platform);

	if (error)
		return error;
	if (bytes == 1)
		error = config_read_byte(platform, offset, value);
	else if (bytes == 2)
		error = config_read_word(platform, offset, value);
	else
		error = pci_read_config_dword(platform->pdev, (int)offset, value);
	if (error)
		return pcibios_err_to_errno(error);
	return bytes == 4 ? check_answer(platform, *value) : 0;
}

static int config_write(struct vgpu_os *os, u32 offset, u32 bytes, u32 value)
{
	struct vgpu_platform *platform = platform_of(os);
	int error = check_reachable(platform);

	if (error)
		return error;
	if (bytes == 1)
		error = pci_write_config_byte(platform->pdev, (int)offset, (u8)value);
	else if (bytes == 2)
		error = pci_write_config_word(platform->pdev, (int)offset, (u16)value);
	else
		error = pci_write_config_dword(platform->pdev, (int)offset, value);
	return pcibios_err_to_errno(error);
}

static int mmio_read(struct vgpu_os *os, u32 reg, u32 *value)
{
	struct vgpu_platform *platform = platform_of(os);
	u64 offset = (u64)reg * sizeof(*value);
	int error = check_reachable(platform);

	if (error)
		return error;
	if (offset + sizeof(*value) > platform->bars.registers_bytes)
		return -EINVAL;
	*value = readl(platform->bars.registers + offset);
	return check_answer(platform, *value);
}

static int mmio_write(struct vgpu_os *os, u32 reg, u32 value)
{
	struct vgpu_platform *platform = platform_of(os);
	u64 offset = (u64)reg * sizeof(value);
	int error = check_reachable(platform);

	if (error)
		return error;
	if (offset + sizeof(value) > platform->bars.registers_bytes)
		return -EINVAL;
	writel(value, platform->bars.registers + offset);
	return 0;
}

static int check_vram(const struct vgpu_platform *platform, u64 offset, u32 bytes)
{
	if (offset > platform->bars.vram_bytes || bytes > platform->bars.vram_bytes - offset)
		return -ERANGE;
	return check_reachable(platform);
}

/* reads eight bytes at a time, because each access may trap and take tens of microseconds */
static int vram_read(struct vgpu_os *os, u64 offset, void *data, u32 bytes)
{
	struct vgpu_platform *platform = platform_of(os);
	const void __iomem *from = platform->bars.vram + offset;
	int error = check_vram(platform, offset, bytes);
	u32 done = 0;
	u64 word;

	if (error)
		return error;
	for (; IS_ALIGNED(offset, sizeof(word)) && bytes - done >= sizeof(word);
	     done += sizeof(word)) {
		word = __raw_readq(from + done);
		memcpy((u8 *)data + done, &word, sizeof(word));
	}
	memcpy_fromio((u8 *)data + done, from + done, bytes - done);
	return 0;
}

static int vram_write(struct vgpu_os *os, u64 offset, const void *data, u32 bytes)
{
	struct vgpu_platform *platform = platform_of(os);
	void __iomem *to = platform->bars.vram + offset;
	int error = check_vram(platform, offset, bytes);
	u32 done = 0;
	u64 word;

	if (error)
		return error;
	for (; IS_ALIGNED(offset, sizeof(word)) && bytes - done >= sizeof(word);
	     done += sizeof(word)) {
		memcpy(&word, (const u8 *)data + done, sizeof(word));
		__raw_writeq(word, to + done);
	}
	memcpy_toio(to + done, (const u8 *)data + done, bytes - done);
	/* the BAR is write-combined: data must arrive before a register write that refers to it */
	wmb();
	return 0;
}

static int dma_alloc(struct vgpu_os *os, u32 bytes, struct vgpu_os_dma *dma)
{
	struct vgpu_platform *platform = platform_of(os);
	dma_addr_t bus;

	/* no warning: contiguous megabytes may be scarce, and the core reports the failure */
	dma->cpu = dma_alloc_coherent(&platform->pdev->dev, bytes, &bus, GFP_KERNEL | __GFP_NOWARN);
	if (!dma->cpu)
		return -ENOMEM;
	dma->bus = bus;
	dma->bytes = bytes;
	return 0;
}

static void dma_free(struct vgpu_os *os, struct vgpu_os_dma *dma)
{
	dma_free_coherent(&platform_of(os)->pdev->dev, dma->bytes, dma->cpu, (dma_addr_t)dma->bus);
	dma->cpu = NULL;
}

static u64 now_ns(struct vgpu_os *os)
{
	return ktime_get_ns();
}

static void timer_arm(struct vgpu_os *os, u64 deadline_ns)
{
	vgpu_platform_arm_timer(platform_of(os), deadline_ns);
}

static void events_notify(struct vgpu_os *os)
{
	struct vgpu_platform *platform = platform_of(os);

	WRITE_ONCE(platform->ring.event_seq, vgpu_pf_view_next_event(platform->pf));
	wake_up_interruptible_poll(&platform->ring.wait, EPOLLIN | EPOLLRDNORM);
}

static void log_line(struct vgpu_os *os, enum vgpu_os_log_level level, const char *text)
{
	struct device *dev = &platform_of(os)->pdev->dev;

	if (level == VGPU_OS_LOG_ERROR)
		dev_err_ratelimited(dev, "%s\n", text);
	else if (level == VGPU_OS_LOG_WARNING)
		dev_warn_ratelimited(dev, "%s\n", text);
	else if (level == VGPU_OS_LOG_INFO)
		dev_info_ratelimited(dev, "%s\n", text);
	else
		dev_dbg(dev, "%s\n", text);
}

static s64 stream_write(struct vgpu_os *os, const void *data, u32 bytes)
{
	return vgpu_client_stream_write(platform_of(os), data, bytes);
}

static s64 stream_read(struct vgpu_os *os, void *data, u32 bytes)
{
	return vgpu_client_stream_read(platform_of(os), data, bytes);
}

static void request_done(struct vgpu_os *os, u64 token, int error, const char *message)
{
	vgpu_client_done(platform_of(os), token, error, message);
}

const struct vgpu_os_ops vgpu_linux_os_ops = {
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
