// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vgpu-pf runs the PF core as a process. It drives one GPU through its vfio-user socket and serves
 * the uapi on another socket. It may be killed and restarted at any time: VFs stay in service, and
 * the new process adopts them. If the device goes away, vgpu-pf waits until the device is back.
 *
 * One thread runs one poll loop for timer, interrupts, device and uapi. SIGHUP changes nothing,
 * because there is no configuration to reload. Exit status: 0 after SIGTERM, SIGINT, --help or
 * --version, or if poll() fails; 1 if vgpu-pf cannot start; 2 for wrong options.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pf-driver/core/pf.h"
#include "pf-driver/confine/confine.h"
#include "pf-driver/confine/sealed.h"
#include "pf-driver/process/socket_path.h"
#include "pf-driver/user/os_user.h"
#include "pf-driver/user/uapi_server.h"

/* time between two attempts to reach a device that is gone */
#define RECONNECT_MS 100
/* SCHED_FIFO priority, equal to kRealTimeWatch of softgpu (pf-driver/softgpu/base/priority.h) */
#define REAL_TIME_PRIORITY 2

/* strings point into argv or to defaults; parse_options() returns 0 only if numbers are in range */
struct options {
	const char *device;
	const char *socket;
	const char *name;
	uint32_t time_scale;
	uint32_t max_gap_ms;
	bool is_stepwise;
	bool is_unconfined;
	enum vgpu_os_log_level log_level;
};

/* the process has one platform, which exists as long as the process */
struct platform {
	struct options options;
	struct os_user os;
	struct uapi_server server;
	struct vgpu_pf *pf;
	int signal_fd;
	int lock_fd;
	char refusal[VGPU_PF_MESSAGE_BYTES]; /* last logged refusal of the device; "": none */
};

/* indices in the array for poll() */
enum poll_slot {
	SLOT_SIGNAL = 0,
	SLOT_TIMER,
	SLOT_SOCKET_WATCH,
	SLOT_VECTOR,
	SLOT_DEVICE = SLOT_VECTOR + GPUIOV_VECTOR_COUNT,
	SLOT_SERVER,
};

static const char usage_text[] =
	"usage: vgpu-pf --device SOCKET --socket PATH [options]\n"
	"\n"
	"Drives the PF of one GPU and serves the PF uapi.\n"
	"\n"
	"  --device SOCKET     vfio-user socket of the PF (softgpu's pf.sock)\n"
	"  --socket PATH       where to serve the uapi\n"
	"  --name NAME         name of the GPU in GET_INFO (default gpu0)\n"
	"  --time-scale N      factor on waits for guests and device, 1 to 1000 (default 1)\n"
	"  --max-gap-ms N      longest time a VF with work is off the engine (default 60, 0: "
	"no limit)\n"
	"  --stepwise          switch worlds with IDLE SAVE LOAD RUN instead of CONTEXT_SWITCH\n"
	"  --unconfined        keep all rights, for debuggers; without it vgpu-pf confines itself\n"
	"  --log-level LEVEL   error, warning, info or debug (default info)\n"
	"  --help, --version\n"
	"\n"
	"Prints 'ready' on stdout when the uapi is served and the device is attached.\n";

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static int fail_usage(const char *what, const char *value)
{
	fprintf(stderr, "vgpu-pf: %s%s%s (see --help)\n", what, value ? ": " : "",
		value ? value : "");
	return -EINVAL;
}

static int parse_number(const char *text, uint32_t max, uint32_t *number)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value > max)
		return fail_usage("not a number in range", text);
	*number = (uint32_t)value;
	return 0;
}

static int parse_level(const char *text, enum vgpu_os_log_level *level)
{
	for (uint32_t i = 0; i < VGPU_COUNT_OF(level_names); i++) {
		if (strcmp(text, level_names[i]))
			continue;
		*level = i;
		return 0;
	}
	return fail_usage("no such log level", text);
}

enum option_key {
	OPTION_DEVICE = 1000,
	OPTION_SOCKET,
	OPTION_NAME,
	OPTION_TIME_SCALE,
	OPTION_MAX_GAP,
	OPTION_STEPWISE,
	OPTION_UNCONFINED,
	OPTION_LOG_LEVEL,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"device", required_argument, NULL, OPTION_DEVICE},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"name", required_argument, NULL, OPTION_NAME},
	{"time-scale", required_argument, NULL, OPTION_TIME_SCALE},
	{"max-gap-ms", required_argument, NULL, OPTION_MAX_GAP},
	{"stepwise", no_argument, NULL, OPTION_STEPWISE},
	{"unconfined", no_argument, NULL, OPTION_UNCONFINED},
	{"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static int parse_option(struct options *options, int key)
{
	switch (key) {
	case OPTION_DEVICE:
		options->device = optarg;
		return 0;
	case OPTION_SOCKET:
		options->socket = optarg;
		return 0;
	case OPTION_NAME:
		options->name = optarg;
		return strlen(optarg) < VGPU_PF_NAME_BYTES ? 0
							   : fail_usage("name is too long", optarg);
	case OPTION_TIME_SCALE:
		return parse_number(optarg, VGPU_PF_TIME_SCALE_MAX, &options->time_scale);
	case OPTION_MAX_GAP:
		return parse_number(optarg, UINT32_MAX, &options->max_gap_ms);
	case OPTION_STEPWISE:
		options->is_stepwise = true;
		return 0;
	case OPTION_UNCONFINED:
		options->is_unconfined = true;
		return 0;
	case OPTION_LOG_LEVEL:
		return parse_level(optarg, &options->log_level);
	case OPTION_HELP:
		fputs(usage_text, stdout);
		exit(0);
	case OPTION_VERSION:
		printf("vgpu-pf %s, uapi %u\n", VGPU_VERSION, VGPU_PF_UAPI_VERSION);
		exit(0);
	default:
		return fail_usage("bad option", NULL);
	}
}

static int parse_options(struct options *options, int argc, char **argv)
{
	int key;

	*options = (struct options){.name = "gpu0",
				    .time_scale = 1,
				    .max_gap_ms = VGPU_PF_MAX_GAP_DEFAULT_MS,
				    .log_level = VGPU_OS_LOG_INFO};
	while ((key = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (parse_option(options, key))
			return -EINVAL;
	if (optind < argc)
		return fail_usage("unexpected argument", argv[optind]);
	if (!options->device || !options->socket)
		return fail_usage("--device and --socket are required", NULL);
	if (options->time_scale == 0)
		return fail_usage("--time-scale is at least 1", NULL);
	return 0;
}

static void log_error(struct platform *platform, const char *what, const char *where, int error)
{
	char line[1024], long_path[512];

	if (error == -ENAMETOOLONG) {
		vgpu_socket_path_error(where, long_path, sizeof(long_path));
		snprintf(line, sizeof(line), "%s %s", what, long_path);
	} else {
		snprintf(line, sizeof(line), "%s %s: %s", what, where, strerror(-error));
	}
	vgpu_user_os_log(&platform->os, VGPU_OS_LOG_ERROR, line);
}

/* two processes must not drive one GPU; the lock ends with the process */
static int lock_device(struct platform *platform)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), "%s.lock", platform->options.device) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	platform->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (platform->lock_fd < 0)
		return -errno;
	if (flock(platform->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	fprintf(stderr, "vgpu-pf: another vgpu-pf already drives %s (it holds %s)\n",
		platform->options.device, path);
	return -EBUSY;
}

/* the loop reads these signals from signal_fd, so that they do not interrupt the core */
static int open_signals(struct platform *platform)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	platform->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return platform->signal_fd < 0 ? -errno : 0;
}

static int init_core(struct platform *platform)
{
	struct vgpu_pf_params params = {.platform = VGPU_PF_PLATFORM_PROCESS,
					.time_scale = platform->options.time_scale,
					.max_gap_ms = platform->options.max_gap_ms,
					.is_stepwise = platform->options.is_stepwise,
					.event_ring = platform->server.ring,
					.event_ring_bytes = platform->server.ring_bytes};

	if (getrandom(&params.boot_id, sizeof(params.boot_id), 0) != sizeof(params.boot_id))
		return -errno;
	memcpy(params.name, platform->options.name, strlen(platform->options.name));
	vgpu_pf_init(platform->pf, &platform->os.os, &params);
	return 0;
}

/*
 * The engine waits for this process between two quanta, so the process requests real-time priority
 * and locks its memory. If the host refuses either, the process continues without it
 * (docs/decisions/0004).
 */
static void become_real_time(void)
{
	const struct sched_param parameters = {.sched_priority = REAL_TIME_PRIORITY};

	(void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters);
	(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static int start(struct platform *platform)
{
	int error = vgpu_user_os_init(&platform->os, platform->options.log_level);

	platform->os.server = &platform->server;
	platform->pf = calloc(1, vgpu_pf_bytes());
	if (!error && !platform->pf)
		error = -ENOMEM;
	become_real_time();
	if (!error)
		error = open_signals(platform);
	if (!error)
		error = lock_device(platform);
	if (!error)
		error = vgpu_user_server_init(&platform->server, platform->pf);
	if (!error)
		error = init_core(platform);
	if (error) {
		log_error(platform, "cannot drive", platform->options.device, error);
		return error;
	}
	error = vgpu_user_server_listen(&platform->server, platform->options.socket);
	if (error)
		log_error(platform, "cannot serve", platform->options.socket, error);
	return error;
}

/* logs why the core refuses the device, unless the last logged refusal had the same reason */
static void log_refusal(struct platform *platform)
{
	if (!strcmp(platform->refusal, vgpu_pf_view_message(platform->pf)))
		return;
	snprintf(platform->refusal, sizeof(platform->refusal), "%s",
		 vgpu_pf_view_message(platform->pf));
	vgpu_user_os_log(&platform->os, VGPU_OS_LOG_ERROR, platform->refusal);
}

/*
 * Connects to the device and attaches the core. At the start an error ends the process. Later the
 * loop tries again.
 */
static int try_attach(struct platform *platform)
{
	int error = vgpu_user_os_connect(&platform->os, platform->options.device);

	if (error)
		return error;
	error = vgpu_pf_attach(platform->pf);
	if (!error) {
		platform->refusal[0] = 0;
		return 0;
	}
	vgpu_user_client_close(&platform->os.device);
	log_refusal(platform);
	return error;
}

static uint32_t list_fds(struct platform *platform, struct pollfd *fds)
{
	fds[SLOT_SIGNAL] = (struct pollfd){.fd = platform->signal_fd, .events = POLLIN};
	fds[SLOT_TIMER] = (struct pollfd){.fd = platform->os.timer_fd, .events = POLLIN};
	fds[SLOT_SOCKET_WATCH] = (struct pollfd){.fd = platform->server.watch_fd, .events = POLLIN};
	for (uint32_t i = 0; i < GPUIOV_VECTOR_COUNT; i++)
		fds[SLOT_VECTOR + i] =
			(struct pollfd){.fd = platform->os.vector_fds[i], .events = POLLIN};
	/* the fd is negative while not connected: poll() ignores negative fds */
	fds[SLOT_DEVICE] = (struct pollfd){.fd = platform->os.device.fd, .events = POLLIN};
	return SLOT_SERVER + vgpu_user_server_poll_fds(&platform->server, fds + SLOT_SERVER);
}

/* one call for all vectors: a vector is only a hint, since the core reads GPUIOV_INTR_STATUS */
static void handle_interrupts(struct platform *platform, const struct pollfd *fds)
{
	eventfd_t count;
	bool has_read_one = false;

	for (uint32_t i = 0; i < GPUIOV_VECTOR_COUNT; i++)
		if (fds[SLOT_VECTOR + i].revents)
			has_read_one |= eventfd_read(platform->os.vector_fds[i], &count) == 0;
	if (has_read_one)
		vgpu_pf_interrupt(platform->pf);
}

static void handle_timer(struct platform *platform, const struct pollfd *fds)
{
	uint64_t expirations;

	if (fds[SLOT_TIMER].revents &&
	    read(platform->os.timer_fd, &expirations, sizeof(expirations)) == sizeof(expirations))
		vgpu_pf_timer(platform->pf);
}

/* returns true if the process must end */
static bool handle_signal(struct platform *platform, const struct pollfd *fds)
{
	struct signalfd_siginfo signal;

	if (!fds[SLOT_SIGNAL].revents ||
	    read(platform->signal_fd, &signal, sizeof(signal)) != sizeof(signal))
		return false;
	if (signal.ssi_signo != SIGHUP)
		return true;
	vgpu_user_os_log(&platform->os, VGPU_OS_LOG_INFO,
			 "SIGHUP ignored: there is no configuration");
	return false;
}

static void check_socket(struct platform *platform, const struct pollfd *fds)
{
	int result;

	if (!fds[SLOT_SOCKET_WATCH].revents)
		return;
	result = vgpu_user_server_listen_again(&platform->server);
	if (result > 0)
		vgpu_user_os_log(&platform->os, VGPU_OS_LOG_WARNING,
				 "the socket of the uapi was removed; it was created again");
	else if (result < 0)
		log_error(platform,
			  "restart vgpu-pf: its socket was removed and cannot be bound again:",
			  platform->options.socket, result);
}

/*
 * The device sends nothing between requests, so its socket is readable only after the device has
 * closed the connection. If the device sends data nevertheless, close the connection, because
 * unread data would keep the socket readable.
 */
static void handle_device_end(struct platform *platform, const struct pollfd *fds)
{
	char byte;

	if (!fds[SLOT_DEVICE].revents || !vgpu_user_client_is_connected(&platform->os.device))
		return;
	if (recv(platform->os.device.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		vgpu_user_os_log(&platform->os, VGPU_OS_LOG_ERROR,
				 "the device sent data without a request; closing the connection");
	vgpu_user_client_close(&platform->os.device);
}

static void check_device(struct platform *platform)
{
	/* the core has abandoned a device that did not come back from its reset */
	if (vgpu_user_client_is_connected(&platform->os.device) &&
	    !vgpu_pf_view_device(platform->pf)->is_attached)
		vgpu_user_client_close(&platform->os.device);
	if (vgpu_user_client_is_connected(&platform->os.device))
		return;
	if (vgpu_pf_view_device(platform->pf)->is_attached)
		vgpu_pf_surprise_remove(platform->pf);
	try_attach(platform);
}

/*
 * handle_device_end() comes before interrupts and timer, so that the core's first access to a lost
 * device fails with -ENODEV. check_device() comes last: it detaches the core and attaches again.
 */
static void loop(struct platform *platform)
{
	struct pollfd fds[SLOT_SERVER + UAPI_POLL_FDS];

	for (;;) {
		bool is_connected = vgpu_user_client_is_connected(&platform->os.device);
		uint32_t count = list_fds(platform, fds);

		if (poll(fds, count, is_connected ? -1 : RECONNECT_MS) < 0 && errno != EINTR)
			return;
		if (handle_signal(platform, fds))
			return;
		check_socket(platform, fds);
		handle_device_end(platform, fds);
		handle_interrupts(platform, fds);
		handle_timer(platform, fds);
		vgpu_user_server_handle(&platform->server, fds + SLOT_SERVER, count - SLOT_SERVER);
		check_device(platform);
	}
}

/*
 * Confines the process, before the first message from the device. From now on the process only
 * waits, talks to the device and to clients, and binds its socket again if the file was removed.
 */
static int confine(struct platform *platform)
{
	static const int calls[] = {SYS_timerfd_settime, SYS_fallocate};
	static const struct vgpu_confine_rules rules = {.program = "vgpu-pf",
							.socket_type = SOCK_SEQPACKET,
							.other_socket_type = SOCK_STREAM,
							.calls = calls,
							.call_count = VGPU_COUNT_OF(calls)};
	int error = vgpu_seal_socket(platform->options.socket);

	if (!error)
		error = vgpu_seal_path(platform->options.device, VGPU_PATH_CONNECT);
	if (!vgpu_confine_landlock_version())
		vgpu_user_os_log(&platform->os, VGPU_OS_LOG_INFO,
				 "this kernel has no Landlock: only seccomp confines vgpu-pf");
	if (!error)
		error = vgpu_confine_files(REAL_TIME_PRIORITY);
	if (!error)
		error = vgpu_confine_calls(&rules);
	if (error)
		log_error(platform, "cannot confine itself:", vgpu_confine_step(), error);
	return error;
}

int main(int argc, char **argv)
{
	static struct platform platform;
	int error = parse_options(&platform.options, argc, argv);

	if (error)
		return 2;
	if (start(&platform))
		return 1;
	error = platform.options.is_unconfined ? 0 : confine(&platform);
	if (!error) {
		error = try_attach(&platform);
		if (error)
			log_error(&platform, "cannot attach", platform.options.device, error);
	}
	if (error) {
		unlink(vgpu_sealed(platform.options.socket));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	loop(&platform);
	vgpu_user_server_fini(&platform.server);
	unlink(vgpu_sealed(platform.options.socket));
	vgpu_user_os_fini(&platform.os);
	return 0;
}
