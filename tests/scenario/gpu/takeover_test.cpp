// SPDX-License-Identifier: MIT
//
// What an attacker who executes code in softgpu or vgpu-pf cannot do. System calls that both
// programs make themselves are never refused.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "pf-driver/process/socket_path.h"
#include "pf-driver/softgpu/base/bits.h"
#include "tests/scenario/gpu/guest.h"
#include "tests/scenario/gpu/takeover.h"
#include "tests/support/unique_fd.h"

namespace vgpu::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kHere = static_cast<std::uint64_t>(AT_FDCWD);

std::uint64_t word(std::int64_t number) {
    return static_cast<std::uint64_t>(number);
}

/// The first descriptor of a process whose link has `part` in its name: "/proc/PID/fd/N".
std::string descriptor_of(pid_t pid, const std::string& part) {
    const fs::path all = "/proc/" + std::to_string(pid) + "/fd";
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(all)) {
        const auto target = fs::read_symlink(entry.path(), error).string();
        if (!error && target.find(part) != std::string::npos) return entry.path();
    }
    throw VfError("no descriptor of " + part);
}

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A set of capabilities in the text of /proc/PID/status.
std::uint64_t capabilities(const std::string& status, const std::string& name) {
    const auto at = status.find(name + ":\t");
    if (at == std::string::npos) throw VfError("no " + name);
    return std::stoull(status.substr(at + name.size() + 2), nullptr, 16);
}

constexpr std::uint64_t bit(unsigned capability) {
    return std::uint64_t{1} << capability;
}

enum class Program { Softgpu, VgpuPf };

struct TakenOver : ::testing::TestWithParam<Program> {
    TakenOver() {
        stack.provision(1);
        guest.emplace(stack, 1);
        thief.emplace(is_softgpu() ? stack.softgpu() : stack.pf_process());
    }
    [[nodiscard]] static bool is_softgpu() { return GetParam() == Program::Softgpu; }
    [[nodiscard]] ChildProcess& other() {
        return is_softgpu() ? stack.pf_process() : stack.softgpu();
    }
    Takeover::Outcome open(const std::string& path, int flags) {
        return thief->call(SYS_openat, {kHere, thief->put(path), word(flags), 0600});
    }
    void expect_denied(const Takeover::Outcome& outcome, const std::string& what) {
        EXPECT_TRUE(outcome.is_denied()) << what << ": " << outcome.text();
    }

    GpuStack stack;
    std::optional<Guest> guest;
    std::optional<Takeover> thief;
};

INSTANTIATE_TEST_SUITE_P(Programs, TakenOver, ::testing::Values(Program::Softgpu, Program::VgpuPf),
                         [](const auto& one) {
                             return one.param == Program::Softgpu ? "softgpu" : "vgpu_pf";
                         });

TEST_P(TakenOver, ExecutesHarmlessCallsInThisTest) {
    EXPECT_EQ(thief->call(SYS_getpid).value,
              is_softgpu() ? stack.softgpu().pid() : stack.pf_process().pid());
    thief.reset();
    EXPECT_EQ(guest->run_all(), "") << "the process goes on";
}

TEST_P(TakenOver, OpensNoFile) {
    expect_denied(open("/etc/passwd", O_RDONLY), "read");
    expect_denied(open("/etc/passwd", O_WRONLY | O_APPEND), "write");
    expect_denied(open(stack.dir().file("new"), O_WRONLY | O_CREAT), "create");
    expect_denied(open("/proc/self/mem", O_RDWR), "own memory, write");
    expect_denied(open("/dev/null", O_RDONLY), "device");
    expect_denied(open("/", O_RDONLY | O_DIRECTORY), "directory");
    EXPECT_FALSE(fs::exists(stack.dir().file("new")));
}

TEST_P(TakenOver, ReadsNoMemoryOfAnotherVf) {
    const std::string memory = is_softgpu()
                                   ? descriptor_of(::getpid(), "memfd:")
                                   : descriptor_of(stack.softgpu().pid(), "memfd:vgpu-vf1-vram");
    expect_denied(open(memory, O_RDWR), memory);
    expect_denied(open(memory, O_RDONLY), memory);
    const std::string mapped = "/proc/" + std::to_string(other().pid()) + "/mem";
    expect_denied(open(mapped, O_RDONLY), mapped);
    const auto of_other = thief->call(SYS_pidfd_open, {word(other().pid()), 0});
    expect_denied(of_other, "pidfd_open");
    const std::uint64_t where = thief->put(std::string(32, 'x'));
    expect_denied(thief->call(SYS_process_vm_readv, {word(other().pid()), where, 1, where, 1, 0}),
                  "process_vm_readv");
}

TEST_P(TakenOver, ConnectsToNobody) {
    const std::string bus = stack.dir().file("bus.sock");
    sockaddr_un address{};
    ASSERT_EQ(vgpu_socket_address(bus.c_str(), &address), 0);
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    ASSERT_EQ(::bind(listener.get(), generic, sizeof(address)), 0);
    ASSERT_EQ(::listen(listener.get(), 4), 0);
    const std::uint64_t where = thief->put(softgpu::bytes_of(address));
    const auto fd = thief->call(SYS_socket, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0});
    EXPECT_GE(fd.value, 0) << "its own sockets can be made again";
    expect_denied(thief->call(SYS_connect, {word(fd.value), where, sizeof(address)}), "connect");
    expect_denied(thief->call(SYS_bind, {word(fd.value), where, sizeof(address)}), "bind");
    address.sun_path[0] = 0;
    const std::uint64_t abstract = thief->put(softgpu::bytes_of(address));
    expect_denied(thief->call(SYS_connect, {word(fd.value), abstract, sizeof(address)}),
                  "abstract");
    for (const int family : {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK})
        expect_denied(thief->call(SYS_socket, {word(family), SOCK_DGRAM, 0}), "family");
    expect_denied(thief->call(SYS_socket, {AF_UNIX, SOCK_DGRAM, 0}), "datagrams");
    (void)thief->call(SYS_close, {word(fd.value)});
}

TEST_P(TakenOver, StartsNoProcess) {
    const clone_args nothing{};
    expect_denied(thief->call(SYS_fork), "fork");
    expect_denied(thief->call(SYS_vfork), "vfork");
    expect_denied(thief->call(SYS_clone, {SIGCHLD, 0, 0, 0, 0}), "clone");
    expect_denied(
        thief->call(SYS_clone3, {thief->put(softgpu::bytes_of(nothing)), sizeof(nothing)}),
        "clone3");
    thief.reset();
    EXPECT_EQ(guest->run_all(), "");
}

TEST_P(TakenOver, DiesWhenItExecutesAProgram) {
    const auto outcome = thief->call(SYS_execve, {thief->put("/bin/sh"), 0, 0});
    EXPECT_TRUE(outcome.has_ended) << outcome.text();
    EXPECT_EQ((is_softgpu() ? stack.softgpu() : stack.pf_process()).wait_exit(), 128 + SIGSYS);
}

/// This test process stands for vgpud, which starts both programs and runs as the same user.
TEST_P(TakenOver, SignalsNobody) {
    for (const pid_t whom : {::getpid(), other().pid(), 1}) {
        expect_denied(thief->call(SYS_kill, {word(whom), 0}), "kill");
        expect_denied(thief->call(SYS_tgkill, {word(whom), word(whom), 0}), "tgkill");
        expect_denied(thief->call(SYS_rt_sigqueueinfo, {word(whom), SIGTERM, thief->put("x")}),
                      "rt_sigqueueinfo");
    }
    expect_denied(thief->call(SYS_fcntl, {0, F_SETOWN, word(::getpid())}), "F_SETOWN");
}

TEST_P(TakenOver, TracesNobody) {
    for (const pid_t whom : {::getpid(), other().pid()}) {
        expect_denied(thief->call(SYS_ptrace, {PTRACE_SEIZE, word(whom), 0, 0}), "seize");
        expect_denied(thief->call(SYS_ptrace, {PTRACE_ATTACH, word(whom), 0, 0}), "attach");
    }
}

TEST_P(TakenOver, SlowsDownNobody) {
    const std::uint64_t priority = thief->put(std::string(4, '\0'));
    expect_denied(thief->call(SYS_sched_setscheduler, {word(::getpid()), SCHED_IDLE, priority}),
                  "sched_setscheduler");
    expect_denied(thief->call(SYS_setpriority, {0, word(::getpid()), 19}), "setpriority");
}

TEST_P(TakenOver, ExecutesNoNewCode) {
    const auto page = thief->call(
        SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull, 0});
    ASSERT_GT(page.value, 0) << page.text();
    expect_denied(thief->call(SYS_mprotect, {word(page.value), 4096, PROT_READ | PROT_EXEC}),
                  "mprotect");
    expect_denied(thief->call(SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC,
                                         MAP_PRIVATE | MAP_ANONYMOUS, ~0ull, 0}),
                  "mmap");
    EXPECT_EQ(thief->call(SYS_munmap, {word(page.value), 4096}).value, 0);
}

TEST_P(TakenOver, ChangesNothingOfTheHost) {
    const std::uint64_t path = thief->put(stack.dir().file("softgpu.log"));
    const std::uint64_t number = path;
    const std::pair<const char*, long> calls[] = {
        {"unlink", SYS_unlink},
        {"rename", SYS_rename},
        {"chmod", SYS_chmod},
        {"symlink", SYS_symlink},
        {"link", SYS_link},
        {"mkdir", SYS_mkdir},
        {"mknod", SYS_mknod},
        {"truncate", SYS_truncate},
        {"mount", SYS_mount},
        {"chroot", SYS_chroot},
        {"chdir", SYS_chdir},
        {"setns", SYS_setns},
        {"unshare", SYS_unshare},
        {"setuid", SYS_setuid},
        {"capset", SYS_capset},
        {"ioctl", SYS_ioctl},
        {"bpf", SYS_bpf},
        {"io_uring_setup", SYS_io_uring_setup},
        {"userfaultfd", SYS_userfaultfd},
        {"perf_event_open", SYS_perf_event_open},
        {"keyctl", SYS_keyctl},
        {"init_module", SYS_init_module},
        {"kexec_load", SYS_kexec_load},
        {"reboot", SYS_reboot},
        {"sethostname", SYS_sethostname},
        {"inotify_add_watch", SYS_inotify_add_watch},
        {"name_to_handle_at", SYS_name_to_handle_at},
    };
    for (const auto& [name, call] : calls)
        expect_denied(thief->call(call, {path, number, 0, 0, 0, 0}), name);
    EXPECT_TRUE(fs::exists(stack.dir().file("softgpu.log")));
}

/// Root that may not raise limits keeps two rights for real time and locked memory.
TEST_P(TakenOver, HasNoRightsInAnyThread) {
    constexpr std::uint64_t kForLimits = bit(CAP_SYS_NICE) | bit(CAP_IPC_LOCK);
    const pid_t pid = (is_softgpu() ? stack.softgpu() : stack.pf_process()).pid();
    const bool may_drop_bounds =
        (capabilities(text_of("/proc/self/status"), "CapEff") & bit(CAP_SETPCAP)) != 0;
    for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
        const std::string status = text_of(task.path() / "status");
        EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
        EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
        EXPECT_EQ(capabilities(status, "CapPrm") & ~kForLimits, 0u) << status;
        EXPECT_TRUE(!may_drop_bounds || capabilities(status, "CapBnd") == 0) << status;
    }
}

/// The sockets among the descriptors of a process.
std::vector<std::uint64_t> sockets_of(pid_t pid) {
    std::vector<std::uint64_t> sockets;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
        std::error_code error;
        if (fs::read_symlink(entry.path(), error).string().starts_with("socket:"))
            sockets.push_back(std::stoull(entry.path().filename()));
    }
    return sockets;
}

/// Data that stay in its socket would keep vgpu-pf, which has real-time priority, busy for ever.
TEST(TakenOverSoftgpu, ThatSendsWithoutARequestLosesItsConnection) {
    GpuStack stack;
    stack.provision(1);
    {
        Takeover thief(stack.softgpu());
        iovec piece{};
        const std::uint64_t byte = thief.put("x");
        std::memcpy(&piece.iov_base, &byte, sizeof(byte));
        piece.iov_len = 1;
        msghdr message{};
        const std::uint64_t pieces = thief.put(softgpu::bytes_of(piece));
        std::memcpy(&message.msg_iov, &pieces, sizeof(pieces));
        message.msg_iovlen = 1;
        const std::uint64_t where = thief.put(softgpu::bytes_of(message));
        std::int64_t sent = 0;
        for (const std::uint64_t fd : sockets_of(stack.softgpu().pid()))
            if (thief.call(SYS_sendmsg, {fd, where, MSG_NOSIGNAL | MSG_DONTWAIT}).value == 1)
                ++sent;
        EXPECT_GE(sent, 1);
    }
    stack.pf_process().wait_for_output("sent data without a request");
    wait_for("the device to be in service again", milliseconds(20000),
             [&] { return stack.pf().info().device_lost == 0; });
    Guest guest(stack, 1);
    EXPECT_EQ(guest.run_all(), "");
}

/// Shows that an unconfined process can do what the tests above try, so that they test the
/// confinement.
TEST(Unconfined, AProcessThatIsNotLockedInDoesWhatTheTestsTry) {
    GpuStack stack({.is_unconfined = true});
    for (ChildProcess* process : {&stack.softgpu(), &stack.pf_process()}) {
        Takeover thief(*process);
        const auto file = thief.call(SYS_openat, {kHere, thief.put("/etc/passwd"), O_RDONLY, 0});
        EXPECT_GE(file.value, 0) << file.text();
        EXPECT_EQ(thief.call(SYS_close, {word(file.value)}).value, 0);
        EXPECT_EQ(thief.call(SYS_kill, {word(::getpid()), 0}).value, 0);
        const auto socket = thief.call(SYS_socket, {AF_INET, SOCK_DGRAM, 0});
        EXPECT_GE(socket.value, 0) << socket.text();
        EXPECT_EQ(thief.call(SYS_close, {word(socket.value)}).value, 0);
    }
}

TEST(LockedIn, NothingThatTheProgramsDoIsRefused) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    std::optional<Guest> guest(std::in_place, stack, 1);
    Guest neighbour(stack, 2);
    EXPECT_EQ(guest->run_all(), "");
    stack.pf().control(1, VGPU_PF_RESET);
    EXPECT_EQ(neighbour.run_all(), "");
    guest.reset();
    fs::remove(stack.vf_socket(1));
    fs::remove(stack.dir().file("uapi.sock"));
    stack.pf_process().wait_for_output("it was created again");
    stack.softgpu().wait_for_output("it was created again");
    stack.pf().release(1);
    stack.pf().scrub_durable(1);
    stack.pf().wait_state(1, VGPU_PF_VF_ABSENT);
    stack.pf().provision(1, 64u << 20);
    EXPECT_THAT(stack.softgpu().output(), Not(HasSubstr("refused system call")));
    stack.kill_softgpu();
    wait_for("the loss to be noticed", milliseconds(10000),
             [&] { return stack.pf().info().device_lost == 1; });
    stack.start_softgpu();
    wait_for("the device to be programmed again", milliseconds(20000),
             [&] { return stack.pf().info().device_lost == 0; });
    Guest after(stack, 2);
    EXPECT_EQ(after.run_all(), "");
    EXPECT_THAT(stack.pf_process().output(), Not(HasSubstr("refused system call")));
    EXPECT_THAT(stack.softgpu().output(), Not(HasSubstr("refused system call")));
    stack.softgpu().signal(SIGTERM);
    EXPECT_EQ(stack.softgpu().wait_exit(), 0);
    EXPECT_FALSE(fs::exists(stack.pf_socket())) << "it removes its sockets";
    EXPECT_THAT(stack.softgpu().output(), Not(HasSubstr("refused system call")));
}

}  // namespace
}  // namespace vgpu::test
