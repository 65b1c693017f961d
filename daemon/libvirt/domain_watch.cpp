// SPDX-License-Identifier: MIT
#include "daemon/libvirt/domain_watch.h"

#include <libvirt/virterror.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>

namespace vgpu::libvirt {

namespace {

using Json = nlohmann::json;

/// libvirt closes the connection after kKeepAliveCount probes without an answer, one every
/// kKeepAliveSeconds.
constexpr int kKeepAliveSeconds = 5;
constexpr unsigned kKeepAliveCount = 3;

/// Replaces libvirt's default error handler, which prints each error to stderr.
void ignore_error(void*, virErrorPtr) {}

/// Called when the timer of limit_timer() fires. Disarms the timer.
void on_limit(int timer, void*) {
    virEventUpdateTimeout(timer, -1);
}

/// The timer that limits a wait for events. virEventRunDefaultImpl() has no time limit, but returns
/// after a timer fires. The first call sets up libvirt's event loop.
int limit_timer() {
    static std::once_flag once;
    static int timer = -1;
    std::call_once(once, [] {
        virSetErrorFunc(nullptr, ignore_error);
        virEventRegisterDefaultImpl();
        timer = virEventAddTimeout(-1, on_limit, nullptr, nullptr);
    });
    return timer;
}

/// The UUID of the domain; empty if libvirt does not return the UUID.
std::string uuid_of(virDomainPtr domain) {
    std::array<char, VIR_UUID_STRING_BUFLEN> text{};
    return virDomainGetUUIDString(domain, text.data()) == 0 ? text.data() : "";
}

/// What libvirt says about a domain.
enum class DomainState {
    Active,
    Off,      ///< defined, but not running
    Gone,     ///< the domain no longer exists
    Unknown,  ///< libvirt did not answer, such as after the loss of the connection
};

/// The state after a function of libvirt has failed.
DomainState state_after_error() {
    return virGetLastErrorCode() == VIR_ERR_NO_DOMAIN ? DomainState::Gone : DomainState::Unknown;
}

/// A transient domain vanishes when it stops, although libvirt reports only the stop.
DomainState state_of(virDomainPtr domain) {
    const int is_active = virDomainIsActive(domain);
    if (is_active < 0) return state_after_error();
    if (is_active == 1) return DomainState::Active;
    const int is_persistent = virDomainIsPersistent(domain);
    if (is_persistent < 0) return state_after_error();
    return is_persistent == 1 ? DomainState::Off : DomainState::Gone;
}

Json json_of(virDomainPtr domain, DomainState state) {
    const char* name = virDomainGetName(domain);
    return {{"uuid", uuid_of(domain)},
            {"name", name == nullptr ? "" : name},
            {"active", state == DomainState::Active}};
}

/// Converts `json` to one line. Replaces invalid UTF-8, because the name of a domain may contain
/// any bytes.
std::string line_of(const Json& json) {
    return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

int on_lifecycle(virConnectPtr, virDomainPtr domain, int, int, void* watch) {
    static_cast<DomainWatch*>(watch)->on_change(domain);
    return 0;
}

void on_connection_close(virConnectPtr, int, void* watch) {
    static_cast<DomainWatch*>(watch)->on_close();
}

}  // namespace

DomainWatch::DomainWatch(std::string uri, Report report)
    : uri_(std::move(uri)), report_(std::move(report)) {
    limit_timer();
}

DomainWatch::~DomainWatch() {
    if (connection_ != nullptr) disconnect("");
}

void DomainWatch::iterate(std::chrono::milliseconds limit) {
    const auto now = std::chrono::steady_clock::now();
    if (connection_ == nullptr && now >= next_try_) connect();
    if (connection_ == nullptr) {
        const auto until = std::chrono::ceil<std::chrono::milliseconds>(
            next_try_ - std::chrono::steady_clock::now());
        limit = std::clamp(until, std::chrono::milliseconds(1), limit);
    }
    virEventUpdateTimeout(limit_timer(), static_cast<int>(limit.count()));
    virEventRunDefaultImpl();
    if (connection_ != nullptr && !why_lost_.empty()) disconnect(why_lost_);
}

void DomainWatch::connect() {
    why_lost_.clear();
    connection_ = virConnectOpenReadOnly(uri_.c_str());
    if (connection_ == nullptr) return disconnect(virGetLastErrorMessage());
    virConnectSetKeepAlive(connection_, kKeepAliveSeconds, kKeepAliveCount);
    virConnectRegisterCloseCallback(connection_, on_connection_close, this, nullptr);
    callback_ =
        virConnectDomainEventRegisterAny(connection_, nullptr, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                         VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), this, nullptr);
    if (callback_ < 0) return disconnect(virGetLastErrorMessage());
    report_all();  // after the registration, so that no change is missed
    if (connection_ == nullptr) return;
    delay_ = kFirstDelay;
    is_loss_reported_ = false;
}

/// Closes the connection, if there is one, and sets the time of the next attempt to connect.
/// Reports {"lost": …} unless `why` is empty or "lost" was reported since the last connection.
void DomainWatch::disconnect(const std::string& why) {
    if (connection_ != nullptr) {
        if (callback_ >= 0) virConnectDomainEventDeregisterAny(connection_, callback_);
        virConnectUnregisterCloseCallback(connection_, on_connection_close);
        virConnectClose(connection_);
    }
    connection_ = nullptr;
    callback_ = -1;
    next_try_ = std::chrono::steady_clock::now() + delay_;
    delay_ = std::min(delay_ * 2, kLongestDelay);
    if (is_loss_reported_ || why.empty()) return;
    is_loss_reported_ = true;
    report_(line_of({{"lost", "no connection to " + uri_ + ": " + why}}));
}

/// Disconnects if the state of any domain is unknown, because vgpud takes a domain that the list
/// leaves out for one that does not exist.
void DomainWatch::report_all() {
    virDomainPtr* domains = nullptr;
    const int count = virConnectListAllDomains(connection_, &domains, 0);
    if (count < 0) return disconnect(virGetLastErrorMessage());
    Json all = Json::array();
    std::string problem;
    for (int i = 0; i < count; ++i) {
        const DomainState state = state_of(domains[i]);
        if (state == DomainState::Unknown)
            problem = virGetLastErrorMessage();
        else if (state != DomainState::Gone)
            all.push_back(json_of(domains[i], state));
        virDomainFree(domains[i]);
    }
    std::free(domains);
    if (!problem.empty()) return disconnect(problem);
    report_(line_of({{"domains", all}}));
}

/// If the state of the domain is unknown, iterate() disconnects; after the next connection, all
/// domains are reported again.
void DomainWatch::on_change(virDomainPtr domain) {
    const DomainState state = state_of(domain);
    if (state == DomainState::Unknown)
        why_lost_ = virGetLastErrorMessage();
    else if (state == DomainState::Gone)
        report_(line_of({{"removed", uuid_of(domain)}}));
    else
        report_(line_of({{"domain", json_of(domain, state)}}));
}

}  // namespace vgpu::libvirt
