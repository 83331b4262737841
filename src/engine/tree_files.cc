// SPDX-License-Identifier: Apache-2.0
#include "engine/tree_files.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "engine/identity.h"
#include "engine/text.h"

namespace vrb::engine {
namespace {

constexpr const char* kClass = "sys/class/infiniband";
constexpr const char* kVerbsClass = "sys/class/infiniband_verbs";
constexpr const char* kDev = "dev/infiniband";

// Statistics of a port and of the device behind it. The tree is written once, so they stay at zero;
// the names are those that tools look for.
constexpr const char* kCounters[] = {"VL15_dropped",
                                     "excessive_buffer_overrun_errors",
                                     "link_downed",
                                     "link_error_recovery",
                                     "local_link_integrity_errors",
                                     "multicast_rcv_packets",
                                     "multicast_xmit_packets",
                                     "port_rcv_constraint_errors",
                                     "port_rcv_data",
                                     "port_rcv_errors",
                                     "port_rcv_packets",
                                     "port_rcv_remote_physical_errors",
                                     "port_rcv_switch_relay_errors",
                                     "port_xmit_constraint_errors",
                                     "port_xmit_data",
                                     "port_xmit_discards",
                                     "port_xmit_packets",
                                     "port_xmit_wait",
                                     "symbol_error",
                                     "unicast_rcv_packets",
                                     "unicast_xmit_packets"};
constexpr const char* kHwCounters[] = {"duplicate_request",
                                       "implied_nak_seq_err",
                                       "local_ack_timeout_err",
                                       "np_cnp_sent",
                                       "np_ecn_marked_roce_packets",
                                       "out_of_buffer",
                                       "out_of_sequence",
                                       "packet_seq_err",
                                       "rcvd_pkts",
                                       "req_cqe_error",
                                       "req_remote_access_errors",
                                       "resp_cqe_error",
                                       "resp_local_length_error",
                                       "resp_remote_access_errors",
                                       "rnr_nak_retry_err",
                                       "roce_adp_retrans",
                                       "rp_cnp_handled",
                                       "rx_atomic_requests",
                                       "rx_icrc_encapsulated",
                                       "rx_read_requests",
                                       "rx_write_requests",
                                       "sent_pkts"};

std::string hex(unsigned value, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%0*x", digits, value);
  return text;
}

std::string guid_groups(std::uint64_t guid) {
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48),
                static_cast<unsigned>(guid >> 32 & 0xffff),
                static_cast<unsigned>(guid >> 16 & 0xffff), static_cast<unsigned>(guid & 0xffff));
  return text;
}

// Collects files below one directory.
class Dir {
 public:
  Dir(std::vector<TreeFile>& files, std::string path) : files_(files), path_(std::move(path)) {}
  Dir sub(const std::string& name) const { return Dir(files_, path_ + "/" + name); }
  void file(const std::string& name, const std::string& line) const {
    files_.push_back({path_ + "/" + name, line + "\n", false});
  }
  void link(const std::string& name, const std::string& target) const {
    files_.push_back({path_ + "/" + name, target, true});
  }

 private:
  std::vector<TreeFile>& files_;
  std::string path_;
};

void add_gids(const Dir& port, const PortFacts& facts) {
  for (unsigned i = 0; i < facts.gids.size(); ++i) {
    const GidEntry& entry = facts.gids[i];
    const std::string name = std::to_string(i);
    port.sub("gids").file(name, gid_groups(entry.gid));
    // The kernel's files of an empty entry cannot be read: here they are missing.
    if (is_zero(entry.gid)) continue;
    port.sub("gid_attrs/types").file(name, "RoCE v2");
    port.sub("gid_attrs/ndevs").file(name, entry.ifname);
  }
}

void add_port(const Dir& port, const PortFacts& facts) {
  port.file("state", "4: ACTIVE");
  port.file("phys_state", "5: LinkUp");
  port.file("rate", kRate);
  port.file("link_layer", "Ethernet");
  port.file("lid", "0x0");
  port.file("lid_mask_count", "0");
  port.file("sm_lid", "0x0");
  port.file("sm_sl", "0");
  port.file("cap_mask", hex(kPortCapFlags, 8));
  port.file("has_smi", "0");
  port.sub("pkeys").file("0", hex(ib::kDefaultPkey, 4));
  add_gids(port, facts);
  for (const char* name : kCounters) port.sub("counters").file(name, "0");
  for (const char* name : kHwCounters) port.sub("hw_counters").file(name, "0");
  port.sub("hw_counters").file("lifespan", "10");
}

// The "PCI function". It is a real directory and not a link, so that its name stays under
// /sys/class.
void add_parent_device(const Dir& device, const PortFacts& facts, const std::string& online_cpus) {
  // PCI's vendors have 16 bits and are not those of ibv_device_attr; there is no PCI function here.
  device.file("vendor", "0x0000");
  device.file("device", hex(ib::kVendorPartId, 4));
  device.file("subsystem_vendor", "0x0000");
  device.file("subsystem_device", hex(ib::kVendorPartId, 4));
  device.file("class", "0x020700");
  device.file("numa_node", "-1");
  device.file("local_cpus", cpu_mask(online_cpus));
  device.file("local_cpulist", online_cpus);
  device.file("uevent", "DRIVER=verbena");
  const std::string net = facts.gids[0].ifname;
  if (!net.empty()) device.sub("net").link(net, "/sys/class/net/" + net);
  device.sub("infiniband").link(kDeviceName, std::string("../../../") + kDeviceName);
  device.sub("infiniband_verbs")
      .link(kUverbsName, std::string("../../../../infiniband_verbs/") + kUverbsName);
}

}  // namespace

std::string cpu_mask(const std::string& list) {
  std::vector<std::uint32_t> words(1);
  for (std::string_view rest = list; !rest.empty();) {
    std::string_view range = take(rest, ',');
    unsigned first = 0;
    if (!parse_number(take(range, '-'), first)) continue;
    unsigned last = first;
    if (!range.empty() && !parse_number(range, last)) continue;
    for (unsigned cpu = first; cpu <= std::min(last, 65535U); ++cpu) {
      if (words.size() <= cpu / 32) words.resize(cpu / 32 + 1);
      words[cpu / 32] |= 1U << cpu % 32;
    }
  }
  std::string mask;
  for (std::size_t i = words.size(); i-- > 0;) {
    char word[10];
    std::snprintf(word, sizeof word, "%08" PRIx32 "%s", words[i], i == 0 ? "" : ",");
    mask += word;
  }
  return mask;
}

std::vector<TreeFile> tree_files(const PortFacts& facts, const std::string& online_cpus) {
  std::vector<TreeFile> files;
  const Dir device(files, std::string(kClass) + "/" + kDeviceName);
  device.file("node_type", "1: CA");
  device.file("node_guid", guid_groups(facts.guid));
  device.file("sys_image_guid", guid_groups(facts.guid));
  device.file("node_desc", kDeviceName);
  device.file("fw_ver", kVersion);
  device.file("hw_rev", "0");
  device.file("hca_type", kHcaType);
  device.file("board_id", kBoardId);
  device.file("uevent", std::string("NAME=") + kDeviceName);
  add_parent_device(device.sub("device"), facts, online_cpus);
  add_port(device.sub("ports/1"), facts);

  const Dir verbs(files, kVerbsClass);
  verbs.file("abi_version", "6");
  const Dir uverbs = verbs.sub(kUverbsName);
  uverbs.file("ibdev", kDeviceName);
  uverbs.file("abi_version", "1");
  uverbs.file("dev", "1:3");  // what stat() of the node below says
  uverbs.link("device", std::string("../../infiniband/") + kDeviceName + "/device");

  // Programs want a character device that they may read and write; nobody sends it a command. There
  // is no rdma_cm beside it: the system's librdmacm would write to it and wait for an answer for
  // ever, while without it it says at once that there is none (UCX then goes on without).
  const Dir dev(files, kDev);
  dev.link(kUverbsName, "/dev/null");
  dev.sub("by-ibdev").link(std::string("uverbs-") + kDeviceName, std::string("../") + kUverbsName);
  return files;
}

}  // namespace vrb::engine
