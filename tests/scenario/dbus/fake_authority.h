// SPDX-License-Identifier: MIT
//
// FakeAuthority: the part of polkit that vgpud uses, on the private bus. It answers all questions
// with yes or no, records them, and can keep questions open, as if a person typed a password. It
// answers in a thread of its own.
#pragma once

#include <sdbus-c++/sdbus-c++.h>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

/// Rules of the bus by which this process may own polkit's name, and every user may call it.
std::string fake_authority_rules();

class FakeAuthority {
public:
    struct Question {
        std::string kind, name, action;
        std::uint32_t flags = 0;
    };

    explicit FakeAuthority(std::unique_ptr<sdbus::IConnection> bus);
    ~FakeAuthority();
    FakeAuthority(const FakeAuthority&) = delete;
    FakeAuthority& operator=(const FakeAuthority&) = delete;

    void say(bool yes);
    /// Questions about `action` stay open.
    void keep_open(const std::string& action);
    [[nodiscard]] std::size_t open_questions();
    void say_yes_to_open_ones();
    /// The questions since the last call.
    std::vector<Question> take_questions();
    std::vector<std::string> take_actions();

private:
    using Facts = std::map<std::string, sdbus::Variant>;
    using Subject = sdbus::Struct<std::string, Facts>;
    using Details = std::map<std::string, std::string>;
    using Answer = sdbus::Struct<bool, bool, Details>;

    void answer(sdbus::Result<Answer>&& result, const Subject& subject, const std::string& action,
                std::uint32_t flags);

    std::mutex mutex_;
    bool says_yes_ = false;
    std::vector<Question> questions_;
    std::string kept_action_;
    std::unique_ptr<sdbus::IConnection> bus_;
    std::vector<sdbus::Result<Answer>> kept_;  // their messages belong to bus_
    std::unique_ptr<sdbus::IObject> object_;
};

}  // namespace vgpu::daemon::testing
