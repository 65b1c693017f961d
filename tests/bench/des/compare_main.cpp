// SPDX-License-Identifier: MIT
//
// des-compare: simulates scenarios and prints the product's scheduler beside those of other
// systems. usage: des-compare [--json] FILE...
#include "tests/bench/des/comparison.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

int main(int argc, char** argv) {
    CLI::App app("simulates scenarios under the scheduler of vgpu and those of other systems");
    std::vector<std::string> files;
    bool is_json = false;
    app.add_option("FILE", files, "scenarios, schemas/vgpu-scenario.schema.json")->required();
    app.add_flag("--json", is_json, "one JSON object a scenario");
    CLI11_PARSE(app, argc, argv);
    for (const std::string& file : files) {
        std::ifstream stream(file);
        if (!stream) {
            std::fprintf(stderr, "des-compare: cannot read %s\n", file.c_str());
            return 1;
        }
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        const auto scenario = vgpu::des::parse_scenario(text);
        if (!scenario) {
            std::fprintf(stderr, "des-compare: %s: %s\n", file.c_str(), scenario.error().c_str());
            return 1;
        }
        const auto rows = vgpu::des::compare(*scenario);
        const std::string words = is_json ? vgpu::des::json_of(*scenario, rows) + "\n"
                                          : vgpu::des::table_of(*scenario, rows) + "\n";
        std::fputs(words.c_str(), stdout);
    }
    return 0;
}
