// SPDX-License-Identifier: MIT
//
// vgpu-claim-figures: measures how long a claim of a VF with the binding of vfio-pci takes through
// vgpud, and how long the same writes to sysfs take without vgpud. Uses two VFs of one PF. vgpud
// has one of them in assignment mode `none`. The other has mode `default`, so vgpud leaves its
// driver alone. Prints one line, "claim NS bind NS ping NS writes NS", for each round; ping is a
// D-Bus call of vgpud that does nothing.
//
//   vgpu-claim-figures BUS VF_PATH VF_ADDRESS OTHER_ADDRESS ROUNDS
#include <sdbus-c++/sdbus-c++.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

namespace fs = std::filesystem;
using Options = std::map<std::string, sdbus::Variant>;

constexpr const char* kVf = "org.vgpu1.Vf";
constexpr const char* kOwner = "figures";
const fs::path kPci = "/sys/bus/pci";
/// Longer than vgpud works after a change, so that a round does not measure the work of the last.
constexpr std::chrono::milliseconds kPause{200};

void require_driver(const std::string& address, const std::string& name) {
    const fs::path link = kPci / "devices" / address / "driver";
    const std::string found = fs::exists(link) ? fs::read_symlink(link).filename().string() : "";
    if (found != name) throw std::runtime_error(address + " has the driver '" + found + "'");
}

void write(const fs::path& path, const std::string& text) {
    std::ofstream file(path);
    if (!(file << text << std::flush)) throw std::runtime_error("cannot write " + path.string());
}

/// Binds and unbinds without vgpud.
class Writes {
public:
    explicit Writes(std::string address) : address_(std::move(address)) {}

    /// The writes of vgpud. Most of their time is the pause of 100 ms after a reset
    /// (PCIe 6.0, 6.6.2).
    void bind() const {
        write(kPci / "devices" / address_ / "reset", "1");
        write(kPci / "devices" / address_ / "driver_override", "vfio-pci");
        write(kPci / "drivers_probe", address_);
    }
    void unbind() const {
        write(kPci / "devices" / address_ / "driver/unbind", address_);
        write(kPci / "devices" / address_ / "driver_override", "\n");
    }
    void check() const { require_driver(address_, "vfio-pci"); }

private:
    std::string address_;
};

class Claims {
public:
    Claims(const std::string& bus, const std::string& path, std::string address)
        : address_(std::move(address)),
          bus_(sdbus::createSessionBusConnectionWithAddress(bus)),
          vf_(sdbus::createProxy(*bus_, "org.vgpu1", path)) {
        vf_->finishRegistration();
    }

    void claim() {
        vf_->callMethod("Claim")
            .onInterface(kVf)
            .withArguments(std::string(kOwner), Options{})
            .storeResultsTo(generation_);
    }
    void bind() { set_mode("vfio-pci"); }
    void ping() { vf_->callMethod("Ping").onInterface("org.freedesktop.DBus.Peer"); }
    void release() {
        set_mode("none");
        vf_->callMethod("Release").onInterface(kVf).withArguments(std::string(kOwner), generation_,
                                                                  Options{});
    }
    void check() const { require_driver(address_, "vfio-pci"); }

private:
    void set_mode(const std::string& mode) {
        vf_->callMethod("Set").onInterface(kVf).withArguments(
            Options{{"assignment_mode", mode}, {"owner", std::string(kOwner)}});
    }

    std::string address_;
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> vf_;
    std::uint64_t generation_ = 0;
};

long long nanoseconds_of(const std::function<void()>& act) {
    const auto start = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                start)
        .count();
}

void measure(Claims claims, const Writes& writes, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        // vgpud reads the PF and its VFs again after each change of a driver
        std::this_thread::sleep_for(kPause);
        const long long ping = nanoseconds_of([&] { claims.ping(); });
        const long long claim = nanoseconds_of([&] { claims.claim(); });
        const long long bind = nanoseconds_of([&] { claims.bind(); });
        claims.check();
        claims.release();
        const long long direct = nanoseconds_of([&] { writes.bind(); });
        writes.check();
        writes.unbind();
        std::printf("claim %lld bind %lld ping %lld writes %lld\n", claim, bind, ping, direct);
    }
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int kWords = 6;
    if (argc != kWords) {
        std::fputs("usage: vgpu-claim-figures BUS VF_PATH VF_ADDRESS OTHER_ADDRESS ROUNDS\n",
                   stderr);
        return 2;
    }
    try {
        measure(Claims(argv[1], argv[2], argv[3]), Writes(argv[4]), std::atoi(argv[5]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vgpu-claim-figures: %s\n", error.what());
        return 1;
    }
}
