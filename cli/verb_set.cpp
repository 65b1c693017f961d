// SPDX-License-Identifier: MIT
//
// vgpuctl set TARGET: changes a VF's name or contract, or a GPU's quantum or longest gap.
#include "cli/custody_options.h"
#include "cli/number_options.h"
#include "cli/qos_options.h"
#include "cli/verbs.h"

#include <optional>

namespace vgpu::cli {

namespace {

/// Vf.Set or Gpu.Set. Sends only the options that were given, so the others do not change. vgpud
/// decides which options belong to a GPU or a VF (UnknownOption: exit status 2).
class SetVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "set"; }
    [[nodiscard]] std::string summary() const override { return "change a VF or a GPU"; }
    void describe(CLI::App& command) override {
        command.add_option("TARGET", target_, "gpu0, gpu0/vf3, a VF's name or UUID")->required();
        command.add_option("--name", name_, "VF: its new name");
        add_whole(command, "--weight", weight_, "VF: 1 to 10000");
        add_whole(command, "--quantum-us", quantum_us_,
                  "VF or GPU: longest slice; VF 0: the GPU's");
        qos_.describe(command);
        custody_.describe(command);
        command.add_option("--owner", owner_, "handover: in that owner's name");
        command.add_flag("--force", is_forced_, "handover: also of a VF that is claimed or open");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string path = invocation.service.resolve(target_);
        Options options;
        if (name_) options["name"] = *name_;
        if (weight_) options["weight"] = *weight_;
        if (quantum_us_) options["quantum_us"] = *quantum_us_;
        qos_.put(options);
        custody_.put(options);
        // an error, because silence would look like success
        if (options.empty())
            throw ServiceError("org.vgpu1.Error.UnknownOption",
                               "nothing to set; see 'vgpuctl set --help'");
        if (owner_) options["owner"] = *owner_;
        if (is_forced_) options["force"] = true;
        if (is_vf_path(path))
            invocation.service.set_vf(path, options);
        else
            invocation.service.set_gpu(path, options);
        print_done(invocation, target_, "set");
        return ExitCode::Ok;
    }

private:
    std::string target_;
    std::optional<std::string> name_, owner_;
    bool is_forced_ = false;
    std::optional<Value> weight_, quantum_us_;
    QosOptions qos_;
    CustodyOptions custody_;
};

}  // namespace

std::unique_ptr<Verb> make_set_verb() {
    return std::make_unique<SetVerb>();
}

}  // namespace vgpu::cli
