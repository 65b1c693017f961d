// SPDX-License-Identifier: MIT
//
// The state files on a real file system, and the locks beside them.
#include "daemon/adapters/state_files.h"

#include "daemon/adapters/owner_probe.h"
#include "daemon/adapters/run_lock.h"
#include "daemon/service/state/record_json.h"
#include "daemon/service/state/store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
using adapters::StateFiles;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// A directory of its own that goes with the test.
class Directory {
public:
    Directory() {
        std::string pattern = (fs::temp_directory_path() / "vgpu-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~Directory() { fs::remove_all(path_); }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] fs::path file(const std::string& name) const { return fs::path(path_) / name; }

private:
    std::string path_;
};

GpuRecord weighing(std::uint32_t weight) {
    GpuRecord record;
    record.vfs[1] = {.vf = 1, .spec = {.name = "a", .weight = weight}};
    return record;
}

constexpr const char* kGpu0 = "gpus/gpu0.json";
constexpr const char* kApply = "apply.json";

std::string content_of(StateFiles& files, const std::string& name) {
    const auto text = files.read(name);
    if (!text) return text.error().cause;
    return text->value_or("none");
}

TEST(StateFiles, AreReadAsTheyWereWrittenAndLeaveNoTemporary) {
    const Directory directory;
    StateFiles files(directory.path());
    EXPECT_TRUE(files.list()->empty()) << "before there is a directory";
    EXPECT_EQ(content_of(files, kGpu0), "none");
    ASSERT_TRUE(files.replace(kGpu0, "one"));
    ASSERT_TRUE(files.replace(kGpu0, "two"));
    ASSERT_TRUE(files.replace(kApply, "three"));
    EXPECT_EQ(content_of(files, kGpu0), "two");
    EXPECT_EQ(content_of(files, kApply), "three");
    EXPECT_THAT(*files.list(), ElementsAre(kGpu0));
    EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 2);
    ASSERT_TRUE(files.remove(kApply));
    EXPECT_EQ(content_of(files, kApply), "none");
    EXPECT_TRUE(files.remove(kApply)) << "it is not there";
}

TEST(StateFiles, AreForTheirOwnerOnly) {
    const Directory directory;
    StateFiles files(directory.path());
    ASSERT_TRUE(files.replace(kGpu0, "one"));
    EXPECT_EQ(fs::status(files.where(kGpu0)).permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(fs::status(directory.file("gpus")).permissions(), fs::perms::owner_all);
}

TEST(StateFiles, TheOldFileIsKeptUnderAnotherNameIfThatIsAskedFor) {
    const Directory directory;
    StateFiles files(directory.path());
    ASSERT_TRUE(files.replace(kGpu0, "one", "gpus/kept"));
    EXPECT_EQ(content_of(files, "gpus/kept"), "none") << "there was no old file";
    for (const std::string next : {"two", "three"})
        ASSERT_TRUE(files.replace(kGpu0, next, "gpus/kept"));
    EXPECT_EQ(content_of(files, "gpus/kept"), "two");
    EXPECT_EQ(content_of(files, kGpu0), "three");
    ASSERT_TRUE(files.remove(kGpu0, "gpus/kept"));
    EXPECT_EQ(content_of(files, kGpu0), "none");
    EXPECT_EQ(content_of(files, "gpus/kept"), "three");
    ASSERT_TRUE(files.remove(kGpu0, "gpus/kept"));
    EXPECT_EQ(content_of(files, "gpus/kept"), "three") << "there was nothing to keep";
}

TEST(StateFiles, OneThatAnotherProgramChangedIsNotTouched) {
    const Directory directory;
    std::ofstream(directory.file(kApply)) << "before";
    StateFiles files(directory.path());
    EXPECT_EQ(content_of(files, kApply), "before");
    EXPECT_EQ(content_of(files, "gpus/gpu1.json"), "none");
    ASSERT_TRUE(files.replace(kGpu0, "ours"));
    std::ofstream(files.where(kApply)) << "longer than before";
    std::ofstream(files.where("gpus/gpu1.json")) << "theirs";
    fs::remove(files.where(kGpu0));
    for (const char* name : {kApply, kGpu0, "gpus/gpu1.json"}) {
        const std::string theirs = content_of(files, name);
        const auto refused = files.replace(name, "next");
        ASSERT_FALSE(refused) << name;
        EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
        EXPECT_THAT(refused.error().cause, HasSubstr("was changed by another program"));
        EXPECT_FALSE(files.remove(name));
        EXPECT_EQ(content_of(files, name), theirs);
    }
    StateFiles after_a_restart(directory.path());
    EXPECT_EQ(content_of(after_a_restart, kApply), "longer than before");
    EXPECT_TRUE(after_a_restart.replace(kApply, "next"));
}

/// An older file of the same length, as a backup program puts it back.
TEST(StateFiles, OneOfTheSameLengthInItsPlaceIsNoticed) {
    const Directory directory;
    StateFiles files(directory.path());
    ASSERT_TRUE(files.replace(kGpu0, "old"));
    fs::copy_file(files.where(kGpu0), directory.file("backup"));
    ASSERT_TRUE(files.replace(kGpu0, "new"));
    fs::rename(directory.file("backup"), files.where(kGpu0));
    EXPECT_FALSE(files.replace(kGpu0, "ours"));
    EXPECT_EQ(content_of(files, kGpu0), "old");
}

/// The change that another program made stays, and is what the next vgpud reads.
TEST(StateFiles, AStoreDoesNotTakeBackWhatAnotherProgramWrote) {
    const Directory directory;
    StateFiles files(directory.path());
    StateStore store(files);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", weighing(1)));
    const std::string theirs = encode_gpu({.gpu = "gpu0", .record = weighing(70)});
    std::ofstream(files.where(kGpu0)) << theirs;
    const auto refused = store.commit("gpu0", weighing(2));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, EndsWith("restart vgpud to read it"));
    EXPECT_EQ(content_of(files, kGpu0), theirs);
    EXPECT_EQ(store.gpu("gpu0"), weighing(1));
}

TEST(StateFiles, AFailureLeavesTheOldFile) {
    const Directory directory;
    StateFiles files(directory.path());
    ASSERT_TRUE(files.replace(kGpu0, "one"));
    fs::create_directory(files.where(kGpu0) + ".new");
    const auto refused = files.replace(kGpu0, "two", "gpus/kept");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
    EXPECT_THAT(refused.error().cause, HasSubstr("gpus/gpu0.json.new"));
    EXPECT_EQ(content_of(files, kGpu0), "one");
    fs::remove(files.where(kGpu0) + ".new");
    fs::create_directory(files.where("gpus/kept"));
    EXPECT_THAT(files.replace(kGpu0, "two", "gpus/kept").error().cause, HasSubstr("cannot keep"));
    EXPECT_EQ(content_of(files, kGpu0), "one");
    EXPECT_FALSE(fs::exists(files.where(kGpu0) + ".new"));
}

/// Whoever could put it there could also make vgpud read another file, or wait for ever.
TEST(StateFiles, WhatVgpudCannotHaveWrittenIsRefused) {
    const Directory directory;
    fs::create_directory(directory.file("gpus"));
    StateFiles files(directory.path());
    const auto refusal = [&](const std::string& name) {
        const auto read = files.read(name);
        EXPECT_FALSE(read) << name;
        if (read) return std::string();
        EXPECT_EQ(read.error().id, ErrorId::StateCorrupt);
        EXPECT_THAT(read.error().cause, HasSubstr(files.where(name)));
        return read.error().cause;
    };
    std::ofstream(directory.file("long")) << "x";
    fs::resize_file(directory.file("long"), StateFiles::kMaxBytes + 1);
    EXPECT_THAT(refusal("long"), HasSubstr("is longer than"));
    fs::create_symlink(directory.file("long"), directory.file("link"));
    EXPECT_THAT(refusal("link"), HasSubstr("cannot open"));
    ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);
    EXPECT_THAT(refusal("pipe"), HasSubstr("is not a regular file"));
    EXPECT_THAT(refusal("gpus"), HasSubstr("is not a regular file"));
    std::ofstream(directory.file("theirs")) << "x";
    if (::chown(directory.file("theirs").c_str(), 12345, 0) == 0) {
        EXPECT_THAT(refusal("theirs"), HasSubstr("belongs to the user with the id 12345"));
    }
}

TEST(StateFiles, SomethingElseInThePlaceOfTheirDirectoryIsAnError) {
    const Directory directory;
    std::ofstream(directory.file("gpus")) << "x";
    StateFiles files(directory.path());
    EXPECT_EQ(files.list().error().id, ErrorId::StateCorrupt);
}

/// Files of this process cannot grow beyond `bytes` while it lives: EFBIG comes where ENOSPC would.
class SmallDisk {
public:
    explicit SmallDisk(rlim_t bytes) : old_handler_(::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &old_);
        const rlimit small{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~SmallDisk() {
        ::setrlimit(RLIMIT_FSIZE, &old_);
        ::signal(SIGXFSZ, old_handler_);
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;

private:
    rlimit old_{};
    void (*old_handler_)(int);
};

TEST(StateFiles, ADiskThatFillsUpInTheMiddleOfAFileCostsThatChangeOnly) {
    const Directory directory;
    StateFiles files(directory.path());
    StateStore store(files);
    store.load();
    ASSERT_TRUE(store.commit("gpu0", weighing(2)));
    const auto size = fs::file_size(files.where(kGpu0));
    {
        const SmallDisk disk(size / 2);
        const auto refused = store.commit("gpu0", weighing(3));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
        EXPECT_THAT(refused.error().cause, HasSubstr("cannot write"));
        EXPECT_THAT(refused.error().cause, Not(HasSubstr("may find this change made")));
    }
    EXPECT_EQ(store.gpu("gpu0"), weighing(2));
    EXPECT_EQ(fs::file_size(files.where(kGpu0)), size);
    ASSERT_TRUE(store.commit("gpu0", weighing(4)));
    ASSERT_TRUE(store.commit("gpu0", weighing(5)));
    StateFiles again(directory.path());
    StateStore next(again);
    next.load();
    EXPECT_EQ(next.records(), store.records());
    EXPECT_EQ(next.gpu("gpu0"), weighing(5));
    EXPECT_EQ(decode_gpu(content_of(again, "gpus/gpu0.json.bak"))->record, weighing(4));
}

TEST(RunLock, OneStateDirectoryHasOneVgpudAlsoIfItsLockFileCannotBeWritten) {
    const Directory directory;
    const auto first = adapters::RunLock::lock_state(directory.path());
    ASSERT_TRUE(first);
    const auto second = adapters::RunLock::lock_state(directory.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().id, ErrorId::AlreadyRunning);
    EXPECT_EQ(second.error().cause, "another vgpud (pid " + std::to_string(::getpid()) +
                                        ") keeps its state in " + directory.path());
    EXPECT_TRUE(adapters::RunLock::take(directory.path())) << "run_dir may be the same";
    const Directory other;
    fs::create_directory(other.file("vgpud.state.lock"));
    EXPECT_TRUE(adapters::RunLock::lock_state(other.path()));
}

TEST(OwnerProbe, KnowsThisProcessByPidAndStartTime) {
    const adapters::OwnerProbe watch;
    EXPECT_EQ(watch.process_exists({.pid = ::getpid(), .start_time = 0}), true);
    EXPECT_EQ(watch.process_exists({.pid = ::getpid(), .start_time = 1}), false);
    EXPECT_EQ(watch.process_exists({.pid = 0x7ffffff0, .start_time = 0}), false);
}

/// Makes the entry of the process 1, without which processes count as hidden.
void show_init(const Directory& proc) {
    fs::create_directories(proc.file("1"));
    std::ofstream(proc.file("1") / "stat") << "1 (init) S";
}

TEST(OwnerProbe, KnowsVirtualMachinesByTheUuidInItsArguments) {
    using std::string_literals::operator""s;
    const Directory proc;
    show_init(proc);
    fs::create_directories(proc.file("12"));
    fs::create_directories(proc.file("self"));
    std::ofstream(proc.file("12") / "cmdline")
        << "qemu-system-x86_64\0-name\0x\0-uuid\0004DEA22B3-1D52-4d8f-8a0e-8f1f0c4b7f10\0-S\0"s;
    std::ofstream(proc.file("self") / "cmdline")
        << "x\0-uuid\0005dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10\0"s;
    const adapters::OwnerProbe watch(proc.path());
    EXPECT_EQ(watch.running_domains(),
              std::set<std::string>{"4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10"});
}

/// A process can make its arguments appear larger than the memory of the host.
TEST(OwnerProbe, ArgumentsWithoutEndAreNotRead) {
    using std::string_literals::operator""s;
    const Directory proc;
    show_init(proc);
    fs::create_directories(proc.file("12"));
    std::ofstream(proc.file("12") / "cmdline")
        << "qemu\0-uuid\0004dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10\0"s << std::string(2u << 20, 'x');
    EXPECT_EQ(adapters::OwnerProbe(proc.path()).running_domains(), std::set<std::string>{});
}

/// As with /proc mounted with hidepid=2, by which vgpud without CAP_SYS_PTRACE sees few processes.
TEST(OwnerProbe, IsNotSureOfProcessesThatProcHides) {
    const Directory proc;
    const adapters::OwnerProbe watch(proc.path());
    EXPECT_EQ(watch.process_exists({.pid = ::getpid(), .start_time = 1}), std::nullopt);
    EXPECT_EQ(watch.running_domains(), std::nullopt);
}

TEST(OwnerProbe, NamesTheProcessThatHasASocketOpen) {
    const Directory directory;
    const std::string socket = directory.file("vf1.sock").string();
    const adapters::OwnerProbe watch(directory.path());
    EXPECT_EQ(watch.client_of(socket), "");
    std::ofstream(directory.file("vf1.client")) << "71\n";
    EXPECT_EQ(watch.client_of(socket), "") << "the process has ended";
    fs::create_directories(directory.file("71"));
    std::ofstream(directory.file("71") / "comm") << "qemu system\n";
    EXPECT_EQ(watch.client_of(socket), "qemu system (pid 71)");
    std::ofstream(directory.file("vf1.client")) << "x\n";
    EXPECT_EQ(watch.client_of(socket), "");
}

/// The user of softgpu may put any file beside the sockets.
TEST(OwnerProbe, NeitherWaitsForAPipeNorFollowsALinkInPlaceOfTheRecordOfAClient) {
    const Directory directory;
    const std::string socket = directory.file("vf1.sock").string();
    const adapters::OwnerProbe watch(directory.path());
    fs::create_directories(directory.file("71"));
    std::ofstream(directory.file("71") / "comm") << "qemu\n";
    ASSERT_EQ(::mkfifo(directory.file("vf1.client").c_str(), 0600), 0);
    EXPECT_EQ(watch.client_of(socket), "");
    fs::remove(directory.file("vf1.client"));
    std::ofstream(directory.file("record")) << "71\n";
    fs::create_symlink(directory.file("record"), directory.file("vf1.client"));
    EXPECT_EQ(watch.client_of(socket), "");
}

/// A directory can be opened and not be read, as the files of a process that has just ended.
TEST(OwnerProbe, AProcessThatEndsWhileItIsLookedAtIsNone) {
    const Directory proc;
    show_init(proc);
    constexpr int kNoPid = 0x7ffffff0;
    fs::create_directories(proc.file(std::to_string(kNoPid)) / "cmdline");
    fs::create_directories(proc.file(std::to_string(kNoPid)) / "stat");
    const adapters::OwnerProbe watch(proc.path());
    EXPECT_EQ(watch.running_domains(), std::set<std::string>{});
    EXPECT_EQ(watch.process_exists({.pid = kNoPid, .start_time = 0}), false);
}

}  // namespace
}  // namespace vgpu::daemon
