// SPDX-License-Identifier: MIT
#include "daemon/exporter/bus_values.h"

#include <algorithm>
#include <utility>

namespace vgpu::exporter {

namespace {

Value plain(const sdbus::ObjectPath& path) {
    return std::string(path);
}
Value plain(std::uint32_t number) {
    return std::uint64_t{number};
}
template <typename T> Value plain(const T& value) {
    return value;
}

/// Copies a value of type T to `to`. False if `from` has another type.
template <typename T> bool copy_as(const sdbus::Variant& from, Value& to) {
    if (!from.containsValueOfType<T>()) return false;
    to = plain(from.get<T>());
    return true;
}

/// The value, if it has one of `Types`; "?" for other types, which only a newer vgpud may send.
template <typename... Types> Value value_of(const sdbus::Variant& variant) {
    Value value = std::string("?");
    static_cast<void>((copy_as<Types>(variant, value) || ...));
    return value;
}

template <typename T> void put(Properties& row, const std::string& name, const T& value) {
    row.emplace_hint(row.end(), name, plain(value));
}
void put(Properties& row, const std::string& name, const Dict& members) {
    for (auto& [member, value] : properties_of(members)) row[name + "." + member] = value;
}

/// Removes the properties that Unknown names, and Unknown itself.
Properties known_of(Properties all) {
    const auto unknown = all.extract("Unknown");
    const auto* names = unknown ? std::get_if<Words>(&unknown.mapped()) : nullptr;
    if (names == nullptr) return all;
    for (const std::string& name : *names) all.erase(name);
    return all;
}

/// Copies a column into rows. False if the values of the column are not of type T.
template <typename T>
bool spread(const std::string& name, const sdbus::Variant& column, std::vector<Properties>& rows) {
    if (!column.containsValueOfType<std::vector<T>>()) return false;
    const auto values = column.get<std::vector<T>>();
    rows.resize(std::max(rows.size(), values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) put(rows[i], name, T{values[i]});
    return true;
}

}  // namespace

Properties properties_of(const Dict& dict) {
    Properties properties;
    for (const auto& [name, variant] : dict) {
        if (variant.containsValueOfType<Dict>())
            put(properties, name, variant.get<Dict>());
        else
            properties[name] = value_of<bool, std::uint32_t, std::int64_t, std::uint64_t, double,
                                        std::string, sdbus::ObjectPath, Words>(variant);
    }
    return known_of(std::move(properties));
}

std::vector<Properties> properties_of(const std::vector<Dict>& dicts) {
    std::vector<Properties> all;
    for (const Dict& dict : dicts) all.push_back(properties_of(dict));
    return all;
}

std::vector<Properties> rows_of(const Dict& columns) {
    std::vector<Properties> rows;
    for (const auto& [name, column] : columns)
        static_cast<void>((
            spread<bool>(name, column, rows) || spread<std::uint32_t>(name, column, rows) ||
            spread<std::int64_t>(name, column, rows) || spread<std::uint64_t>(name, column, rows) ||
            spread<double>(name, column, rows) || spread<std::string>(name, column, rows) ||
            spread<sdbus::ObjectPath>(name, column, rows) || spread<Dict>(name, column, rows) ||
            spread<Words>(name, column, rows)));
    for (Properties& row : rows) row = known_of(std::move(row));
    return rows;
}

Properties all_properties(sdbus::IConnection& bus, const std::string& destination,
                          const std::string& path, const std::string& interface) {
    Dict all;
    sdbus::createProxy(bus, destination, path)
        ->callMethod("GetAll")
        .onInterface("org.freedesktop.DBus.Properties")
        .withArguments(interface)
        .storeResultsTo(all);
    return properties_of(all);
}

std::unique_ptr<sdbus::IConnection> open_bus(const std::string& bus) {
    if (bus == "system") return sdbus::createSystemBusConnection();
    if (bus == "session") return sdbus::createSessionBusConnection();
    return sdbus::createSessionBusConnectionWithAddress(bus);
}

}  // namespace vgpu::exporter
