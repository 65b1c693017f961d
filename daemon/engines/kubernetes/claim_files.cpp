// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/claim_files.h"

#include "daemon/engines/kubernetes/names.h"
#include "text/json_document.h"
#include "text/whole_file.h"

#include <fmt/format.h>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace vgpu::kubernetes {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kIndent = 2;

/// Writes PATH.new and renames it to PATH. Container runtimes ignore files whose names end in
/// ".new".
Result<> write_file(const std::string& path, const json& document) {
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    const std::string next = path + ".new";
    errno = 0;
    if (error || !(std::ofstream(next, std::ios::trunc) << document.dump(kIndent) << '\n'
                                                        << std::flush))
        return fail_errno(ErrorId::System, error ? error.value() : errno, "cannot write " + next);
    fs::rename(next, path, error);
    if (error) return fail_errno(ErrorId::System, error.value(), "cannot write " + path);
    return {};
}

/// None if the record in `directory` cannot be read or is not valid.
std::optional<ClaimReference> record_in(const fs::path& directory) {
    const auto body = text::whole_file((directory / "claim.json").string());
    const auto record = text::read_json(body.value_or(""));
    if (!record || !record->is_object()) return {};
    const auto word = [&record](const char* key) {
        const auto at = record->find(key);
        return at != record->end() && at->is_string() ? at->get<std::string>() : "";
    };
    ClaimReference reference{.name_space = word("namespace"),
                             .name = word("name"),
                             .uid = directory.filename().string()};
    if (!check_reference(reference)) return {};
    return reference;
}

}  // namespace

std::string ClaimFiles::directory_of(const std::string& uid) const {
    return fmt::format("{}/claims/{}", state_, uid);
}

std::string ClaimFiles::cdi_file(const std::string& uid) const {
    return fmt::format("{}/{}-vf-{}.json", cdi_, kDomain, uid);
}

Result<> ClaimFiles::write_record(const ClaimReference& reference) const {
    return write_file(directory_of(reference.uid) + "/claim.json",
                      {{"namespace", reference.name_space}, {"name", reference.name}});
}

std::map<std::string, std::string> ClaimFiles::metadata_files(
    const std::string& uid, const std::map<std::string, json>& by_request) const {
    std::map<std::string, std::string> files;
    for (const auto& [request, metadata] : by_request)
        files[request] = fmt::format("{}/{}-metadata.json", directory_of(uid), request);
    return files;
}

Result<> ClaimFiles::write_metadata(const std::string& uid,
                                    const std::map<std::string, json>& by_request) const {
    for (const auto& [request, file] : metadata_files(uid, by_request))
        TRY_VOID(write_file(file, by_request.at(request)));
    return {};
}

Result<> ClaimFiles::write_cdi(const std::string& uid, const json& spec) const {
    return write_file(cdi_file(uid), spec);
}

Result<> ClaimFiles::remove(const std::string& uid) const {
    for (const std::string& path : {cdi_file(uid), directory_of(uid)}) {
        std::error_code error;
        fs::remove_all(path, error);
        if (error) return fail_errno(ErrorId::System, error.value(), "cannot remove " + path);
    }
    return {};
}

std::vector<ClaimReference> ClaimFiles::records() const {
    std::vector<ClaimReference> records;
    std::error_code ignored;
    for (auto at = fs::directory_iterator(state_ + "/claims", ignored);
         at != fs::directory_iterator(); at.increment(ignored))
        if (auto record = record_in(at->path())) records.push_back(*std::move(record));
    return records;
}

}  // namespace vgpu::kubernetes
