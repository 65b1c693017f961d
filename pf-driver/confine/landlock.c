// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Takes files away by Landlock, in addition to the filter. Landlock checks the file that a path
 * leads to, so Landlock also holds where the filter must allow a call with any path, as in builds
 * with sanitizers. Landlock confines the calling thread and the threads that this thread starts
 * later. On a kernel without Landlock, this file has no effect.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pf-driver/confine/parts.h"

/* constants of newer kernels that the header of Debian 12 lacks */
#define ACCESS_FS_TRUNCATE  (1ull << 14)
#define ACCESS_FS_IOCTL_DEV (1ull << 15)
#define ACCESS_NET_ALL	    0x3ull /* bind and connect of TCP */
#define SCOPE_ALL	    0x3ull /* abstract sockets and signals of other processes */

/* struct landlock_ruleset_attr of Landlock version 6 */
struct ruleset {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define DIRECTORY_ACCESS                                                                           \
	(LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_WRITE_FILE |                             \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_SOCK | ACCESS_FS_TRUNCATE)

/* Get the version of the kernel's Landlock. Return: 0 if the kernel has none. */
int vgpu_confine_landlock_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

/* all accesses that a version of Landlock can forbid; MAKE_SYM is the last bit of version 1 */
static struct ruleset full_ruleset(int version, size_t *bytes)
{
	struct ruleset all = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};

	*bytes = version >= 6	? sizeof(all)
		 : version >= 4 ? offsetof(struct ruleset, scoped)
				: offsetof(struct ruleset, handled_access_net);
	if (version >= 2)
		all.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		all.handled_access_fs |= ACCESS_FS_TRUNCATE;
	if (version >= 4)
		all.handled_access_net = ACCESS_NET_ALL;
	if (version >= 5)
		all.handled_access_fs |= ACCESS_FS_IOCTL_DEV;
	if (version >= 6)
		all.scoped = SCOPE_ALL;
	return all;
}

static int allow_below(int ruleset_fd, const char *directory, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access};
	long result;

	rule.parent_fd = open(directory, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return -errno;
	result = syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	close(rule.parent_fd);
	return result ? -errno : 0;
}

/* in the directories of its sockets, the process may make, write and remove files and sockets */
static int add_rules(int ruleset_fd, uint64_t handled)
{
	int error = 0;

	for (uint32_t i = 0; i < vgpu_sealed_count() && !error; i++)
		if (vgpu_sealed_uses(i) & VGPU_PATH_WATCH)
			error = allow_below(ruleset_fd, vgpu_sealed_slot(i)->address.sun_path,
					    DIRECTORY_ACCESS & handled);
	if (!error && VGPU_IS_SANITIZED)
		error = allow_below(ruleset_fd, "/proc/self",
				    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
	return error;
}

/* Restrict the calling thread. Return: 0, also without Landlock; else a negative errno. */
int vgpu_landlock_restrict(void)
{
	int version = vgpu_confine_landlock_version();
	size_t bytes;
	struct ruleset all = full_ruleset(version, &bytes);
	int fd, error;

	if (version == 0)
		return 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &all, bytes, 0);
	if (fd < 0)
		return -errno;
	error = add_rules(fd, all.handled_access_fs);
	if (!error && syscall(SYS_landlock_restrict_self, fd, 0))
		error = -errno;
	close(fd);
	return error;
}
