// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The sysfs files of a PF. Files that the kernel's xe driver also has are named as in xe.
 *
 *   sriov_admin/max_gap_ms
 *   sriov_admin/.bulk_profile/{exec_quantum_ms,preempt_timeout_us,sched_priority,vram_quota,weight}
 *   sriov_admin/pf/{device,profile/...}
 *   sriov_admin/vfN/{device,stop,state,owner,assignment_mode,profile/...}
 *
 * Each kind of directory has a table with one row for each of its files: name, mode, show and store
 * functions. Show functions change nothing. Store functions run under platform->admin.
 * docs/pf-driver.md has units and errors.
 */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "pf-driver/linux/platform.h"

struct vgpu_sysfs_dir {
	struct kobject kobj;
	struct vgpu_platform *platform;
	u32 vf; /* VF number; 0: sriov_admin and pf; VGPU_ALL_VFS: .bulk_profile */
	struct vgpu_sysfs_dir *profile; /* subdirectory; NULL: none */
};

struct vgpu_sysfs_file {
	struct attribute attr;
	/* NULL: the file is write-only */
	ssize_t (*show)(struct vgpu_platform_vf *vf, char *text);
	/* NULL: the file is read-only; platform->admin is held */
	int (*store)(struct vgpu_platform *platform, u32 vf, const char *text);
};

/* ---- numbers ---- */

static int store_number(struct vgpu_platform *platform, u32 vf, enum vgpu_pf_policy policy,
			const char *text)
{
	u64 value;
	int error = kstrtou64(text, 0, &value);

	return error ? error : vgpu_policy_write(platform, vf, policy, value);
}

#define NUMBER_FILE(name, policy_id, value)                                                        \
	static ssize_t show_##name(struct vgpu_platform_vf *vf, char *text)                        \
	{                                                                                          \
		return sysfs_emit(text, "%llu\n", (u64)(value));                                   \
	}                                                                                          \
	static int store_##name(struct vgpu_platform *platform, u32 vf, const char *text)          \
	{                                                                                          \
		return store_number(platform, vf, policy_id, text);                                \
	}

NUMBER_FILE(exec_quantum_ms, VGPU_PF_POLICY_EXEC_QUANTUM_MS,
	    vgpu_policy_quantum_ms(vf->platform, vf->number))
NUMBER_FILE(weight, VGPU_PF_POLICY_WEIGHT, vgpu_policy_weight(vf->platform, vf->number))
NUMBER_FILE(min_pct, VGPU_PF_POLICY_MIN_PCT,
	    READ_ONCE(vf->platform->policies.vfs[vf->number].min_pct))
NUMBER_FILE(max_pct, VGPU_PF_POLICY_MAX_PCT,
	    READ_ONCE(vf->platform->policies.vfs[vf->number].max_pct))
NUMBER_FILE(preempt_timeout_us, VGPU_PF_POLICY_PREEMPT_TIMEOUT_US,
	    vgpu_policy_preempt_timeout(vf->platform, vf->number))
NUMBER_FILE(vram_quota, VGPU_PF_POLICY_VRAM_QUOTA, vgpu_policy_quota(vf->platform, vf->number))

/* ---- choices: a file lists all words, with the current one in brackets ---- */

static const char *const priority_names[VGPU_PRIORITIES] = {
	[VGPU_PRIORITY_LOW] = "low",
	[VGPU_PRIORITY_NORMAL] = "normal",
	[VGPU_PRIORITY_HIGH] = "high",
};

static const char *const assignment_mode_names[VGPU_ASSIGNMENT_MODES] = {
	[VGPU_ASSIGNMENT_MODE_NONE] = "none",
	[VGPU_ASSIGNMENT_MODE_VFIO] = "vfio-pci",
	[VGPU_ASSIGNMENT_MODE_HOST] = "host",
};

static ssize_t show_choice(char *text, const char *const *names, u32 count, u32 chosen)
{
	int used = 0;

	for (u32 i = 0; i < count; i++)
		used += sysfs_emit_at(text, used, i == chosen ? "[%s]%c" : "%s%c", names[i],
				      i + 1 == count ? '\n' : ' ');
	return used;
}

static ssize_t show_sched_priority(struct vgpu_platform_vf *vf, char *text)
{
	enum vgpu_priority priority = READ_ONCE(vf->platform->policies.vfs[vf->number].priority);

	if (priority == VGPU_PRIORITY_LOW && READ_ONCE(vf->platform->policies.is_strict))
		priority = VGPU_PRIORITY_NORMAL;
	return show_choice(text, priority_names, VGPU_PRIORITIES, priority);
}

static int store_sched_priority(struct vgpu_platform *platform, u32 vf, const char *text)
{
	int choice = sysfs_match_string(priority_names, text);

	if (choice < 0)
		return choice;
	return vgpu_policy_write(platform, vf, VGPU_PF_POLICY_SCHED_PRIORITY, (u64)choice);
}

static ssize_t show_assignment_mode(struct vgpu_platform_vf *vf, char *text)
{
	return show_choice(text, assignment_mode_names, VGPU_ASSIGNMENT_MODES,
			   READ_ONCE(vf->assignment_mode));
}

static int store_assignment_mode(struct vgpu_platform *platform, u32 vf, const char *text)
{
	int choice = sysfs_match_string(assignment_mode_names, text);

	return choice < 0 ? choice
			  : vgpu_sriov_set_assignment_mode(platform, vf,
							   (enum vgpu_assignment_mode)choice);
}

/* ---- the VF itself ---- */

static ssize_t show_state(struct vgpu_platform_vf *vf, char *text)
{
	struct vgpu_pf_vf_view view = vgpu_platform_view(vf->platform, vf->number);

	return sysfs_emit(text, "%s\n", vgpu_pf_control_state_name(view.state));
}

static ssize_t show_owner(struct vgpu_platform_vf *vf, char *text)
{
	struct vgpu_pf_vf_view view;
	ssize_t used;

	vgpu_platform_lock(vf->platform);
	view = vgpu_pf_view_vf(vf->platform->pf, vf->number);
	if (vf->is_open)
		used = sysfs_emit(text, "%s\n", vf->owner);
	else if (memchr_inv(view.uuid, 0, sizeof(view.uuid)))
		used = sysfs_emit(text, "%pUb\n", view.uuid);
	else
		used = sysfs_emit(text, "none\n");
	vgpu_platform_unlock(vf->platform);
	return used;
}

static int store_stop(struct vgpu_platform *platform, u32 vf, const char *text)
{
	struct vgpu_pf_control request = {
		.size = sizeof(request), .vf = vf, .action = VGPU_PF_STOP};
	bool is_set;
	int error = kstrtobool(text, &is_set);

	if (error || !is_set)
		return -EINVAL;
	return vgpu_platform_request(platform, VGPU_PF_OP_CONTROL, &request);
}

/* the PF gets no slices of the engine */
static ssize_t show_zero(struct vgpu_platform_vf *vf, char *text)
{
	return sysfs_emit(text, "0\n");
}

static ssize_t show_pf_priority(struct vgpu_platform_vf *vf, char *text)
{
	return show_choice(text, priority_names, VGPU_PRIORITIES, VGPU_PRIORITY_LOW);
}

static ssize_t show_max_gap_ms(struct vgpu_platform_vf *vf, char *text)
{
	return sysfs_emit(text, "%u\n", vgpu_pf_view_max_gap(vf->platform->pf));
}

static int store_max_gap_ms(struct vgpu_platform *platform, u32 vf, const char *text)
{
	u64 value;
	int error = kstrtou64(text, 0, &value);

	return error ? error : vgpu_plan_set_max_gap(platform, value);
}

/* ---- the files of each directory ---- */

#define FILE_ROW(file, bits, reader, writer)                                                       \
	{                                                                                          \
		.attr = {.name = #file, .mode = (bits)}, .show = (reader), .store = (writer)       \
	}

static struct vgpu_sysfs_file admin_files[] = {
	FILE_ROW(max_gap_ms, 0644, show_max_gap_ms, store_max_gap_ms),
};

static struct vgpu_sysfs_file bulk_files[] = {
	FILE_ROW(exec_quantum_ms, 0200, NULL, store_exec_quantum_ms),
	FILE_ROW(preempt_timeout_us, 0200, NULL, store_preempt_timeout_us),
	FILE_ROW(sched_priority, 0200, NULL, store_sched_priority),
	FILE_ROW(vram_quota, 0200, NULL, store_vram_quota),
	FILE_ROW(weight, 0200, NULL, store_weight),
};

static struct vgpu_sysfs_file pf_profile_files[] = {
	FILE_ROW(exec_quantum_ms, 0444, show_zero, NULL),
	FILE_ROW(preempt_timeout_us, 0444, show_zero, NULL),
	FILE_ROW(sched_priority, 0444, show_pf_priority, NULL),
};

static struct vgpu_sysfs_file vf_files[] = {
	FILE_ROW(stop, 0200, NULL, store_stop),
	FILE_ROW(state, 0444, show_state, NULL),
	FILE_ROW(owner, 0444, show_owner, NULL),
	FILE_ROW(assignment_mode, 0644, show_assignment_mode, store_assignment_mode),
};

static struct vgpu_sysfs_file vf_profile_files[] = {
	FILE_ROW(exec_quantum_ms, 0644, show_exec_quantum_ms, store_exec_quantum_ms),
	FILE_ROW(preempt_timeout_us, 0644, show_preempt_timeout_us, store_preempt_timeout_us),
	FILE_ROW(sched_priority, 0644, show_sched_priority, store_sched_priority),
	FILE_ROW(vram_quota, 0644, show_vram_quota, store_vram_quota),
	FILE_ROW(weight, 0644, show_weight, store_weight),
	FILE_ROW(min_pct, 0644, show_min_pct, store_min_pct),
	FILE_ROW(max_pct, 0644, show_max_pct, store_max_pct),
};

static ssize_t show(struct kobject *kobj, struct attribute *attr, char *text)
{
	struct vgpu_sysfs_dir *dir = container_of(kobj, struct vgpu_sysfs_dir, kobj);
	struct vgpu_sysfs_file *file = container_of(attr, struct vgpu_sysfs_file, attr);

	if (!file->show)
		return -EIO;
	return file->show(&dir->platform->vfs[dir->vf], text);
}

static void notify_profile(struct vgpu_platform *platform, u32 vf, const char *name)
{
	if (platform->sysfs.is_gone || !platform->vfs[vf].dir)
		return;
	sysfs_notify(&platform->vfs[vf].dir->kobj, "profile", name);
}

static void notify_written(const struct vgpu_sysfs_dir *dir, const struct attribute *attr)
{
	struct vgpu_platform *platform = dir->platform;

	if (dir->vf == VGPU_ALL_VFS)
		for (u32 i = 1; i <= platform->total_vfs; i++)
			notify_profile(platform, i, attr->name);
	else if (!platform->sysfs.is_gone)
		sysfs_notify((struct kobject *)&dir->kobj, NULL, attr->name);
}

static ssize_t store(struct kobject *kobj, struct attribute *attr, const char *text, size_t bytes)
{
	struct vgpu_sysfs_dir *dir = container_of(kobj, struct vgpu_sysfs_dir, kobj);
	struct vgpu_sysfs_file *file = container_of(attr, struct vgpu_sysfs_file, attr);
	int error;

	if (!file->store)
		return -EIO;
	if (mutex_lock_interruptible(&dir->platform->admin))
		return -EINTR;
	error = file->store(dir->platform, dir->vf, text);
	if (!error)
		notify_written(dir, attr);
	mutex_unlock(&dir->platform->admin);
	if (!error && file->store == store_assignment_mode)
		vgpu_sriov_wait_for_probe(dir->platform, dir->vf);
	return error ? error : (ssize_t)bytes;
}

static const struct sysfs_ops operations = {.show = show, .store = store};

static void release_dir(struct kobject *kobj)
{
	struct vgpu_sysfs_dir *dir = container_of(kobj, struct vgpu_sysfs_dir, kobj);
	struct vgpu_platform *platform = dir->platform;

	kfree(dir);
	put_device(platform->device);
}

static const struct kobj_type dir_type = {.release = release_dir, .sysfs_ops = &operations};

/* ---- directories ---- */

static struct vgpu_sysfs_dir *make_dir(struct vgpu_platform *platform, struct kobject *parent,
				       u32 vf, const char *name)
{
	struct vgpu_sysfs_dir *dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	int error;

	if (!dir)
		return NULL;
	dir->platform = platform;
	dir->vf = vf;
	get_device(platform->device);
	error = kobject_init_and_add(&dir->kobj, &dir_type, parent, "%s", name);
	if (!error)
		return dir;
	kobject_put(&dir->kobj);
	return NULL;
}

static void remove_dir(struct vgpu_sysfs_dir *dir)
{
	if (!dir)
		return;
	remove_dir(dir->profile);
	kobject_del(&dir->kobj);
	kobject_put(&dir->kobj);
}

static int add_files(struct vgpu_sysfs_dir *dir, const struct vgpu_sysfs_file *files, u32 count)
{
	int error = dir ? 0 : -ENOMEM;

	for (u32 i = 0; !error && i < count; i++)
		error = sysfs_create_file(&dir->kobj, &files[i].attr);
	return error;
}

static int add_bulk(struct vgpu_platform *platform)
{
	platform->sysfs.bulk_dir =
		make_dir(platform, &platform->sysfs.admin_dir->kobj, VGPU_ALL_VFS, ".bulk_profile");
	return add_files(platform->sysfs.bulk_dir, bulk_files, ARRAY_SIZE(bulk_files));
}

static int add_pf(struct vgpu_platform *platform)
{
	struct vgpu_sysfs_dir *dir = make_dir(platform, &platform->sysfs.admin_dir->kobj, 0, "pf");

	platform->sysfs.pf_dir = dir;
	if (!dir)
		return -ENOMEM;
	dir->profile = make_dir(platform, &dir->kobj, 0, "profile");
	if (sysfs_create_link(&dir->kobj, &platform->pdev->dev.kobj, "device"))
		return -ENOMEM;
	return add_files(dir->profile, pf_profile_files, ARRAY_SIZE(pf_profile_files));
}

static int add_vf(struct vgpu_platform *platform, u32 vf)
{
	struct vgpu_sysfs_dir *dir;
	char name[16];
	int error;

	snprintf(name, sizeof(name), "vf%u", vf);
	dir = make_dir(platform, &platform->sysfs.admin_dir->kobj, vf, name);
	platform->vfs[vf].dir = dir;
	error = add_files(dir, vf_files, ARRAY_SIZE(vf_files));
	if (error)
		return error;
	dir->profile = make_dir(platform, &dir->kobj, vf, "profile");
	return add_files(dir->profile, vf_profile_files, ARRAY_SIZE(vf_profile_files));
}

/* Get the kobject in which links are created. Return: NULL if dir is NULL. */
struct kobject *vgpu_sysfs_kobject(struct vgpu_sysfs_dir *dir)
{
	return dir ? &dir->kobj : NULL;
}

/* Notify pollers of VFs that have changed state or owner; platform->admin is held. */
void vgpu_sysfs_notify(struct vgpu_platform *platform)
{
	for (u32 i = 1; i <= platform->total_vfs && !platform->sysfs.is_gone; i++) {
		struct vgpu_platform_vf *vf = &platform->vfs[i];
		enum vgpu_pf_vf_state state = READ_ONCE(vf->seen.state);
		bool is_open = READ_ONCE(vf->is_open);

		if (!vf->dir)
			continue;
		if (state != vf->notified.state) {
			sysfs_notify(&vf->dir->kobj, NULL, "state");
			sysfs_notify(&vf->dir->kobj, "profile", "vram_quota");
		}
		if (is_open != vf->notified.is_open || state != vf->notified.state)
			sysfs_notify(&vf->dir->kobj, NULL, "owner");
		vf->notified.state = state;
		vf->notified.is_open = is_open;
	}
}

/*
 * Create the directories of a platform. vgpu_sysfs_remove() must follow, also after an error.
 * Return: 0 or a negative errno.
 */
int vgpu_sysfs_add(struct vgpu_platform *platform)
{
	int error;

	platform->sysfs.admin_dir = make_dir(platform, &platform->pdev->dev.kobj, 0, "sriov_admin");
	error = add_files(platform->sysfs.admin_dir, admin_files, ARRAY_SIZE(admin_files));
	if (!error)
		error = add_bulk(platform);
	if (!error)
		error = add_pf(platform);
	for (u32 i = 1; !error && i <= platform->total_vfs; i++)
		error = add_vf(platform, i);
	return error;
}

/*
 * Remove the directories. platform->admin must not be held, because the removal waits for writers,
 * which take this mutex.
 */
void vgpu_sysfs_remove(struct vgpu_platform *platform)
{
	mutex_lock(&platform->admin);
	platform->sysfs.is_gone = true;
	mutex_unlock(&platform->admin);
	for (u32 i = 1; i <= VGPU_PF_MAX_VFS; i++) {
		struct vgpu_sysfs_dir *dir = platform->vfs[i].dir;

		platform->vfs[i].dir = NULL;
		platform->vfs[i].has_link = false;
		remove_dir(dir);
	}
	remove_dir(platform->sysfs.pf_dir);
	remove_dir(platform->sysfs.bulk_dir);
	remove_dir(platform->sysfs.admin_dir);
}
