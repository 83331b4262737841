// SPDX-License-Identifier: Apache-2.0
#include "devices.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/config.h"
#include "engine/discovery.h"
#include "engine/identity.h"
#include "engine/text.h"
#include "ib/limits.h"
#include "tiers.h"

namespace vrb::tools {
namespace {

struct Limit {
  const char* name;
  std::uint64_t value;
};
constexpr Limit kLimits[] = {
    {"max_qp", ib::kMaxQp},           {"max_qp_wr", ib::kMaxQpWr},
    {"max_sge", ib::kMaxSge},         {"max_inline", ib::kMaxInline},
    {"max_cq", ib::kMaxCq},           {"max_cqe", ib::kMaxCqe},
    {"max_mr", ib::kMaxMr},           {"max_pd", ib::kMaxPd},
    {"max_srq", ib::kMaxSrq},         {"max_srq_wr", ib::kMaxSrqWr},
    {"max_ah", ib::kMaxAh},           {"max_qp_rd_atom", ib::kMaxQpRdAtom},
    {"max_message", ib::kMaxMessage},
};

using Json = nlohmann::ordered_json;

Json gid_list(const engine::PortFacts& facts) {
  Json list = Json::array();
  for (std::size_t i = 0; i < facts.gids.size(); ++i) {
    const engine::GidEntry& entry = facts.gids[i];
    if (engine::is_zero(entry.gid)) continue;
    list.push_back({{"index", i},
                    {"address", engine::gid_address(entry.gid)},
                    {"gid", engine::gid_groups(entry.gid)},
                    {"type", "RoCE v2"},
                    {"ifname", entry.ifname},
                    {"ifindex", entry.ifindex}});
  }
  return list;
}

Json tier_list() {
  Json list = Json::array();
  for (const Tier& tier : probe_tiers()) {
    Json entry = {{"name", tier.name}, {"allowed", tier.allowed}};
    if (!tier.reason.empty()) entry["reason"] = tier.reason;
    list.push_back(entry);
  }
  return list;
}

Json facts_as_json() {
  const engine::PortFacts facts = engine::discover();
  Json limits;
  for (const Limit& limit : kLimits) limits[limit.name] = limit.value;
  const Json port = {{"port", 1},
                     {"state", "ACTIVE"},
                     {"link_layer", "Ethernet"},
                     {"active_mtu", facts.active_mtu},
                     {"max_mtu", 4096},
                     {"rate", engine::kRate},
                     {"gid_table_length", ib::kGidTableLength},
                     {"gids", gid_list(facts)}};
  const Json device = {{"name", engine::kDeviceName},
                       {"guid", fmt::format("{:016x}", facts.guid)},
                       {"ports", Json::array({port})},
                       {"limits", limits}};
  return {{"version", engine::kVersion},
          {"carrier", engine::carrier_name(engine::config().carrier)},
          {"devices", Json::array({device})},
          {"tiers", tier_list()},
          {"slots", slots_in(engine::read_file("/proc/thread-self/net/unix"))}};
}

std::string as_text(const Json& facts) {
  const Json& device = facts["devices"][0];
  const Json& port = device["ports"][0];
  std::string text = fmt::format(
      "{}  guid {}  port 1 {} ({}, {})  MTU {} of {}  carrier {}\n\nGIDs (index, address, "
      "interface)\n",
      device["name"].get<std::string>(), device["guid"].get<std::string>(),
      port["state"].get<std::string>(), port["link_layer"].get<std::string>(),
      port["rate"].get<std::string>(), port["active_mtu"].get<unsigned>(),
      port["max_mtu"].get<unsigned>(), facts["carrier"].get<std::string>());
  for (const Json& gid : port["gids"]) {
    text += fmt::format("{}  {}  {}\n", gid["index"].get<unsigned>(),
                        gid["address"].get<std::string>(), gid["ifname"].get<std::string>());
  }
  text += "\nLimits of a process\n";
  for (const auto& [name, value] : device["limits"].items()) {
    text += fmt::format("{:<16}{}\n", name, value.get<std::uint64_t>());
  }
  text += "\nTiers of the local carrier\n";
  for (const Json& tier : facts["tiers"]) {
    text += fmt::format("{:<16}{}", tier["name"].get<std::string>(),
                        tier["allowed"].get<bool>() ? "allowed" : "not allowed");
    text += tier.contains("reason") ? fmt::format(" ({})\n", tier["reason"].get<std::string>())
                                    : std::string("\n");
  }
  const auto slots = facts["slots"].get<std::vector<unsigned>>();
  text +=
      fmt::format("\nRunning slots   {}\n",
                  slots.empty() ? std::string("none") : fmt::format("{}", fmt::join(slots, " ")));
  return text;
}

}  // namespace

std::vector<unsigned> slots_in(const std::string& proc_net_unix) {
  constexpr std::string_view kMark = " @verbena/";
  std::vector<unsigned> slots;
  for (std::string_view rest = proc_net_unix; !rest.empty();) {
    const std::string_view line = engine::take(rest, '\n');
    const std::size_t at = line.find(kMark);
    unsigned slot = 0;
    if (at != std::string_view::npos &&
        engine::parse_number(line.substr(at + kMark.size()), slot) && slot < ib::kSlots) {
      slots.push_back(slot);
    }
  }
  // A listening socket and its connections have one name.
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

std::string describe_devices(bool json) {
  const Json facts = facts_as_json();
  return json ? facts.dump(2) + "\n" : as_text(facts);
}

}  // namespace vrb::tools
