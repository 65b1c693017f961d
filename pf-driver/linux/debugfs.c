// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The files in debugfs. vgpu_pf/pfN/dump describes the GPU for a bug report; vgpu_pf/pfN/trace
 * lists the last state transitions of VFs. The format of the text may change.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>

#include "pf-driver/linux/platform.h"

#define DUMP_BYTES 0x10000u /* longest text */

static struct dentry *root;

static int show(struct seq_file *out,
		uint32_t (*describe)(struct vgpu_pf *pf, char *text, uint32_t bytes))
{
	struct vgpu_platform *platform = out->private;
	char *text = vzalloc(DUMP_BYTES);

	if (!text)
		return -ENOMEM;
	vgpu_platform_lock(platform);
	describe(platform->pf, text, DUMP_BYTES);
	vgpu_platform_unlock(platform);
	seq_puts(out, text);
	vfree(text);
	return 0;
}

static int dump_show(struct seq_file *out, void *unused)
{
	return show(out, vgpu_pf_dump_text);
}
DEFINE_SHOW_ATTRIBUTE(dump);

static int trace_show(struct seq_file *out, void *unused)
{
	return show(out, vgpu_pf_dump_trace);
}
DEFINE_SHOW_ATTRIBUTE(trace);

void vgpu_debugfs_add(struct vgpu_platform *platform)
{
	char name[16];

	snprintf(name, sizeof(name), "pf%d", platform->index);
	platform->sysfs.debugfs = debugfs_create_dir(name, root);
	debugfs_create_file("dump", 0400, platform->sysfs.debugfs, platform, &dump_fops);
	debugfs_create_file("trace", 0400, platform->sysfs.debugfs, platform, &trace_fops);
}

/* Remove the files; waits for readers. */
void vgpu_debugfs_remove(struct vgpu_platform *platform)
{
	debugfs_remove_recursive(platform->sysfs.debugfs);
}

void vgpu_debugfs_init(void)
{
	root = debugfs_create_dir(VGPU_DRIVER_NAME, NULL);
}

void vgpu_debugfs_exit(void)
{
	debugfs_remove_recursive(root);
}
