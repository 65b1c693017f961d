// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/method_table.h"

#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace vgpu::daemon::testing {

namespace {

namespace fs = std::filesystem;
using Dict = std::map<std::string, sdbus::Variant>;

constexpr const char* kDocument =
    R"({"profiles": {"p": {"resources": {"vram": "64MiB"}}},
        "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "train"}]}]}})";

std::string text_of_file(const fs::path& path) {
    std::ifstream file(path);
    std::string text(std::istreambuf_iterator<char>(file), {});
    return std::regex_replace(text, std::regex("<!--(.|\n)*?-->"), "");
}

std::string attribute(const std::string& tag, const std::string& name) {
    std::smatch found;
    const std::regex pattern("\\b" + name + "=\"([^\"]*)\"");
    return std::regex_search(tag, found, pattern) ? found[1].str() : "";
}

/// Reads the tags in their order; the arguments of a method are between its tags.
void read_interface(const std::string& xml, std::vector<Method>& to) {
    const std::regex tag("<(/?)(interface|method|signal|arg)\\b([^>]*)>");
    std::string interface;
    bool is_in_method = false;
    for (std::sregex_iterator at(xml.begin(), xml.end(), tag), end; at != end; ++at) {
        const bool is_end = (*at)[1].length() > 0;
        const std::string kind = (*at)[2], attributes = (*at)[3];
        if (kind == "interface" && !is_end) interface = attribute(attributes, "name");
        if (kind == "method") is_in_method = !is_end;
        if (kind == "method" && !is_end)
            to.push_back({interface, attribute(attributes, "name"), {}});
        if (kind == "arg" && is_in_method && attribute(attributes, "direction") == "in")
            to.back().arguments.push_back(
                {attribute(attributes, "name"), attribute(attributes, "type")});
    }
}

std::string text_for(const std::string& argument) {
    static const std::map<std::string, std::string> kTexts{
        {"gpu", "gpu0"}, {"target", "train"}, {"owner", "job:1"}, {"config", kDocument}};
    return kTexts.at(argument);
}

void append(sdbus::MethodCall& message, const Argument& argument) {
    using Pairs = std::vector<sdbus::Struct<std::string, std::string>>;
    if (argument.type == "s")
        message << text_for(argument.name);
    else if (argument.type == "u")
        message << std::uint32_t{0};
    else if (argument.type == "t")
        message << std::uint64_t{1};
    else if (argument.type == "a(ss)")
        message << Pairs{{"name", "train"}};
    else if (argument.type == "a{sv}")
        message << Dict{};
    else
        FAIL() << "no value for an argument of type " << argument.type;
}

}  // namespace

std::string object_of(const std::string& interface) {
    static const std::map<std::string, std::string> kPaths{
        {"org.vgpu1.Manager", "/org/vgpu1"},
        {"org.vgpu1.Gpu", "/org/vgpu1/gpu/gpu0"},
        {"org.vgpu1.Vf", "/org/vgpu1/gpu/gpu0/vf/1"},
        {"org.vgpu1.Job", "/org/vgpu1/job/1"}};
    return kPaths.at(interface);
}

std::vector<Method> methods_of_the_xml() {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(VGPU_SOURCE_DIR "/schemas/dbus"))
        if (entry.path().filename().string().starts_with("org.vgpu1.")) files.insert(entry.path());
    std::vector<Method> methods;
    for (const fs::path& file : files) read_interface(text_of_file(file), methods);
    return methods;
}

const std::vector<Right>& rights() {
    constexpr const char* kProvision = "org.vgpu1.provision";
    constexpr const char* kAssign = "org.vgpu1.assign";
    constexpr const char* kControl = "org.vgpu1.control";
    constexpr const char* kAnybody = "";
    static const std::vector<Right> kRights{{"org.vgpu1.Gpu.Set", kProvision},
                                            {"org.vgpu1.Gpu.Dump", kControl},
                                            {"org.vgpu1.Gpu.GetRunTable", kAnybody},
                                            {"org.vgpu1.Gpu.ReadTrace", kAnybody},
                                            {"org.vgpu1.Job.Cancel", kProvision},
                                            {"org.vgpu1.Manager.CreateVf", kProvision},
                                            {"org.vgpu1.Manager.ListVfs", kAnybody},
                                            {"org.vgpu1.Manager.ListGpus", kAnybody},
                                            {"org.vgpu1.Manager.Capacity", kAnybody},
                                            {"org.vgpu1.Manager.Resolve", kAnybody},
                                            {"org.vgpu1.Manager.RecentEvents", kAnybody},
                                            {"org.vgpu1.Manager.Plan", kAnybody},
                                            {"org.vgpu1.Manager.Apply", kProvision},
                                            {"org.vgpu1.Manager.Export", kAnybody},
                                            {"org.vgpu1.Manager.AutoConfig", kAnybody},
                                            {"org.vgpu1.Manager.Assign", kAssign},
                                            {"org.vgpu1.Manager.Grant", kAssign},
                                            {"org.vgpu1.Manager.Unassign", kAssign},
                                            {"org.vgpu1.Manager.Adopt", kAssign},
                                            {"org.vgpu1.Vf.Set", kProvision},
                                            {"org.vgpu1.Vf.Destroy", kProvision},
                                            {"org.vgpu1.Vf.Reset", kControl},
                                            {"org.vgpu1.Vf.Pause", kControl},
                                            {"org.vgpu1.Vf.Resume", kControl},
                                            {"org.vgpu1.Vf.Stop", kControl},
                                            {"org.vgpu1.Vf.ClearQuarantine", kControl},
                                            {"org.vgpu1.Vf.Claim", kAssign},
                                            {"org.vgpu1.Vf.Release", kAssign},
                                            {"org.vgpu1.Vf.SelfTest", kControl},
                                            {"org.vgpu1.Vf.Quiesce", kControl},
                                            {"org.vgpu1.Vf.Thaw", kControl}};
    return kRights;
}

void make_job(sdbus::IConnection& bus) {
    const auto manager = sdbus::createProxy(bus, "org.vgpu1", "/org/vgpu1");
    manager->finishRegistration();
    sdbus::ObjectPath job;
    manager->callMethod("Apply")
        .onInterface("org.vgpu1.Manager")
        .withArguments(std::string(kDocument), Dict{{"dry_run", sdbus::Variant{true}}})
        .storeResultsTo(job);
    EXPECT_EQ(job, object_of("org.vgpu1.Job"));
}

Outcome call(sdbus::IConnection& bus, const Method& method) {
    const auto object = sdbus::createProxy(bus, "org.vgpu1", object_of(method.interface));
    object->finishRegistration();
    auto message = object->createMethodCall(method.interface, method.name);
    for (const Argument& argument : method.arguments) append(message, argument);
    try {
        static_cast<void>(object->callMethod(message));
        return {};
    } catch (const sdbus::Error& error) {
        return {.error = error.getName(), .text = error.getMessage()};
    }
}

}  // namespace vgpu::daemon::testing
