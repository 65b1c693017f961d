// SPDX-License-Identifier: MIT
#include "tests/unit/backend/fake_pci.h"

#include "daemon/backend/sriov/pf.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>

namespace vgpu::daemon::testing {

namespace {

std::optional<unsigned> u16_of(const std::string& text) {
    std::uint16_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
    return value;
}

/// Behind `pf`, 16 functions a device: 0000:03:00.0 has its third VF at 0000:03:00.3.
std::string vf_address(const std::string& pf, unsigned number) {
    constexpr unsigned kFunctions = 8;
    const std::string bus = pf.substr(0, pf.rfind(':'));
    return fmt::format("{}:{:02x}.{:x}", bus, number / kFunctions, number % kFunctions);
}

}  // namespace

FakeBus::FakeBus(FakeSysfs& files) : files_(files) {
    const auto probe = [this](const std::string& address) {
        const auto found = functions_.find(address);
        if (found == functions_.end()) return ENODEV;
        found->second.probe();
        return 0;
    };
    files_.add("/sys/bus/pci/drivers_probe", {.mode = kWriteOnly, .store = probe});
}

void FakeBus::load(const std::string& driver) {
    loaded_.insert(driver);
    const auto unbind = [this, driver](const std::string& address) {
        const auto found = functions_.find(address);
        if (found == functions_.end() || found->second.driver() != driver) return ENODEV;
        found->second.unbind();
        return 0;
    };
    files_.add(sriov::driver_path(driver) + "/unbind", {.mode = kWriteOnly, .store = unbind});
}

FakePci::FakePci(FakeBus& bus, Card card) : bus_(bus), files_(bus.files()), card_(std::move(card)) {
    bus_.load(card_.driver);
    add_files();
}

std::string FakePci::path(const std::string& file) const {
    return sriov::device_path(address(), file);
}

std::string FakePci::vf_path(unsigned number, const std::string& file) {
    return sriov::device_path(vf(number).address, file);
}

void FakePci::add_files() {
    files_.add(path("vendor"), card_.vendor);
    files_.add(path("device"), card_.device);
    files_.add(path("subsystem_vendor"), "0x8086");
    files_.add(path("subsystem_device"), "0x0000");
    files_.add(path("revision"), "0x01");
    files_.add(path("class"), card_.pci_class);
    files_.add(path("sriov_totalvfs"), fmt::format("{}", card_.total_vfs));
    if (!card_.driver.empty()) files_.add_link(path("driver"), "../drivers/" + card_.driver);
    files_.add(path("sriov_drivers_autoprobe"),
               {.mode = kReadWrite,
                .show = [this] { return std::string(is_autoprobing ? "1" : "0"); },
                .store =
                    [this](const std::string& text) {
                        if (text != "0" && text != "1") return EINVAL;
                        is_autoprobing = text == "1";
                        return 0;
                    }});
    files_.add(path("sriov_numvfs"), {.mode = kReadWrite,
                                      .show = [this] { return fmt::format("{}", count()); },
                                      .store =
                                          [this](const std::string& text) {
                                              const auto wanted = u16_of(text);
                                              return wanted ? set_count(*wanted) : EINVAL;
                                          }});
}

int FakePci::set_count(unsigned wanted) {
    if (wanted > card_.total_vfs) return ERANGE;
    if (wanted == count()) return 0;
    if (card_.driver.empty()) return ENOENT;
    if (wanted == 0) return disable();
    return count() > 0 ? EBUSY : enable(wanted);
}

int FakePci::enable(unsigned wanted) {
    if (const int code = on_enable ? on_enable(wanted) : 0) return code;
    for (unsigned number = 1; number <= std::min(wanted, enabled_limit); ++number) add_vf(number);
    return 0;
}

/// Removes VF after VF, and waits in each for its user.
int FakePci::disable() {
    while (!vfs_.empty()) {
        FakeVf& last = *vfs_.back();
        unbind(last);
        bus_.remove(last.address);
        files_.remove(sriov::device_path(last.address));
        files_.remove(path(fmt::format("virtfn{}", vfs_.size() - 1)));
        vfs_.pop_back();
    }
    if (on_disabled) on_disabled();
    return 0;
}

void FakePci::add_vf(unsigned number) {
    vfs_.push_back(std::make_unique<FakeVf>());
    FakeVf& vf = *vfs_.back();
    vf.address = vf_address(address(), number);
    files_.add_link(path(fmt::format("virtfn{}", number - 1)), "../" + vf.address);
    add_vf_files(vf, number);
    bus_.add(vf.address, {.probe = [this, &vf] { probe(vf); },
                          .driver = [&vf] { return vf.driver; },
                          .unbind = [this, &vf] { unbind(vf); }});
    if (is_autoprobing) probe(vf);
}

void FakePci::add_vf_files(FakeVf& vf, unsigned number) {
    const auto at = [&](const char* file) { return sriov::device_path(vf.address, file); };
    files_.add_link(at("physfn"), "../" + address());
    files_.add(at("enable"), {.mode = kReadWrite,
                              .show = [this, &vf] { return fmt::format("{}", enable_count(vf)); },
                              .store = [](const std::string&) { return EPERM; }});
    files_.add(
        at("driver_override"),
        {.mode = kReadWrite,
         .show = [&vf] { return vf.driver_override.empty() ? "(null)" : vf.driver_override; },
         .store =
             [&vf](const std::string& text) {
                 vf.driver_override = text;
                 return 0;
             }});
    files_.add(at("reset_method"), {.mode = kReadWrite, .show = [this] { return reset_method; }});
    files_.add(at("reset"),
               {.mode = kWriteOnly, .store = [this, &vf, number](const std::string& text) {
                    if (text != "1") return EINVAL;
                    ++vf.resets;
                    vf.is_dirty = false;
                    if (on_reset) on_reset(number);
                    return 0;
                }});
}

unsigned FakePci::enable_count(const FakeVf& vf) const {
    if (vf.driver.empty()) return 0;
    return sriov::is_vfio_driver(vf.driver) ? vf.opens : 1;
}

void FakePci::set_driver(FakeVf& vf, const std::string& driver) {
    vf.driver = driver;
    const std::string link = sriov::device_path(vf.address, "driver");
    if (driver.empty())
        files_.remove(link);
    else
        files_.add_link(link, "../drivers/" + driver);
}

/// As the bus: an override names the only driver; else a host driver, if VFs are probed at all.
void FakePci::probe(FakeVf& vf) {
    if (!vf.driver.empty()) return;
    const bool is_overridden = !vf.driver_override.empty();
    if (!is_overridden && !is_autoprobing) return;
    const std::string driver = is_overridden ? vf.driver_override : card_.host_vf_driver;
    if (!bus_.has(driver) || (sriov::is_vfio_driver(driver) && !has_iommu)) return;
    set_driver(vf, driver);
    if (!sriov::is_vfio_driver(driver)) vf.is_dirty = true;
}

/// vfio's remove() waits until the last user has closed the function.
void FakePci::unbind(FakeVf& vf) {
    if (vf.opens > 0) files_.sleep_until([&vf] { return vf.opens == 0; });
    set_driver(vf, "");
}

void FakePci::open(unsigned number) {
    files_.change([&] {
        ++vf(number).opens;
        vf(number).is_dirty = true;
    });
}

void FakePci::close(unsigned number) {
    files_.change([&] { --vf(number).opens; });
}

void FakePci::replace(const std::string& device, const std::string& driver) {
    card_.device = device;
    card_.driver = driver;
    files_.add(path("device"), device);
    files_.remove(path("driver"));
    if (!driver.empty()) files_.add_link(path("driver"), "../drivers/" + driver);
}

}  // namespace vgpu::daemon::testing
