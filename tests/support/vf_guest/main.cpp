// SPDX-License-Identifier: MIT
//
// vf-guest SOCKET: the user-space VF driver as a process that tests/host controls. It reads one
// order a line and writes one answer a line. The answer of an order that fails is "error TEXT". The
// driver then forgets its state, and boot may follow.
//
//   boot       the driver's init sequence                        -> booted MIB
//   prepare N  makes N rounds of programs for compute, which takes a while; without this order
//              compute does it first                           -> prepared N
//   compute    keeps checked programs queued until the next line, which may be empty
//                                                                -> computed ROUNDS wrong WRONG
//   endless    starts a kernel that never ends                   -> endless
//   progress   what that kernel has counted up to                -> progress COUNT
//   attack     reads VRAM beyond the VF's own, three ways        -> stopped N of 3
//   overwrite  writes VRAM beyond the VF's own, three ways       -> stopped N of 3
//   unload     the driver's exit                                 -> unloaded
//   forget     drops everything without touching the VF          -> forgotten
//
// With or without a booted driver:
//
//   fill SEED WHERE    writes words that SEED decides through BAR0. WHERE: "all" but what the PF
//                      writes, "rest" is the last quarter, which a driver does not use
//                                                                -> filled MIB
//   check SEED WHERE   reads them                                -> kept PAGES of PAGES
//   blank WHERE        counts the pages that hold zeroes alone   -> blank PAGES of PAGES
//   read NAME          reads a register, named BLOCK_NAME of hw/regs.def       -> read VALUE
//   write NAME VALUE                                             -> written
//   ring DOORBELL      writes 1 to a doorbell, by its dword      -> rung
//   flr                resets the function, as a VMM would; the driver's state is lost
//                                                                -> reset
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "pf-driver/hw/regs.h"
#include "tests/support/programs/program.h"
#include "tests/support/vf_client/process.h"
#include "tests/support/vf_client/vf_client.h"

namespace vgpu::test {
namespace {

constexpr std::size_t kRoundsInFlight = 8;  // enough that the VF always has work
constexpr std::uint64_t kMiB = 1u << 20;
constexpr milliseconds kRoundLimit{60000};
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kPfBytes = 256u << 10;  // at the start of VRAM: VBIOS, PF2VF
constexpr std::uint64_t kRestParts = 4;

struct Register {
    std::string_view name;
    std::uint32_t offset;
};

#define REG(block, name, offset, reset, pf, vf, doc) {#block "_" #name, offset},
#define REG_ARRAY(block, name, offset, count, stride, reset, pf, vf, doc) \
    {#block "_" #name, offset},
constexpr Register kRegisters[] = {
#include "pf-driver/hw/regs.def"
};
#undef REG
#undef REG_ARRAY

std::uint32_t register_named(const std::string& name) {
    const auto found = std::ranges::find(kRegisters, name, &Register::name);
    if (found == std::end(kRegisters)) throw VfError("no such register: " + name);
    return found->offset;
}

/// A word that no other seed or offset has (splitmix64 is a bijection).
std::uint64_t word_of(std::uint64_t seed, std::uint64_t offset) {
    std::uint64_t x = (seed << 40 | offset) + 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

bool has_order() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return std::cin.rdbuf()->in_avail() > 0 || ::poll(&input, 1, 0) > 0;
}

/// All programs of the demo once; the shared signal counts down to 0.
class Round {
public:
    explicit Round(Process& process) : done_(process.create_signal()) {
        for (const auto& name : Program::demo_names())
            programs_.push_back(std::make_unique<Program>(process, name, Load::Heavy));
    }
    void start(AqlQueue& queue) {
        done_.set(static_cast<std::int64_t>(programs_.size()));
        for (auto& program : programs_) program->enqueue(queue, done_);
    }
    [[nodiscard]] const Signal& done() const { return done_; }
    [[nodiscard]] bool is_exact() const {
        return std::ranges::all_of(programs_, [](const auto& each) { return each->is_exact(); });
    }

private:
    std::vector<std::unique_ptr<Program>> programs_;
    Signal done_;
};

class Worker {
public:
    explicit Worker(const std::string& socket) : vf_(socket) {
        vf_.device().trace().set_recording(false);
    }

    /// The answer to an order.
    std::string obey(const std::string& order) try {
        words_ = std::istringstream(order);
        const auto wanted = next<std::string>();
        for (const auto& [name, act] : kOrders)
            if (name == wanted) return (this->*act)();
        return "error no such order: " + order;
    } catch (const std::exception& error) {
        forget();
        return std::string("error ") + error.what();
    }

private:
    struct Order {
        const char* name;
        std::string (Worker::*act)();
    };
    static const std::array<Order, 16> kOrders;

    /// The next word of the order.
    template <typename Value> Value next() {
        Value value{};
        if (!(words_ >> value)) throw VfError("the order wants another word");
        return value;
    }

    std::string boot() {
        rounds_.clear();
        vf_.boot();
        process_ = &vf_.create_process();
        queue_ = &process_->create_queue();
        return fmt::format("booted {}", vf_.vram_bytes() / kMiB);
    }

    std::string unload() {
        rounds_.clear();
        vf_.unload();
        process_ = nullptr;
        return "unloaded";
    }

    std::string forget() {
        rounds_.clear();
        vf_.forget();
        process_ = nullptr;
        return "forgotten";
    }

    std::string prepare() {
        make_rounds(next<std::size_t>());
        return fmt::format("prepared {}", rounds_.size());
    }

    void make_rounds(std::size_t count) {
        while (rounds_.size() < count) rounds_.push_back(std::make_unique<Round>(process()));
    }

    std::string compute() {
        if (rounds_.empty()) make_rounds(kRoundsInFlight);
        std::deque<Round*> in_flight;
        for (const auto& round : rounds_) {
            in_flight.push_back(round.get());
            round->start(*queue_);
        }
        std::uint64_t done = 0, wrong = 0;
        while (!in_flight.empty()) {
            Round* const round = in_flight.front();
            in_flight.pop_front();
            process().wait(round->done(), kRoundLimit);
            (round->is_exact() ? done : wrong) += 1;
            if (has_order()) continue;
            round->start(*queue_);
            in_flight.push_back(round);
        }
        return fmt::format("computed {} wrong {}", done, wrong);
    }

    std::string endless() {
        const auto kernel = process().load(kernel_file("endless"), "endless");
        progress_ = process().allocate(4096);
        queue_->dispatch(kernel, {.grid = {512, 1, 1}, .group = {64, 1, 1}},
                         args(progress_.address));
        return "endless";
    }

    std::string progress() {
        return process_ == nullptr ? "error not booted"
                                   : fmt::format("progress {}", progress_.load<std::uint32_t>());
    }

    std::string attack() {
        const auto beyond = vf_.vram_bytes() + 4 * kMiB;
        const int stopped = int{kernel_read_is_stopped(beyond)} +
                            int{sdma_read_is_stopped(beyond)} + int{bar_read_is_stopped(beyond)};
        return fmt::format("stopped {} of 3", stopped);
    }

    std::string overwrite() {
        const auto beyond = vf_.vram_bytes() + 4 * kMiB;
        const int stopped = int{kernel_write_is_stopped(beyond)} +
                            int{sdma_write_is_stopped(beyond)} + int{bar_write_is_stopped(beyond)};
        return fmt::format("stopped {} of 3", stopped);
    }

    /// A page of a process whose entry leads to `beyond`.
    Buffer page_at(Process& process, std::uint64_t beyond) {
        const auto page = process.allocate(kPageBytes);
        process.tables().set_entry(page.address, 0, beyond | PageTable::kVramFlags);
        vf_.device().flush_hdp();
        return page;
    }

    /// True if a kernel that reads a page ended in a memory fault and not in data.
    bool kernel_read_is_stopped(std::uint64_t beyond) {
        Process& process = vf_.create_process();
        AqlQueue& queue = process.create_queue();
        const auto kernel = process.load(kernel_file("vector_add"), "vector_add");
        const auto zero = process.allocate(kPageBytes), to = process.allocate(kPageBytes);
        const auto page = page_at(process, beyond);
        const auto done = process.create_signal();
        queue.dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                       args(page.address, zero.address, to.address, 64u), done);
        return ends_in_a_fault(process, done, to);
    }

    bool kernel_write_is_stopped(std::uint64_t beyond) {
        Process& process = vf_.create_process();
        AqlQueue& queue = process.create_queue();
        const auto kernel = process.load(kernel_file("vector_add"), "vector_add");
        const auto zero = process.allocate(kPageBytes);
        const auto page = page_at(process, beyond);
        const auto done = process.create_signal();
        queue.dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                       args(zero.address, zero.address, page.address, 64u), done);
        return ends_in_a_fault(process, done, zero);
    }

    bool sdma_read_is_stopped(std::uint64_t beyond) {
        Process& process = vf_.create_process();
        const auto to = process.allocate(kPageBytes);
        const auto page = page_at(process, beyond);
        const auto done = process.create_signal();
        process.create_sdma_queue(0).copy(to.address, page.address, kPageBytes, done);
        return ends_in_a_fault(process, done, to);
    }

    bool sdma_write_is_stopped(std::uint64_t beyond) {
        Process& process = vf_.create_process();
        const auto zero = process.allocate(kPageBytes);
        const auto page = page_at(process, beyond);
        const auto done = process.create_signal();
        process.create_sdma_queue(0).copy(page.address, zero.address, kPageBytes, done);
        return ends_in_a_fault(process, done, zero);
    }

    bool ends_in_a_fault(Process& process, const Signal& done, const Buffer& untouched) {
        process.wait_fault();
        const bool is_stopped = done.value() == 1 && untouched.load<std::uint64_t>() == 0;
        vf_.destroy_process(process);
        return is_stopped;
    }

    /// The BAR reads all ones there.
    bool bar_read_is_stopped(std::uint64_t beyond) {
        std::array<std::byte, 64> bytes{};
        vf_.device().vram_read_trapped(beyond, bytes);
        return std::ranges::all_of(bytes, [](auto byte) { return byte == std::byte{0xff}; });
    }

    /// The tests check the VRAM of the other VFs, too, which the write could reach.
    bool bar_write_is_stopped(std::uint64_t beyond) {
        const std::array<std::byte, 64> zeroes{};
        vf_.device().vram_write_trapped(beyond, zeroes);
        return bar_read_is_stopped(beyond);
    }

    /// The region "all" or "rest" of VRAM: its offset and its bytes.
    std::pair<std::uint64_t, std::span<std::byte>> region(const std::string& where) {
        const auto bytes = vf_.device().vram().size();
        if (bytes <= kPfBytes) throw VfError("the VF has no VRAM");
        const auto from = where == "all" ? kPfBytes : bytes - bytes / kRestParts;
        return {from, vf_.device().vram_at(from, bytes - from)};
    }

    std::string fill() {
        const auto seed = next<std::uint64_t>();
        const auto [from, bytes] = region(next<std::string>());
        for (std::uint64_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
            const auto word = word_of(seed, from + at);
            std::memcpy(&bytes[at], &word, sizeof(word));
        }
        return fmt::format("filled {}", bytes.size() / kMiB);
    }

    std::string check() {
        const auto seed = next<std::uint64_t>();
        const auto [from, bytes] = region(next<std::string>());
        std::uint64_t kept = 0;
        for (std::uint64_t page = 0; page < bytes.size(); page += kPageBytes)
            kept += page_is_of(seed, from + page, bytes.subspan(page, kPageBytes)) ? 1 : 0;
        return fmt::format("kept {} of {}", kept, bytes.size() / kPageBytes);
    }

    static bool is_zero(std::span<std::byte> page) {
        return std::ranges::all_of(page, [](auto byte) { return byte == std::byte{0}; });
    }

    static bool page_is_of(std::uint64_t seed, std::uint64_t offset, std::span<std::byte> page) {
        for (std::uint64_t at = 0; at < page.size(); at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, &page[at], sizeof(word));
            if (word != word_of(seed, offset + at)) return false;
        }
        return true;
    }

    std::string blank() {
        const auto bytes = region(next<std::string>()).second;
        std::uint64_t zero = 0;
        for (std::uint64_t at = 0; at < bytes.size(); at += kPageBytes)
            zero += is_zero(bytes.subspan(at, kPageBytes)) ? 1 : 0;
        return fmt::format("blank {} of {}", zero, bytes.size() / kPageBytes);
    }

    std::string read_register() {
        return fmt::format("read {}", vf_.device().read(register_named(next<std::string>())));
    }

    std::string write_register() {
        const auto offset = register_named(next<std::string>());
        vf_.device().write(offset, next<std::uint32_t>());
        return "written";
    }

    std::string ring() {
        vf_.device().doorbell32(next<std::uint32_t>(), 1);
        return "rung";
    }

    std::string flr() {
        vf_.device().reset();
        forget();
        return "reset";
    }

    Process& process() {
        if (process_ == nullptr) throw VfError("not booted");
        return *process_;
    }

    VfClient vf_;
    std::istringstream words_;
    Process* process_ = nullptr;
    AqlQueue* queue_ = nullptr;
    Buffer progress_;
    std::vector<std::unique_ptr<Round>> rounds_;  // of process_
};

const std::array<Worker::Order, 16> Worker::kOrders{{{"boot", &Worker::boot},
                                                     {"prepare", &Worker::prepare},
                                                     {"compute", &Worker::compute},
                                                     {"endless", &Worker::endless},
                                                     {"progress", &Worker::progress},
                                                     {"attack", &Worker::attack},
                                                     {"overwrite", &Worker::overwrite},
                                                     {"unload", &Worker::unload},
                                                     {"forget", &Worker::forget},
                                                     {"fill", &Worker::fill},
                                                     {"check", &Worker::check},
                                                     {"blank", &Worker::blank},
                                                     {"read", &Worker::read_register},
                                                     {"write", &Worker::write_register},
                                                     {"ring", &Worker::ring},
                                                     {"flr", &Worker::flr}}};

}  // namespace
}  // namespace vgpu::test

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: vf-guest SOCKET\n");
        return 2;
    }
    try {
        vgpu::test::Worker worker(argv[1]);
        fmt::print("attached\n");
        std::fflush(stdout);
        for (std::string order; std::getline(std::cin, order);) {
            if (order.empty()) continue;
            fmt::print("{}\n", worker.obey(order));
            std::fflush(stdout);
        }
    } catch (const std::exception& error) {
        fmt::print("error {}\n", error.what());
        return 1;
    }
    return 0;
}
