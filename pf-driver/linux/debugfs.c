// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * debugfs: vgpu_pf/pfN/dump, the text for a bug report, and vgpu_pf/pfN/trace, the last
 * transitions of the life cycle. The text is for people; it is not an interface.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>

#include "pf-driver/linux/home.h"

#define DUMP_BYTES 0x10000u

static struct dentry *root;

static int show(struct seq_file *out,
		uint32_t (*describe)(struct vgpu_pf *pf, char *text, uint32_t bytes))
{
	struct vgpu_home *home = out->private;
	char *text = vzalloc(DUMP_BYTES);

	if (!text)
		return -ENOMEM;
	vgpu_home_lock(home);
	describe(home->pf, text, DUMP_BYTES);
	vgpu_home_unlock(home);
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

void vgpu_debugfs_add(struct vgpu_home *home)
{
	char name[16];

	snprintf(name, sizeof(name), "pf%d", home->index);
	home->sysfs.debugfs = debugfs_create_dir(name, root);
	debugfs_create_file("dump", 0400, home->sysfs.debugfs, home, &dump_fops);
	debugfs_create_file("trace", 0400, home->sysfs.debugfs, home, &trace_fops);
}

/* Waits for readers. */
void vgpu_debugfs_remove(struct vgpu_home *home)
{
	debugfs_remove_recursive(home->sysfs.debugfs);
}

void vgpu_debugfs_init(void)
{
	root = debugfs_create_dir(VGPU_DRIVER_NAME, NULL);
}

void vgpu_debugfs_exit(void)
{
	debugfs_remove_recursive(root);
}
