// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vgpu-pf runs the PF core as a process. It drives one GPU through its vfio-user socket and serves
 * the uapi on another socket. It may be killed and restarted at any time: VFs in service keep
 * running, and the new process adopts them. If the device goes away, vgpu-pf waits for it.
 *
 * One thread runs one poll loop for timer, interrupts, device and uapi.
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
#include <unistd.h>

#include "pf-driver/core/pf.h"
#include "pf-driver/process/socket_path.h"
#include "pf-driver/user/os_user.h"
#include "pf-driver/user/uapi_server.h"

/*
 * SIGHUP changes nothing: there is no configuration to reload.
 *
 * Exit status: 0 after SIGTERM or SIGINT, 1 if the device or the uapi is not available, 2 for wrong
 * options. RECONNECT_MS: time between two attempts to reach a device that has gone.
 */
#define RECONNECT_MS 100

/* strings belong to argv; numbers are within their range when parse_options() returns 0 */
struct options {
	const char *device;
	const char *socket;
	const char *name;
	uint32_t time_scale;
	uint32_t max_gap_ms;
	bool is_stepwise;
	enum vgpu_os_log_level log_level;
};

/* the process has one home, which exists as long as the process */
struct home {
	struct options options;
	struct os_user os;
	struct uapi_server server;
	struct vgpu_pf *pf;
	int signal_fd;
	int lock_fd;
	char refusal[VGPU_PF_MESSAGE_BYTES]; /* last logged refusal of the device; "": none */
};

enum poll_slot {
	SLOT_SIGNAL = 0,
	SLOT_TIMER,
	SLOT_SOCKET,
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
	"  --time-scale N      factor on waits for guests, 1 to 1000 (default 1)\n"
	"  --max-gap-ms N      longest time a VF with work is off the engine (default 60, 0: "
	"none)\n"
	"  --stepwise          switch worlds with IDLE SAVE LOAD RUN instead of CONTEXT_SWITCH\n"
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

static int parse_number(const char *text, uint32_t most, uint32_t *number)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value > most)
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
	{"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static int take_option(struct options *options, int key)
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
		if (take_option(options, key))
			return -EINVAL;
	if (optind < argc)
		return fail_usage("unexpected argument", argv[optind]);
	if (!options->device || !options->socket)
		return fail_usage("--device and --socket are required", NULL);
	if (options->time_scale == 0)
		return fail_usage("--time-scale is at least 1", NULL);
	return 0;
}

static void log_error(struct home *home, const char *what, const char *where, int error)
{
	char line[1024], long_path[512];

	if (error == -ENAMETOOLONG) {
		vgpu_socket_path_words(where, long_path, sizeof(long_path));
		snprintf(line, sizeof(line), "%s %s", what, long_path);
	} else {
		snprintf(line, sizeof(line), "%s %s: %s", what, where, strerror(-error));
	}
	vgpu_user_os_log(&home->os, VGPU_OS_LOG_ERROR, line);
}

/* two processes must not drive one GPU; the lock ends with the process */
static int lock_device(struct home *home)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), "%s.lock", home->options.device) >= sizeof(path))
		return -ENAMETOOLONG;
	home->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (home->lock_fd < 0)
		return -errno;
	if (flock(home->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	fprintf(stderr, "vgpu-pf: another vgpu-pf already drives %s (it holds %s)\n",
		home->options.device, path);
	return -EBUSY;
}

/* signals arrive as input of the loop, so that none interrupts the core */
static int open_signals(struct home *home)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	home->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return home->signal_fd < 0 ? -errno : 0;
}

static int init_core(struct home *home)
{
	struct vgpu_pf_params params = {.home = VGPU_PF_HOME_PROCESS,
					.time_scale = home->options.time_scale,
					.max_gap_ms = home->options.max_gap_ms,
					.is_stepwise = home->options.is_stepwise,
					.event_ring = home->server.ring,
					.event_ring_bytes = home->server.ring_bytes};

	if (getrandom(&params.boot_id, sizeof(params.boot_id), 0) != sizeof(params.boot_id))
		return -errno;
	memcpy(params.name, home->options.name, strlen(home->options.name));
	vgpu_pf_init(home->pf, &home->os.os, &params);
	return 0;
}

/*
 * The engine waits for this process between two quanta, so the process requests real-time priority.
 * Best effort, see docs/decisions/0004. The priority is kRealTimeWatch of softgpu
 * (base/priority.h).
 */
static void become_real_time(void)
{
	const struct sched_param parameters = {.sched_priority = 2};

	(void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters);
	(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static int start(struct home *home)
{
	int error = vgpu_user_os_init(&home->os, home->options.log_level);

	home->os.server = &home->server;
	home->pf = calloc(1, vgpu_pf_bytes());
	if (!error && !home->pf)
		error = -ENOMEM;
	become_real_time();
	if (!error)
		error = open_signals(home);
	if (!error)
		error = lock_device(home);
	if (!error)
		error = vgpu_user_server_init(&home->server, home->pf);
	if (!error)
		error = init_core(home);
	if (error) {
		log_error(home, "cannot drive", home->options.device, error);
		return error;
	}
	error = vgpu_user_server_listen(&home->server, home->options.socket);
	if (error)
		log_error(home, "cannot serve", home->options.socket, error);
	return error;
}

/* logs why the device is refused once, and again if the reason changes, not at each attempt */
static void tell_refusal(struct home *home)
{
	if (!strcmp(home->refusal, vgpu_pf_view_message(home->pf)))
		return;
	snprintf(home->refusal, sizeof(home->refusal), "%s", vgpu_pf_view_message(home->pf));
	vgpu_user_os_log(&home->os, VGPU_OS_LOG_ERROR, home->refusal);
}

/* a refused device is fatal at the start; later the process waits for it */
static int try_attach(struct home *home)
{
	int error = vgpu_user_os_connect(&home->os, home->options.device);

	if (error)
		return error;
	error = vgpu_pf_attach(home->pf);
	if (!error) {
		home->refusal[0] = 0;
		return 0;
	}
	vgpu_user_client_close(&home->os.device);
	tell_refusal(home);
	return error;
}

static uint32_t list_fds(struct home *home, struct pollfd *fds)
{
	fds[SLOT_SIGNAL] = (struct pollfd){.fd = home->signal_fd, .events = POLLIN};
	fds[SLOT_TIMER] = (struct pollfd){.fd = home->os.timer_fd, .events = POLLIN};
	fds[SLOT_SOCKET] = (struct pollfd){.fd = home->server.watch_fd, .events = POLLIN};
	for (uint32_t i = 0; i < GPUIOV_VECTOR_COUNT; i++)
		fds[SLOT_VECTOR + i] =
			(struct pollfd){.fd = home->os.vector_fds[i], .events = POLLIN};
	/* negative while not connected: poll() ignores it */
	fds[SLOT_DEVICE] = (struct pollfd){.fd = home->os.device.fd, .events = POLLIN};
	return SLOT_SERVER + vgpu_user_server_poll_fds(&home->server, fds + SLOT_SERVER);
}

/* one call for all vectors: a vector is only a hint, since the core reads GPUIOV_INTR_STATUS */
static void take_interrupts(struct home *home, const struct pollfd *fds)
{
	eventfd_t count;
	bool any = false;

	for (uint32_t i = 0; i < GPUIOV_VECTOR_COUNT; i++)
		if (fds[SLOT_VECTOR + i].revents)
			any |= eventfd_read(home->os.vector_fds[i], &count) == 0;
	if (any)
		vgpu_pf_interrupt(home->pf);
}

static void take_timer(struct home *home, const struct pollfd *fds)
{
	uint64_t expirations;

	if (fds[SLOT_TIMER].revents &&
	    read(home->os.timer_fd, &expirations, sizeof(expirations)) == sizeof(expirations))
		vgpu_pf_timer(home->pf);
}

/* returns true if the process must end */
static bool take_signal(struct home *home, const struct pollfd *fds)
{
	struct signalfd_siginfo signal;

	if (!fds[SLOT_SIGNAL].revents ||
	    read(home->signal_fd, &signal, sizeof(signal)) != sizeof(signal))
		return false;
	if (signal.ssi_signo != SIGHUP)
		return true;
	vgpu_user_os_log(&home->os, VGPU_OS_LOG_INFO, "SIGHUP ignored: there is no configuration");
	return false;
}

static void look_at_socket(struct home *home, const struct pollfd *fds)
{
	int result;

	if (!fds[SLOT_SOCKET].revents)
		return;
	result = vgpu_user_server_listen_again(&home->server);
	if (result > 0)
		vgpu_user_os_log(&home->os, VGPU_OS_LOG_WARNING,
				 "the socket of the uapi was removed; it was created again");
	else if (result < 0)
		log_error(home, "the socket was removed, restart vgpu-pf: cannot serve",
			  home->options.socket, result);
}

/* between requests the device sends nothing: the socket is readable only at its end */
static void take_device(struct home *home, const struct pollfd *fds)
{
	char byte;

	if (!fds[SLOT_DEVICE].revents || !vgpu_user_client_is_connected(&home->os.device))
		return;
	if (recv(home->os.device.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
		vgpu_user_client_close(&home->os.device);
}

static void check_device(struct home *home)
{
	/* the core has given up a device that does not leave its reset */
	if (vgpu_user_client_is_connected(&home->os.device) &&
	    !vgpu_pf_view_device(home->pf)->is_attached)
		vgpu_user_client_close(&home->os.device);
	if (vgpu_user_client_is_connected(&home->os.device))
		return;
	if (vgpu_pf_view_device(home->pf)->is_attached)
		vgpu_pf_detach(home->pf);
	try_attach(home);
}

/*
 * take_device() comes first, so that the core's first access for an interrupt or a timer of a lost
 * device fails with -ENODEV. check_device() comes last: it detaches the core and attaches again.
 */
static void loop(struct home *home)
{
	struct pollfd fds[SLOT_SERVER + UAPI_POLL_FDS];

	for (;;) {
		bool is_connected = vgpu_user_client_is_connected(&home->os.device);
		uint32_t count = list_fds(home, fds);

		if (poll(fds, count, is_connected ? -1 : RECONNECT_MS) < 0 && errno != EINTR)
			return;
		if (take_signal(home, fds))
			return;
		look_at_socket(home, fds);
		take_device(home, fds);
		take_interrupts(home, fds);
		take_timer(home, fds);
		vgpu_user_server_handle(&home->server, fds + SLOT_SERVER, count - SLOT_SERVER);
		check_device(home);
	}
}

int main(int argc, char **argv)
{
	static struct home home;
	int error = parse_options(&home.options, argc, argv);

	if (error)
		return 2;
	if (start(&home))
		return 1;
	error = try_attach(&home);
	if (error) {
		log_error(&home, "cannot attach", home.options.device, error);
		unlink(home.options.socket);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	loop(&home);
	vgpu_user_server_fini(&home.server);
	unlink(home.options.socket);
	vgpu_user_os_fini(&home.os);
	return 0;
}
