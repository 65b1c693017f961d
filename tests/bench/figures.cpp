// SPDX-License-Identifier: MIT
//
// vgpu-figures: measures the whole machine, with the engine idle and with all compute units busy.
// It compares the MMIO round trip with a bare unix-socket ping-pong of the same sizes, the world
// switch with that round trip, and the scrub with memset and non-temporal stores. It also measures
// AQL packet rate and latency, and wave instructions per second. Prints what was measured and what
// is aimed at, without a verdict.
#include <fmt/format.h>
#include <immintrin.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "pf-driver/hw/regs.h"
#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMiB = 1u << 20;

double seconds_of(const std::function<void()>& act) {
    const auto start = Clock::now();
    act();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Median and 99th percentile of `count` timings, in us.
struct Spread {
    double p50 = 0, p99 = 0;
};
Spread spread(std::size_t count, const std::function<void()>& act) {
    std::vector<double> times(count);
    for (auto& time : times) time = seconds_of(act) * 1e6;
    std::ranges::sort(times);
    return {times[count / 2], times[count * 99 / 100]};
}

void row(const std::string& what, const std::string& measured, const std::string& target) {
    fmt::print("  {:<52} {:>24}   {}\n", what, measured, target);
}

/// A process that answers every 32-byte message with 36 bytes, as a REGION_READ of 4 bytes does.
class PingPong {
public:
    PingPong() {
        std::array<int, 2> pair{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
            throw VfError("socketpair", errno);
        ours_ = UniqueFd(pair[0]);
        child_ = ::fork();
        if (child_ == 0) {
            ours_.reset();  // its own copy would hide the end of the connection
            serve(pair[1]);
        }
        ::close(pair[1]);
    }
    ~PingPong() {
        ours_.reset();
        ::waitpid(child_, nullptr, 0);
    }
    PingPong(const PingPong&) = delete;
    PingPong& operator=(const PingPong&) = delete;

    void trip() {
        std::array<std::byte, 36> message{};
        if (::send(ours_.get(), message.data(), 32, MSG_NOSIGNAL) != 32 ||
            ::recv(ours_.get(), message.data(), 36, MSG_WAITALL) != 36)
            throw VfError("ping-pong", errno);
    }

private:
    [[noreturn]] static void serve(int fd) {
        std::array<std::byte, 36> message{};
        while (::recv(fd, message.data(), 32, MSG_WAITALL) == 32)
            if (::send(fd, message.data(), 36, MSG_NOSIGNAL) != 36) break;
        ::_exit(0);
    }
    UniqueFd ours_;
    pid_t child_ = -1;
};

/// Two guests on one GPU. make_busy() starts a kernel of a guest that never ends, on all CUs.
struct Bench {
    explicit Bench(bool is_stepwise = false)
        : stack({.vram_mb = 1024, .aperture_mb = 256, .is_stepwise = is_stepwise}) {
        stack.set_quantum(1000);
        for (std::uint32_t vf : {1u, 2u}) stack.provision(vf);
        one.emplace(stack, 1);
        two.emplace(stack, 2);
        for (auto* guest : {&*one, &*two}) guest->client.device().trace().set_recording(false);
    }
    static void make_busy(Guest& guest) { wait_progress(start_endless(guest, 64)); }
    GpuStack stack;
    std::optional<Guest> one, two;
};

double mmio(Bench& bench, const std::string& load) {
    constexpr std::size_t kTrips = 5000;
    PingPong ping;
    auto& device = bench.one->client.device();
    const auto raw = spread(kTrips, [&] { ping.trip(); });
    const auto read = spread(kTrips, [&] { (void)device.read(REG_NBIO_RCC_IOV_FUNC_IDENTIFIER); });
    row("unix-socket ping-pong, " + load, fmt::format("p50 {:.1f} p99 {:.1f} us", raw.p50, raw.p99),
        "");
    row("MMIO read round trip, " + load,
        fmt::format("p50 {:.1f} p99 {:.1f} us", read.p50, read.p99), "");
    row("  ratio of the medians", fmt::format("{:.2f}", read.p50 / raw.p50), "<= 1.25");
    return read.p50;
}

/// Measures, from RUN events, the time from the end of one run to the start of the next, and the
/// park before it.
void world_switch(Bench& bench, double round_trip_us, const std::string& how,
                  const std::string& aim) {
    constexpr std::size_t kSwitches = 2000;
    auto events = bench.stack.pf().events();
    std::vector<double> parks, between;
    std::uint64_t last_end = 0;
    const Deadline deadline(milliseconds(60000));
    while (between.size() < kSwitches && !deadline.passed()) {
        events.wait_any(deadline);
        for (const auto& event : events.take()) {
            if (event.type != VGPU_PF_EVENT_RUN) continue;
            parks.push_back(static_cast<double>(event.arg2) / 1e3);
            const auto start = event.time_ns - event.duration_ns;
            if (last_end != 0) between.push_back(static_cast<double>(start - last_end) / 1e3);
            last_end = event.time_ns;
        }
    }
    if (between.empty()) throw VfError("no world switch was seen");
    std::ranges::sort(parks);
    std::ranges::sort(between);
    const auto text = [](const std::vector<double>& sorted) {
        return fmt::format("p50 {:.1f} p99 {:.1f} us", sorted[sorted.size() / 2],
                           sorted[sorted.size() * 99 / 100]);
    };
    row("park (stop all waves), all CUs busy, " + how, text(parks), "<= 100 us p99");
    row("world switch without park, all CUs busy, " + how, text(between), "");
    row("  ratio of its median to the MMIO round trip",
        fmt::format("{:.1f}", between[between.size() / 2] / round_trip_us), aim);
}

double packets_per_second(Guest& guest, const std::function<void(const Signal*)>& packet) {
    constexpr int kBatches = 200, kBatch = 200;
    const auto done = guest.process->create_signal();
    const auto seconds = seconds_of([&] {
        for (int batch = 0; batch < kBatches; ++batch) {
            done.set(1);
            for (int i = 1; i < kBatch; ++i) packet(nullptr);
            packet(&done);
            guest.process->wait(done);
        }
    });
    return kBatches * kBatch / seconds;
}

void aql(Bench& bench, const std::string& load) {
    auto& guest = *bench.one;
    const auto completion = [](const Signal* done) {
        return done == nullptr ? std::optional<Signal>{} : std::optional<Signal>{*done};
    };
    const auto barriers = packets_per_second(
        guest, [&](const Signal* done) { guest.queue->barrier_and({}, completion(done)); });
    const auto kernel = guest.process->load(kernel_file("array_increment"), "array_increment");
    const auto memory = guest.process->allocate(4096);
    const auto arguments = args(memory.address);
    const auto dispatches = packets_per_second(guest, [&](const Signal* done) {
        guest.queue->dispatch(kernel, {.grid = {1, 1, 1}, .group = {1, 1, 1}}, arguments,
                              completion(done));
    });
    row("empty AQL packets, a doorbell each, " + load, fmt::format("{:.0f} /s", barriers),
        ">= 300 k/s in the device");
    row("AQL dispatches of one short wave, " + load, fmt::format("{:.0f} /s", dispatches), "");
}

/// Measures the time from the packet's doorbell until the guest, which polls the signal, sees it.
/// This includes a socket message and a dispatch.
void dispatch_latency(Bench& bench, const std::string& load) {
    constexpr std::size_t kDispatches = 5000;
    auto& guest = *bench.one;
    const auto kernel = guest.process->load(kernel_file("empty"), "empty");
    const auto done = guest.process->create_signal();
    const auto times = spread(kDispatches, [&] {
        done.set(1);
        guest.queue->dispatch(kernel, {.grid = {1, 1, 1}, .group = {1, 1, 1}}, {}, done);
        while (done.value() != 0) {
        }
    });
    row("empty dispatch, packet to signal, " + load,
        fmt::format("p50 {:.1f} p99 {:.1f} us", times.p50, times.p99), "<= 5 us in the device");
}

void instructions(Bench& bench) {
    const auto before = bench.stack.pf().vf(1);
    wait_for("1 s of service", milliseconds(60000),
             [&] { return bench.stack.pf().vf(1).service_ns - before.service_ns > 1'000'000'000; });
    const auto after = bench.stack.pf().vf(1);
    const auto rate = static_cast<double>(after.wave_instructions - before.wave_instructions) /
                      (static_cast<double>(after.service_ns - before.service_ns) / 1e9);
    row("wave64 instructions, endless kernel, 2 threads", fmt::format("{:.1f} M/s", rate / 1e6),
        "");
}

void fill_non_temporal(std::span<std::byte> memory) {
    const auto value = _mm_setzero_si128();
    for (std::size_t at = 0; at < memory.size(); at += 16)
        _mm_stream_si128(static_cast<__m128i*>(static_cast<void*>(memory.data() + at)), value);
    _mm_sfence();
}

void scrub(Bench& bench) {
    constexpr std::uint64_t kBytes = 256 * kMiB;
    void* const start = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (start == MAP_FAILED) throw VfError("mmap", errno);
    const Mapping memory(start, kBytes);
    const auto set = seconds_of([&] { std::memset(memory.bytes().data(), 0, kBytes); });
    const auto stream = seconds_of([&] { fill_non_temporal(memory.bytes()); });
    auto& pf = bench.stack.pf();
    pf.provision(3, kBytes);
    {
        VfClient owner(bench.stack.vf_socket(3));
        std::ranges::fill(owner.device().vram(), std::byte{1});
    }
    auto events = pf.events();
    vgpu_pf_event done{};
    const auto released = seconds_of([&] {
        pf.release(3);
        done = events.wait([](const auto& event) { return event.type == VGPU_PF_EVENT_SCRUBBED; },
                           milliseconds(60000));
    });
    const auto zeroed = static_cast<double>(done.duration_ns) / 1e9;
    const auto verified = static_cast<double>(done.arg2) / 1e9;
    const auto rate = [](double seconds) {
        return fmt::format("{:.2f} GB/s", static_cast<double>(kBytes) / 1e9 / seconds);
    };
    row("memset, 256 MiB", rate(set), "");
    row("non-temporal stores, 256 MiB", rate(stream), "");
    row("scrub of 256 MiB, pages replaced", rate(zeroed), "");
    row("  ratio to non-temporal stores", fmt::format("{:.2f}", stream / zeroed), ">= 0.85");
    row("verification of 256 MiB, every byte read", rate(verified), "");
    row("release of 256 MiB, from request to event, both included", rate(released), "");
    row("  ratio to non-temporal stores", fmt::format("{:.2f}", stream / released), "");
}

/// Measures the work of four VFs with slices of 8 ms together, divided by the work of one of them
/// alone. Both are measured in turns, from the counters that the waves keep in memory.
void sharing() {
    constexpr std::uint32_t kVfs = 4, kWaves = 64, kRounds = 5;
    GpuStack stack;
    stack.set_quantum(8000);
    std::vector<std::unique_ptr<Guest>> guests;
    std::vector<Buffer> counters;
    for (std::uint32_t vf = 1; vf <= kVfs; ++vf) {
        stack.provision(vf);
        guests.push_back(std::make_unique<Guest>(stack, vf));
        guests.back()->client.device().trace().set_recording(false);
        counters.push_back(start_endless(*guests.back(), kWaves));
        wait_progress(counters.back());
    }
    const auto rate = [&] {
        const auto sum = [&] {
            std::uint64_t total = 0;
            for (const Buffer& counter : counters)
                for (std::uint32_t wave = 0; wave < kWaves; ++wave)
                    total += counter.load<std::uint32_t>(sizeof(std::uint32_t) * wave);
            return total;
        };
        const auto before = sum();
        const auto seconds =
            seconds_of([] { std::this_thread::sleep_for(std::chrono::seconds(2)); });
        return static_cast<double>(sum() - before) / seconds;
    };
    const auto set_others = [&](vgpu_pf_control_action action) {
        for (std::uint32_t vf = 2; vf <= kVfs; ++vf) stack.pf().control(vf, action);
    };
    std::vector<double> ratios;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
        const auto together = rate();
        set_others(VGPU_PF_PAUSE);
        ratios.push_back(together / rate());
        set_others(VGPU_PF_RESUME);
    }
    std::ranges::sort(ratios);
    row("work of four VFs with slices of 8 ms / of one alone",
        fmt::format("{:.3f}", ratios[kRounds / 2]), ">= 0.993");
}

void run_all() {
    fmt::print("  {:<52} {:>24}   {}\n", "figure", "measured", "aim");
    Bench bench;
    mmio(bench, "engine idle");
    aql(bench, "engine idle");
    dispatch_latency(bench, "engine idle");
    Bench::make_busy(*bench.two);
    aql(bench, "half of a busy engine");
    Bench::make_busy(*bench.one);
    const auto round_trip = mmio(bench, "all CUs busy");
    world_switch(bench, round_trip, "one-shot", "<= 5");
    instructions(bench);
    scrub(bench);
}

void run_stepwise() {
    Bench bench(true);
    Bench::make_busy(*bench.one);
    Bench::make_busy(*bench.two);
    const auto round_trip = mmio(bench, "all CUs busy");
    world_switch(bench, round_trip, "stepwise", "<= 12");
}

}  // namespace
}  // namespace vgpu::test

int main() {
    try {
        vgpu::test::run_all();
        vgpu::test::run_stepwise();
        vgpu::test::sharing();
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "vgpu-figures: {}\n", error.what());
        return 1;
    }
}
