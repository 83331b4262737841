// The model: invents random verbs for its nodes (the ranks), knows what each must lead to, and
// judges what came back. Nothing in it depends on time or on the order in which ranks run: within a
// round only operations of one send queue touch the same bytes, except where any order is right (a
// contended counter, who takes which receive of a shared queue), and then it checks just that.
//
// A round: change() (objects come, go and change; outcomes are needed), plan() (receives and other
// preparations; then the traffic), judge() for each node, settle(). After each of the first two the
// caller carries the orders to the ranks. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "world.h"

namespace vrb::model {

constexpr std::uint64_t kReceive = 1ULL << 63;  // in wr_ids of receives

class Model {
 public:
  Model(std::uint64_t seed, const std::vector<Greeting>& greetings);

  std::deque<Node>& nodes() { return nodes_; }
  std::uint64_t operations() const { return operations_; }
  // How many work requests there were of each operation, and of each way to fail.
  const std::map<std::string, std::uint64_t>& tally() const { return tally_; }

  void set_up();  // into node.prepare
  void change();  // into node.prepare
  void plan();    // into node.prepare and node.go
  // `harvest`: what came behind the outcome of the node's Collect.
  void judge(Node& node, Message& harvest, std::span<const std::byte> memory);
  // Once all are judged; `memories` as the nodes.
  void settle(const std::vector<std::span<const std::byte>>& memories);

 private:
  struct Placed {
    std::uint32_t region = 0;
    Range range;
    std::uint64_t addr = 0;  // as the region's keys name it
    bool fence = false;
  };
  // A work request under construction.
  struct Draft {
    SendOrder order;
    std::vector<ib::Sge> sges;
    std::vector<Range> locals;
    std::uint64_t length = 0;
    bool fence = false;
    bool scribbles = false;  // inline: the program writes over the source at once
    ib::WcStatus status = ib::WcStatus::Success;
    ib::CauseCode cause = ib::CauseCode::None;
  };

  // changes.cc
  void make_endpoints();
  Endpoint& add_endpoint(Node& node, ib::QpType type);
  void create(Endpoint& e);
  void connect(Endpoint& e, bool orphan);
  void disconnect(Endpoint& e, Orders& orders, bool destroys);
  void change_pair(Endpoint& e);
  void clear(Endpoint& e);
  Region random_region(Node& node);
  void change_region(Node& node, std::uint32_t index, Orders& orders);
  void resize(Node& node, Orders& orders);

  // script.cc
  void begin_round();
  void prepare_node(Node& node);
  void share_out_budgets();
  void side_action();
  void act(Endpoint& e);
  bool post_valid(Endpoint& e);
  bool post_one_sided(Endpoint& e, Draft& d);
  bool post_atomic(Endpoint& e, Draft& d);
  bool post_contended(Endpoint& e, Draft& d);
  bool post_message(Endpoint& e, Draft& d);
  std::optional<ib::Opcode> choose_opcode(const Endpoint& e);
  std::uint64_t choose_length();

  // traffic.cc
  void owe(Endpoint& e, std::uint32_t cq, bool solicited);  // a completion becomes due
  void post(Endpoint& e, Draft& d);
  void scribble(Node& node, std::span<const Range> ranges);
  bool deliver(Endpoint& e, Endpoint& t, Draft& d, std::uint64_t length);
  void expect_message(Endpoint& e, Endpoint& t, const Draft& d, Inbound message);
  void finish_round();
  void finish_node(Node& node);

  // lists.cc
  std::optional<Placed> place(Node& node, std::uint32_t pd, std::uint32_t access,
                              std::uint64_t length, std::uint16_t queue, Shadow::Use use);
  std::vector<std::uint64_t> split(std::uint64_t length, std::uint32_t most);
  bool fill_list(Endpoint& e, Draft& d, std::uint64_t length, Shadow::Use use);
  bool fill_inline(Endpoint& e, Draft& d, std::uint64_t length);
  // The receive that the next message to `t` will find, posted if need be; null: none to be had.
  const Recv* next_receive(Endpoint& t, std::uint64_t length);
  Recv* post_receive(Endpoint& t, std::uint64_t capacity);
  Recv* post_shared_receive(Node& node);
  bool fill_receive(Node& node, std::uint32_t pd, std::uint32_t most, std::uint64_t capacity,
                    Recv& recv, std::vector<ib::Sge>& sges);
  void unpin(Node& node, const Recv& recv);
  std::uint64_t shared_capacity() const { return ib::kGrhBytes + nodes_[0].greeting.mtu; }

  // faults.cc
  bool post_fault(Endpoint& e);
  bool remote_fault(Endpoint& e, Draft& d);
  bool break_remote(Endpoint& t, Draft& d, std::uint32_t need);
  bool message_fault(Endpoint& e, Draft& d);
  bool receive_fault(Endpoint& e, Draft& d);
  bool local_fault(Endpoint& e, Draft& d);
  bool datagram_fault(Endpoint& e, Draft& d);
  void post_flushed(Endpoint& e);
  void post_refused(Endpoint& e);
  void fail(Endpoint& e);
  void fail_target(Endpoint& t, std::optional<ib::EventType> event);

  // judge.cc
  void judge_send(Endpoint& e, const nic::Completion& c);
  void judge_receive(Endpoint& e, const nic::Completion& c, std::span<const std::byte> memory);
  Recv take_receive(Endpoint& e, std::uint64_t id);
  void judge_events(Node& node, const std::vector<std::uint32_t>& events,
                    std::vector<AsyncHarvested> async);
  void judge_rest(Node& node);
  void judge_contended(const std::vector<std::span<const std::byte>>& memories);
  void compare(Node& node, std::span<const std::byte> memory);

  Endpoint* by_qpn(std::uint32_t qpn);
  std::uint64_t address(const Node& node, std::uint64_t offset) const {
    return node.greeting.arena + offset;
  }

  Random random_;
  std::deque<Node> nodes_;
  std::deque<Endpoint> endpoints_;
  std::vector<Endpoint*> datagrams_;  // the UD ones
  std::vector<Contended> contended_;
  std::uint64_t round_ = 0, operations_ = 0;
  std::map<std::string, std::uint64_t> tally_;
  // What each operation of this round did to memory, for the report of a difference.
  struct Deed {
    std::uint32_t node;
    Range range;
    std::string what;
  };
  std::vector<Deed> deeds_;
};

std::string describe(const Endpoint& e);

}  // namespace vrb::model
