// SPDX-License-Identifier: MIT
//
// The state files on a real file system, and the locks beside them.
#include "daemon/adapters/state_files.h"

#include "daemon/adapters/owner_watch.h"
#include "daemon/adapters/run_lock.h"
#include "daemon/service/state/store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
using adapters::StateFiles;
using ::testing::HasSubstr;

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
    record.vfs[1] = {.vf = 1, .name = "a", .weight = weight};
    return record;
}

TEST(StateFiles, ReplaceAppendAndCutAreReadBackAndLeaveNoTemporary) {
    const Directory directory;
    StateFiles files(directory.path());
    EXPECT_FALSE(files.read(StateFile::Journal)->has_value());
    ASSERT_TRUE(files.replace(StateFile::Checkpoint, "one"));
    ASSERT_TRUE(files.replace(StateFile::Checkpoint, "two"));
    EXPECT_EQ(**files.read(StateFile::Checkpoint), "two");
    ASSERT_TRUE(files.replace(StateFile::Journal, "head"));
    ASSERT_TRUE(files.append(4, "-first"));
    ASSERT_TRUE(files.append(10, "-second"));
    EXPECT_EQ(**files.read(StateFile::Journal), "head-first-second");
    ASSERT_TRUE(files.cut(10));
    EXPECT_EQ(**files.read(StateFile::Journal), "head-first");
    ASSERT_TRUE(files.replace(StateFile::Journal, "new"));
    ASSERT_TRUE(files.append(3, "!"));
    EXPECT_EQ(**files.read(StateFile::Journal), "new!") << "not into the one that was replaced";
    EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 2);
}

TEST(StateFiles, AJournalThatSomebodyElseChangedIsNotWrittenTo) {
    const Directory directory;
    StateFiles files(directory.path());
    ASSERT_TRUE(files.replace(StateFile::Journal, "head"));
    ASSERT_TRUE(files.append(4, "-first"));
    std::ofstream(files.where(StateFile::Journal), std::ios::app) << "x";
    EXPECT_THAT(files.append(10, "-second").error().cause, HasSubstr("changed by somebody else"));
    ASSERT_TRUE(files.replace(StateFile::Journal, "head"));
    std::ofstream(files.where(StateFile::Journal), std::ios::app) << "x";
    EXPECT_THAT(files.append(4, "-first").error().cause, HasSubstr("changed by somebody else"))
        << "before it was opened";
    ASSERT_TRUE(files.replace(StateFile::Journal, "head"));
    ASSERT_TRUE(files.append(4, "-first"));
    const auto write_at = [&](std::streamoff place, char letter) {
        std::fstream file(files.where(StateFile::Journal), std::ios::in | std::ios::out);
        file.seekp(place).put(letter);
    };
    write_at(10, 'x');
    EXPECT_THAT(files.append(10, "-second").error().cause, HasSubstr("changed by somebody else"))
        << "it goes on where it ended";
    write_at(10, '\0');
    write_at(70, 'x');
    EXPECT_THAT(files.append(10, "-second").error().cause, HasSubstr("changed by somebody else"))
        << "it is another one, of which a zero is there";
    write_at(70, '\0');
    write_at(9, '\0');
    EXPECT_THAT(files.append(10, "-second").error().cause, HasSubstr("changed by somebody else"))
        << "an older one that ends before that";
    write_at(9, 't');
    ASSERT_TRUE(files.append(10, "-second"));
    fs::remove(files.where(StateFile::Journal));
    EXPECT_THAT(files.append(10, "-second").error().cause, HasSubstr("changed by somebody else"));
}

TEST(StateFiles, AJournalGrowsIntoWhatWasReservedWhenItBegan) {
    const Directory directory;
    StateFiles files(directory.path());
    ASSERT_TRUE(files.replace(StateFile::Journal, "head"));
    EXPECT_EQ(fs::file_size(files.where(StateFile::Journal)), StatePort::kJournalBytes);
    EXPECT_EQ(**files.read(StateFile::Journal), "head") << "no content";
    ASSERT_TRUE(files.append(4, "-first"));
    EXPECT_EQ(fs::file_size(files.where(StateFile::Journal)), StatePort::kJournalBytes);
    const std::string long_record(StatePort::kJournalBytes, 'x');
    ASSERT_TRUE(files.append(10, long_record));
    EXPECT_EQ(**files.read(StateFile::Journal), "head-first" + long_record);
    ASSERT_TRUE(files.append(10 + long_record.size(), "-last")) << "and beyond it";
}

TEST(StateFiles, AJournalOfAVgpudThatReservedNothingIsGoneOnWith) {
    const Directory directory;
    StateFiles files(directory.path());
    std::ofstream(files.where(StateFile::Journal)) << "head-first";
    ASSERT_TRUE(files.append(10, "-second"));
    ASSERT_TRUE(files.append(17, "-third"));
    EXPECT_EQ(**files.read(StateFile::Journal), "head-first-second-third");
}

TEST(StateFiles, AFailureLeavesTheOldFile) {
    const Directory directory;
    StateFiles files(directory.path());
    ASSERT_TRUE(files.replace(StateFile::Checkpoint, "one"));
    fs::create_directory(files.where(StateFile::Checkpoint) + ".new");
    const auto refused = files.replace(StateFile::Checkpoint, "two");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
    EXPECT_THAT(refused.error().cause, HasSubstr("vgpud.state.json.new"));
    EXPECT_EQ(**files.read(StateFile::Checkpoint), "one");
}

TEST(StateFiles, HugeFileIsRefused) {
    const Directory directory;
    StateFiles files(directory.path());
    std::ofstream(files.where(StateFile::Journal)) << "x";
    fs::resize_file(files.where(StateFile::Journal), StateFiles::kMaxBytes + 1);
    EXPECT_EQ(files.read(StateFile::Journal).error().id, ErrorId::StateCorrupt);
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

TEST(StateFiles, ADiskThatFillsUpInTheMiddleOfARecordCostsThatChangeOnly) {
    const Directory directory;
    StateFiles files(directory.path());
    StateStore store(files);
    store.load();
    {
        const SmallDisk disk(4096);  // no room to reserve
        ASSERT_TRUE(store.commit("gpu0", weighing(1)));
    }
    ASSERT_TRUE(store.commit("gpu0", weighing(2)));
    const auto size = fs::file_size(files.where(StateFile::Journal));
    ASSERT_LT(size, StatePort::kJournalBytes);
    {
        const SmallDisk disk(size + 30);
        const auto refused = store.commit("gpu0", weighing(3));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, ErrorId::StateNotWritten);
        EXPECT_THAT(refused.error().cause, HasSubstr("cannot write"));
    }
    EXPECT_EQ(store.gpu("gpu0"), weighing(2));
    EXPECT_EQ(fs::file_size(files.where(StateFile::Journal)), size);
    ASSERT_TRUE(store.commit("gpu0", weighing(4)));
    ASSERT_TRUE(store.commit("gpu0", weighing(5)));
    StateFiles again(directory.path());
    StateStore next(again);
    next.load();
    EXPECT_EQ(next.records(), store.records());
    EXPECT_EQ(next.gpu("gpu0"), weighing(5));
}

TEST(RunLock, OneStateDirectoryHasOneVgpudAlsoIfItsLockFileCannotBeWritten) {
    const Directory directory;
    const auto first = adapters::RunLock::take_state(directory.path());
    ASSERT_TRUE(first);
    const auto second = adapters::RunLock::take_state(directory.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().id, ErrorId::AlreadyRunning);
    EXPECT_EQ(second.error().cause, "another vgpud (pid " + std::to_string(::getpid()) +
                                        ") keeps its state in " + directory.path());
    EXPECT_TRUE(adapters::RunLock::take(directory.path())) << "run_dir may be the same";
    const Directory other;
    fs::create_directory(other.file("vgpud.state.lock"));
    EXPECT_TRUE(adapters::RunLock::take_state(other.path()));
}

TEST(OwnerWatch, KnowsThisProcessByPidAndStartTime) {
    const adapters::OwnerWatch watch;
    EXPECT_TRUE(watch.process_exists({.pid = ::getpid(), .start_time = 0}));
    EXPECT_FALSE(watch.process_exists({.pid = ::getpid(), .start_time = 1}));
    EXPECT_FALSE(watch.process_exists({.pid = 0x7ffffff0, .start_time = 0}));
}

TEST(OwnerWatch, KnowsVirtualMachinesByTheUuidInItsArguments) {
    using std::string_literals::operator""s;
    const Directory proc;
    fs::create_directories(proc.file("12"));
    fs::create_directories(proc.file("self"));
    std::ofstream(proc.file("12") / "cmdline")
        << "qemu-system-x86_64\0-name\0x\0-uuid\0004DEA22B3-1D52-4d8f-8a0e-8f1f0c4b7f10\0-S\0"s;
    std::ofstream(proc.file("self") / "cmdline")
        << "x\0-uuid\0005dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10\0"s;
    const adapters::OwnerWatch watch(proc.path());
    EXPECT_THAT(watch.running_domains(),
                ::testing::ElementsAre("4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10"));
    EXPECT_TRUE(adapters::OwnerWatch("/nonexistent").running_domains().empty());
}

TEST(OwnerWatch, NamesTheProcessThatHasASocketOpen) {
    const Directory directory;
    const std::string socket = directory.file("vf1.sock").string();
    const adapters::OwnerWatch watch;
    EXPECT_EQ(watch.client_of(socket), "");
    std::ofstream(directory.file("vf1.client")) << "71 qemu system\n";
    EXPECT_EQ(watch.client_of(socket), "qemu system (pid 71)");
    std::ofstream(directory.file("vf1.client")) << "x\n";
    EXPECT_EQ(watch.client_of(socket), "");
}

/// A directory can be opened and not be read, as the files of a process that has just ended.
TEST(OwnerWatch, AProcessThatEndsWhileItIsLookedAtIsNone) {
    const Directory proc;
    fs::create_directories(proc.file("12") / "cmdline");
    fs::create_directories(proc.file("12") / "stat");
    const adapters::OwnerWatch watch(proc.path());
    EXPECT_TRUE(watch.running_domains().empty());
    EXPECT_FALSE(watch.process_exists({.pid = 12, .start_time = 0}));
}

}  // namespace
}  // namespace vgpu::daemon
