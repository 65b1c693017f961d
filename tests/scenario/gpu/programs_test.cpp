// SPDX-License-Identifier: MIT
//
// Real gfx900 code on VFs: results equal the host's, bit for bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

TEST(Programs, AreBitExactOnOneVf) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    EXPECT_EQ(run_programs(*guest.process, *guest.queue, Program::names()), "");
}

TEST(Programs, CompiledWithoutOptimisationAreBitExactToo) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    EXPECT_EQ(run_programs(*guest.process, *guest.queue, Program::names(), Optimised::O0), "");
    EXPECT_GT(guest.queue->scratch_requests(), 0u) << "scratch came without being asked for";
}

/// Resident KiB of a process's mappings of code memory that have these rights, such as "rw-s".
std::uint64_t code_memory_kib(pid_t pid, const std::string& rights) {
    std::ifstream smaps("/proc/" + std::to_string(pid) + "/smaps");
    std::uint64_t sum = 0;
    bool is_counted = false;
    for (std::string line; std::getline(smaps, line);) {
        if (line.find("memfd:vgpu-code") != std::string::npos)
            is_counted = line.find(' ' + rights + ' ') != std::string::npos;
        if (!is_counted || line.rfind("Rss:", 0) != 0) continue;
        sum += std::stoull(line.substr(4));
        is_counted = false;
    }
    return sum;
}

/// Sets the tier of every softgpu that GpuStack starts during this object's life, in place of the
/// run's tier.
class ScopedTier {
public:
    explicit ScopedTier(const char* tier) {
        if (const char* const before = std::getenv(kVariable)) before_ = before;
        ::setenv(kVariable, tier, 1);
    }
    ~ScopedTier() {
        if (before_)
            ::setenv(kVariable, before_->c_str(), 1);
        else
            ::unsetenv(kVariable);
    }
    ScopedTier(const ScopedTier&) = delete;
    ScopedTier& operator=(const ScopedTier&) = delete;

private:
    static constexpr const char* kVariable = "VGPU_ISA_TIER";
    std::optional<std::string> before_;
};

TEST(Programs, AreBitExactInTranslatedCodeOfALockedInSoftgpu) {
    if (!__builtin_cpu_supports("avx512vbmi2")) GTEST_SKIP() << "no AVX-512";
    const ScopedTier tier("translator");
    GpuStack stack;
    stack.provision(1);
    const pid_t pid = stack.softgpu().pid();
    EXPECT_EQ(code_memory_kib(pid, "rw-s"), 0u);
    Guest guest(stack, 1);
    EXPECT_EQ(run_programs(*guest.process, *guest.queue, Program::names()), "");
    EXPECT_GT(code_memory_kib(pid, "rw-s"), 0u) << "no code was written";
    EXPECT_GT(code_memory_kib(pid, "r-xs"), 0u) << "no code was executed";
    EXPECT_LE(code_memory_kib(pid, "rw-s"), 16u << 10) << "more than the share of one VF";
}

TEST(Programs, AreBitExactWithTheirDataInVram) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    const auto done = guest.process->create_signal();
    for (const auto& name : Program::demo_names()) {
        Program program(*guest.process, name, Load::Small, Optimised::O3, Place::Vram);
        program.start(*guest.queue, done);
        guest.process->wait(done);
        EXPECT_TRUE(program.is_exact()) << program.difference();
    }
}

TEST(Programs, AreBitExactOnTwoVfsAtOnce) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest one(stack, 1);
    Guest two(stack, 2);
    std::string condition;
    std::thread other([&] {
        try {
            for (int i = 0; i < 5 && condition.empty(); ++i) condition = two.run_all();
        } catch (const VfError& error) {
            condition = error.what();
        }
    });
    for (int i = 0; i < 5; ++i) EXPECT_EQ(one.run_all(), "");
    other.join();
    EXPECT_EQ(condition, "");
    EXPECT_GT(stack.pf().vf(1).wave_instructions, 0u);
    EXPECT_GT(stack.pf().vf(2).wave_instructions, 0u);
}

TEST(Programs, RunInTwoProcessesAndFourQueuesOfOneVf) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    auto& second = guest.client.create_process();
    std::vector<std::pair<Process*, AqlQueue*>> places{
        {guest.process, guest.queue},
        {guest.process, &guest.process->create_queue()},
        {&second, &second.create_queue()},
        {&second, &second.create_queue()}};
    std::vector<Program> programs;
    std::vector<Signal> signals;
    for (const auto& [process, queue] : places) {
        programs.emplace_back(*process, "collatz");
        signals.push_back(process->create_signal());
    }
    for (std::size_t i = 0; i < places.size(); ++i)
        programs[i].start(*places[i].second, signals[i]);
    for (std::size_t i = 0; i < places.size(); ++i) {
        places[i].first->wait(signals[i]);
        EXPECT_TRUE(programs[i].is_exact()) << programs[i].difference();
    }
}

TEST(Programs, SurviveQueuesBeingCreatedAndDestroyedAroundThem) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    Program program(*guest.process, "long_running", Load::Heavy);
    const auto done = guest.process->create_signal();
    program.start(*guest.queue, done);
    // each change of the run list takes the running queue off the hardware and puts it back
    for (int i = 0; i < 5; ++i) guest.process->destroy_queue(guest.process->create_queue());
    guest.process->wait(done);
    EXPECT_TRUE(program.is_exact()) << program.difference();
}

TEST(Programs, SignalAnInterruptWhileTheyRun) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    const auto kernel = guest.process->load(kernel_file("interrupt"), "interrupt");
    const auto mailbox = guest.process->allocate(4096);
    const auto done = guest.process->create_signal();
    constexpr std::uint32_t kPayload = 0x55;
    guest.queue->dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                          args(mailbox.address, kPayload), done);
    guest.client.ih().wait(
        [](const IvEntry& entry) { return (entry.source_data[0] & 0xff) == kPayload; },
        milliseconds(10000));
    EXPECT_EQ(done.value(), 1) << "the kernel did not wait for its answer";
    mailbox.store<std::uint32_t>(0, 7);
    guest.process->wait(done);
    EXPECT_EQ(mailbox.load<std::uint32_t>(), 8u);
}

TEST(Programs, WorkInMemoryThatIsReachedByMessagesOnly) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1, {.ram_bytes = 64u << 20, .sealing = Sealing::Unsealed});
    EXPECT_EQ(run_programs(*guest.process, *guest.queue, {"array_increment", "lds_neighbours"}),
              "");
}

TEST(Sdma, CopiesBetweenSystemMemoryAndVramOnBothEngines) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    constexpr std::uint64_t kBytes = 1u << 20;
    const auto from = guest.process->allocate(kBytes);
    const auto vram = guest.process->allocate(kBytes, Place::Vram);
    const auto to = guest.process->allocate(kBytes);
    for (std::uint64_t i = 0; i < kBytes; i += 4)
        from.store(i, static_cast<std::uint32_t>(i * 2654435761u));
    const auto done = guest.process->create_signal();
    guest.process->create_sdma_queue(0).copy(vram.address, from.address, kBytes, done);
    guest.process->wait(done);
    done.set(1);
    guest.process->create_sdma_queue(1).copy(to.address, vram.address, kBytes, done);
    guest.process->wait(done);
    EXPECT_TRUE(std::ranges::equal(from.cpu, to.cpu));
}

TEST(Sdma, AndKernelsOrderThemselvesBySignals) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    Program program(*guest.process, "lds_neighbours");
    const auto computed = guest.process->create_signal();
    const auto copied = guest.process->create_signal();
    const auto gate = guest.process->create_signal();
    const auto to = guest.process->allocate(program.output().size());
    // copy waits for the kernel, the kernel's queue waits for the gate
    auto& sdma = guest.process->create_sdma_queue(0);
    guest.queue->barrier_and(std::array{gate}, {});
    program.start(*guest.queue, computed);
    auto packets = sdma::wait_memory(computed.address() + offsetof(aql_signal, value), 0, ~0u);
    packets +=
        sdma::copy(to.address, program.output().address, static_cast<std::uint32_t>(to.size()));
    sdma.push(packets, copied);
    EXPECT_EQ(computed.value(), 1);
    gate.set(0);
    guest.process->wait(copied);
    EXPECT_TRUE(program.is_exact()) << program.difference();
    EXPECT_TRUE(std::ranges::equal(program.output().cpu, to.cpu));
}

}  // namespace
}  // namespace vgpu::test
