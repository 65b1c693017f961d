// SPDX-License-Identifier: MIT
//
// What a process can and cannot do once it has locked itself in. Each test does it in a child.
#include "pf-driver/confine/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "pf-driver/confine/sealed.h"

namespace {

namespace fs = std::filesystem;

constexpr int kNotConfined = 99;
constexpr std::uintptr_t kSealedArea = 0x100000;
constexpr std::size_t kPage = 4096;

class Folder {
public:
    Folder() : path_((fs::temp_directory_path() / "confine-XXXXXX").string()) {
        if (::mkdtemp(path_.data()) == nullptr) std::abort();
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

struct Confined : ::testing::Test {
    /// The wait status of a child that seals `seal`, confines itself and returns act().
    int status_of(const std::function<int()>& act) const {
        const pid_t child = ::fork();
        if (child == 0) {
            if (std::getenv("CONFINE_TEST_LOG") == nullptr)
                ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
            seal();
            if (vgpu_confine_files(2) != 0 || vgpu_confine_calls(&kRules) != 0)
                ::_exit(kNotConfined);
            ::_exit(act());
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return status;
    }
    /// The errno of a call in such a child; 0: it did what was asked.
    int error_of(const std::function<bool()>& act) const {
        const int status = status_of([&act] { return act() ? 0 : errno; });
        EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
        EXPECT_NE(WEXITSTATUS(status), kNotConfined);
        return WEXITSTATUS(status);
    }
    void seal() const {
        vgpu_seal_socket(folder.file("own.sock").c_str());
        vgpu_seal_path(folder.file("peer.sock").c_str(), VGPU_PATH_CONNECT);
        vgpu_seal_path(folder.file("own.note").c_str(), VGPU_PATH_RECORD);
    }

    static constexpr int kCalls[] = {SYS_memfd_create, SYS_ftruncate};
    static constexpr vgpu_confine_rules kRules{.program = "test",
                                               .socket_type = SOCK_STREAM,
                                               .other_socket_type = SOCK_STREAM,
                                               .calls = kCalls,
                                               .call_count = 2};
    Folder folder;
};

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
}

const sockaddr* generic(const sockaddr_un& address) {
    return static_cast<const sockaddr*>(static_cast<const void*>(&address));
}

int new_socket() {
    return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

bool connects(const std::string& path) {
    const sockaddr_un address = address_of(path);
    return ::connect(new_socket(), generic(*vgpu_sealed_address(&address)), sizeof(address)) == 0;
}

bool binds(const std::string& path) {
    const sockaddr_un address = address_of(path);
    return ::bind(new_socket(), generic(*vgpu_sealed_address(&address)), sizeof(address)) == 0;
}

/// EACCES is Landlock's, where the filter allows the call (sanitizers).
bool is_refusal(int error) {
    return error == EPERM || error == EACCES;
}

TEST_F(Confined, ServesItsOwnSocketAgainAndNoOther) {
    const std::string own = folder.file("own.sock");
    EXPECT_EQ(error_of([&] {
                  const char* sealed = vgpu_sealed(own.c_str());
                  struct stat file {};
                  return binds(own) && ::lstat(sealed, &file) == 0 && S_ISSOCK(file.st_mode) &&
                         ::unlink(sealed) == 0;
              }),
              0);
    EXPECT_FALSE(fs::exists(own));
    EXPECT_EQ(error_of([&] { return binds(folder.file("other.sock")); }), EPERM);
}

TEST_F(Confined, RefusesAPathThatOnlyReadsLikeASealedOne) {
    EXPECT_EQ(error_of([&] {
                  const sockaddr_un copy = address_of(folder.file("own.sock"));
                  return ::bind(new_socket(), generic(copy), sizeof(copy)) == 0;
              }),
              EPERM);
    EXPECT_EQ(error_of([&] { return ::unlink(folder.file("own.note").c_str()) == 0; }), EPERM);
}

TEST_F(Confined, ConnectsToItsPeerOnly) {
    const sockaddr_un peer = address_of(folder.file("peer.sock"));
    const sockaddr_un other = address_of(folder.file("other.sock"));
    const int listeners[] = {new_socket(), new_socket()};
    ASSERT_EQ(::bind(listeners[0], generic(peer), sizeof(peer)), 0);
    ASSERT_EQ(::bind(listeners[1], generic(other), sizeof(other)), 0);
    for (const int listener : listeners) ASSERT_EQ(::listen(listener, 4), 0);
    EXPECT_EQ(error_of([&] { return connects(folder.file("peer.sock")); }), 0);
    EXPECT_EQ(error_of([&] { return connects(folder.file("other.sock")); }), EPERM);
    for (const int listener : listeners) ::close(listener);
}

TEST_F(Confined, WritesItsNoteAndOpensNothingElse) {
    const std::string note = folder.file("own.note");
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    EXPECT_EQ(error_of([&] { return ::open(vgpu_sealed(note.c_str()), kFlags, 0600) >= 0; }), 0);
    EXPECT_TRUE(fs::exists(note));
    EXPECT_TRUE(is_refusal(error_of([] { return ::open("/etc/passwd", O_RDONLY) >= 0; })));
    EXPECT_TRUE(is_refusal(error_of([&] { return ::open(note.c_str(), O_RDONLY) >= 0; })));
    EXPECT_EQ(error_of([] { return ::open("/etc/passwd", O_WRONLY) >= 0; }), EPERM);
    EXPECT_EQ(error_of([] { return ::inotify_add_watch(0, "/etc", IN_CREATE) >= 0; }), EPERM);
}

TEST_F(Confined, CannotChangeASealedPath) {
    void* const area = [] {
        void* at = nullptr;
        const std::uintptr_t place = kSealedArea;
        std::memcpy(&at, &place, sizeof(at));
        return at;
    }();
    constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    const int both = PROT_READ | PROT_WRITE;
    EXPECT_EQ(error_of([&] { return ::mprotect(area, kPage, both) == 0; }), EPERM);
    EXPECT_EQ(error_of([&] { return ::munmap(area, kPage) == 0; }), EPERM);
    EXPECT_EQ(error_of([&] { return ::madvise(area, kPage, MADV_DONTNEED) == 0; }), EPERM);
    EXPECT_EQ(
        error_of([&] { return ::mremap(area, kPage, 2 * kPage, MREMAP_MAYMOVE) != MAP_FAILED; }),
        EPERM);
    EXPECT_EQ(error_of([&] {
                  return ::syscall(SYS_mmap, area, kPage, both, kAnonymous | MAP_FIXED, -1, 0) !=
                         -1;
              }),
              EPERM);
    EXPECT_EQ(error_of([&] {
                  return ::syscall(SYS_mmap, nullptr, 2 * kSealedArea, both, kAnonymous | MAP_FIXED,
                                   -1, 0) != -1;
              }),
              EPERM);
    const int status = status_of([&] {
        static_cast<volatile char*>(area)[2] = 'x';
        return 0;
    });
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the area was written";
}

TEST_F(Confined, HasMemoryButNoneThatIsExecutable) {
    const auto maps = [](int protection) {
        return ::mmap(nullptr, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    };
    EXPECT_EQ(error_of([&] { return maps(PROT_READ | PROT_WRITE); }), 0);
    EXPECT_EQ(error_of([&] { return maps(PROT_READ | PROT_EXEC); }), EPERM);
    EXPECT_EQ(error_of([] {
                  void* page =
                      ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  return ::mprotect(page, kPage, PROT_READ | PROT_EXEC) == 0;
              }),
              EPERM);
    EXPECT_EQ(error_of([] {
                  void* page =
                      ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  void* moved = ::mremap(page, kPage, 16 * kPage, MREMAP_MAYMOVE);
                  return moved != MAP_FAILED && ::mprotect(moved, kPage, PROT_NONE) == 0 &&
                         ::munmap(moved, 16 * kPage) == 0;
              }),
              0);
    EXPECT_EQ(error_of([] { return ::memfd_create("x", MFD_CLOEXEC) >= 0; }), 0);
}

TEST_F(Confined, StartsNoProcessAndNoThread) {
    EXPECT_EQ(error_of([] { return ::syscall(SYS_fork) >= 0; }), EPERM);
    EXPECT_EQ(error_of([] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0; }), EPERM);
    // libc blocks SIGSYS while it starts a thread, so the process ends
    const auto nothing = [](void*) -> void* { return nullptr; };
    EXPECT_NE(status_of([&] {
                  pthread_t thread{};
                  return ::pthread_create(&thread, nullptr, nothing, nullptr);
              }),
              0);
}

TEST_F(Confined, DiesWhenItExecutesAProgram) {
    const int status = status_of([] {
        char* const arguments[] = {nullptr};
        return ::execve("/bin/true", arguments, arguments);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

TEST_F(Confined, SignalsAndSchedulesOnlyItself) {
    const pid_t parent = ::getpid();
    const sched_param normal{.sched_priority = 0};
    EXPECT_EQ(error_of([=] { return ::kill(parent, SIGUSR1) == 0; }), EPERM);
    EXPECT_EQ(error_of([=] { return ::syscall(SYS_tgkill, parent, parent, 0) == 0; }), EPERM);
    EXPECT_EQ(error_of([=] { return ::syscall(SYS_tgkill, ::getpid(), ::getpid(), 0) == 0; }), 0);
    EXPECT_EQ(error_of([=] { return ::sched_setscheduler(parent, SCHED_BATCH, &normal) == 0; }),
              EPERM);
    EXPECT_EQ(error_of([=] {
                  errno = ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &normal);
                  return errno == 0;
              }),
              0);
    EXPECT_EQ(
        error_of([=] { return ::setpriority(PRIO_PROCESS, static_cast<id_t>(parent), 0) == 0; }),
        EPERM);
    EXPECT_EQ(error_of([] { return ::fcntl(0, F_SETOWN, 1) == 0; }), EPERM);
}

TEST_F(Confined, AsksAndTellsASocketOnlyWhatItNeeds) {
    const timeval second{.tv_sec = 1, .tv_usec = 0};
    const auto sets = [&](int option) {
        return ::setsockopt(new_socket(), SOL_SOCKET, option, &second, sizeof(second)) == 0;
    };
    EXPECT_EQ(error_of([&] { return sets(SO_RCVTIMEO) && sets(SO_SNDTIMEO); }), 0);
    EXPECT_EQ(error_of([&] { return sets(SO_ATTACH_FILTER); }), EPERM);
    EXPECT_EQ(error_of([] { return ::fchmod(new_socket(), 0600) == 0; }), 0);
    EXPECT_EQ(error_of([] { return ::fchmod(new_socket(), 0666) == 0; }), EPERM);
}

TEST_F(Confined, HasNoNetwork) {
    EXPECT_EQ(error_of([] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }), EPERM);
    EXPECT_EQ(error_of([] { return ::socket(AF_NETLINK, SOCK_RAW, 0) >= 0; }), EPERM);
    EXPECT_EQ(error_of([] { return ::socket(AF_UNIX, SOCK_DGRAM, 0) >= 0; }), EPERM);
}

TEST_F(Confined, KeepsNoCapability) {
    if (::geteuid() != 0) GTEST_SKIP() << "has none from the start";
    const pid_t child = ::fork();
    if (child == 0) {
        if (vgpu_confine_files(2) != 0) ::_exit(kNotConfined);
        __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
        __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
        const bool is_known = ::syscall(SYS_capget, &head, sets) == 0;
        const std::uint32_t unlimited = (1u << CAP_SYS_NICE) | (1u << CAP_IPC_LOCK);
        const bool is_none = (sets[0].permitted & ~unlimited) == 0 && sets[1].permitted == 0;
        ::_exit(is_known && is_none && sets[0].effective == sets[0].permitted ? 0 : 1);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    EXPECT_EQ(ended, 0);
}

TEST_F(Confined, ThreadsThatRunAlreadyAreConfinedToo) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
        std::atomic<bool> is_locked{false};
        std::atomic<int> error{-1};
        if (vgpu_confine_files(2) != 0) ::_exit(kNotConfined);
        std::thread other([&] {
            while (!is_locked) std::this_thread::yield();
            error = ::socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 0 : errno;
        });
        if (vgpu_confine_calls(&kRules) != 0) ::_exit(kNotConfined);
        is_locked = true;
        other.join();
        ::_exit(error == EPERM ? 0 : 1);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    EXPECT_EQ(ended, 0);
}

/// A kernel without Landlock: its calls fail with ENOSYS.
TEST_F(Confined, IsConfinedWithoutLandlock) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
        seal();
        const scmp_filter_ctx old_kernel = ::seccomp_init(SCMP_ACT_ALLOW);
        const bool is_old = ::seccomp_rule_add(old_kernel, SCMP_ACT_ERRNO(ENOSYS),
                                               SCMP_SYS(landlock_create_ruleset), 0) == 0 &&
                            ::seccomp_load(old_kernel) == 0;
        if (!is_old || vgpu_confine_landlock_version() != 0) ::_exit(kNotConfined);
        if (vgpu_confine_files(2) != 0 || vgpu_confine_calls(&kRules) != 0) ::_exit(kNotConfined);
        const bool binds_own = binds(folder.file("own.sock"));
        ::_exit(binds_own && !binds(folder.file("other.sock")) && errno == EPERM ? 0 : 1);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    EXPECT_EQ(ended, 0);
}

TEST_F(Confined, SaysOnceWhatWasRefused) {
    constexpr int kNoCallOfLinux = 5000;
    const std::string log = folder.file("log");
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
        if (vgpu_confine_files(2) != 0 || vgpu_confine_calls(&kRules) != 0) ::_exit(kNotConfined);
        for (int i = 0; i < 3; i++) (void)::kill(1, 0);
        for (int i = 0; i < 3; i++) (void)::syscall(kNoCallOfLinux + i);
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    std::ifstream file(log);
    std::string line, more;
    std::getline(file, line);
    EXPECT_EQ(line, "test: refused system call " + std::to_string(SYS_kill) +
                        " (this process is confined)");
    std::getline(file, line);
    EXPECT_EQ(line, "test: refused system call " + std::to_string(kNoCallOfLinux) +
                        " (this process is confined)");
    EXPECT_FALSE(std::getline(file, more)) << more;
}

TEST(Sealed, APathThatWasNotSealedStaysTheCallers) {
    const std::string path = "/nowhere/x.sock";
    EXPECT_EQ(vgpu_sealed(path.c_str()), path.c_str());
    const sockaddr_un address = address_of(path);
    EXPECT_EQ(vgpu_sealed_address(&address), &address);
}

}  // namespace
