// SPDX-License-Identifier: MIT
//
// Readings of a vgpud with two GPUs and two VFs, for tests of the metrics: the VF `train` is
// claimed and has an agent, gpu1 was never reached.
#pragma once

#include "daemon/exporter/metrics.h"

#include <string>

namespace vgpu::exporter::testing {

inline Properties some_gpu(const std::string& id, const std::string& state) {
    return {{"Target", id}, {"State", state}};
}

inline Properties some_vf(const std::string& target, const std::string& name) {
    return {{"Target", target},
            {"Name", name},
            {"State", std::string("ready")},
            {"Uuid", std::string("00112233-4455-6677-8899-aabbccddeeff")},
            {"Profile", std::string()},
            {"Description", std::string()},
            {"Owner", std::string()},
            {"OwnerName", std::string()},
            {"Weight", std::uint64_t{100}},
            {"MinPct", 12.5},
            {"MaxPct", 100.0},
            {"ServiceNs", std::uint64_t{6'000'000}},
            {"LagNs", std::int64_t{-1'500'000'000}},
            {"Hangs", std::uint64_t{3}},
            {"Throttled", false},
            {"LeaseExpires", std::uint64_t{0}},
            {"Orphan", std::string()},
            {"Condition", std::string()},
            {"Agent.Connected", false},
            {"Agent.VramUsedBytes", std::uint64_t{0}},
            {"Agent.Processes", std::uint64_t{0}}};
}

inline Readings some_readings() {
    Readings readings;
    readings.manager = {{"Version", std::string("1.2.3")},
                        {"ReadOnly", false},
                        {"StateMessage", std::string()},
                        {"StateGeneration", std::uint64_t{7}},
                        {"Events", std::uint64_t{5}}};
    Properties gpu = some_gpu("gpu0", "ok");
    gpu["VramBytes"] = std::uint64_t{2048} << 20;
    gpu["TableCycleUs"] = std::uint64_t{48'000};
    gpu["TableExact"] = true;
    readings.gpus = {gpu, some_gpu("gpu1", "starting")};
    Properties train = some_vf("gpu0/vf1", "train");
    train["Owner"] = std::string("libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10");
    train["Description"] = std::string("night shift, \"B\u00fcro\"");
    train["OwnerName"] = std::string("B\u00fcro \"1\"\nC:\\");
    train["Orphan"] = std::string("the lease is over");
    train["LeaseExpires"] = std::uint64_t{1'700'000'000};
    train["Agent.Connected"] = true;
    train["Agent.VramUsedBytes"] = std::uint64_t{24} << 20;
    train["GuardFlrEvents"] = std::uint64_t{2};
    train["GuardExclusiveEvents"] = std::uint64_t{7};
    train["GuardExclusiveTimeoutEvents"] = std::uint64_t{1};
    train["GuardInterruptEvents"] = std::uint64_t{55};
    readings.vfs = {train, some_vf("gpu0/vf2", "infer")};
    return readings;
}

}  // namespace vgpu::exporter::testing
