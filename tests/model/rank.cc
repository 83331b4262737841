// SPDX-License-Identifier: Apache-2.0
#include "rank.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace vrb::model {
namespace {

constexpr std::size_t kBatch = 16;  // completions a poll

std::byte* map(int fd, int flags) {
  void* const at = mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) throw std::runtime_error("mmap failed");
  return static_cast<std::byte*>(at);
}

template <class T>
Outcome outcome(const ib::Result<T>& result) {
  return {result ? 0 : static_cast<int>(result.error().errc), {}};
}

// Objects come back with events as their index, shifted so that it is no null pointer.
void* handle_of(std::uint32_t index) { return reinterpret_cast<void*>(std::uintptr_t{index} + 1); }
std::uint32_t index_of(void* handle) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) - 1);
}

template <class T>
void put_at(std::vector<T>& table, std::uint32_t index, T value) {
  if (table.size() <= index) table.resize(index + 1);
  table[index] = value;
}

template <class T>
T* got(const ib::Result<T*>& result, const char* what) {
  if (!result) {
    throw std::runtime_error(std::string(what) + " was refused with errno " +
                             std::to_string(static_cast<int>(result.error().errc)));
  }
  return *result;
}

void must(const ib::Result<void>& result, const char* what) {
  if (result) return;
  std::fprintf(stderr, "model rank: %s was refused with errno %d\n", what,
               static_cast<int>(result.error().errc));
  std::exit(3);
}

// As Docker's default filter did, or Yama does: the carrier must do with its assist tier.
bool refuse_cma() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// 0: a rank waits for ever for what must come. Else it hands in what it has after so long, and the
// coordinator can name what is missing.
int patience_s() {
  static const char* const text = std::getenv("VERBENA_MODEL_PATIENCE");
  return text != nullptr ? std::atoi(text) : 0;
}

template <class G>
std::size_t last_gid(const G& gids) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < gids.size(); ++i) {
    if (!engine::is_zero(gids[i].gid)) last = i;
  }
  return last;
}

// What the ranks of this process did before they answered happened before the next orders, but the
// coordinator, through which that is so, is another process: ThreadSanitizer does not see it.
void meet_others() {
  static std::atomic<unsigned> meetings{0};
  meetings.fetch_add(1, std::memory_order_acq_rel);
}

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

}  // namespace

Rank::Rank(int socket, int memfd, bool shares) : socket_(socket), visible_(map(memfd, MAP_SHARED)) {
  arena_ = shares ? visible_ : map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
  context_ = got(engine::open_device(handle_of(0)), "open_device");
  channel_ = got(engine::create_channel(context_), "create_channel");
  const auto& gids = engine::port_facts().gids;
  const std::size_t loopback = last_gid(gids);
  for (std::uint32_t i = 0; i < kPds; ++i) {
    pds_[i] = got(engine::alloc_pd(context_), "alloc_pd");
    nic::AddressVector av;
    av.port = 1;
    av.has_grh = true;
    const std::size_t indices[] = {0, loopback};
    for (std::uint32_t k = 0; k < 2; ++k) {
      av.sgid_index = static_cast<std::uint8_t>(indices[k]);
      av.dgid = gids[indices[k]].gid;
      ahs_[2 * i + k] = got(engine::create_ah(pds_[i], av), "create_ah");
    }
  }
}

Rank::~Rank() {
  if (arena_ != visible_) munmap(arena_, kArenaBytes);
  munmap(visible_, kArenaBytes);
}

void Rank::serve() {
  Message greeting;
  greeting.put(Greeting{reinterpret_cast<std::uint64_t>(arena_), engine::port_facts().active_mtu});
  send_message(socket_, greeting);
  for (bool stays = true; stays;) {
    Message in = receive_message(socket_);
    meet_others();
    Message out;
    while (!in.at_end()) {
      const auto verb = in.take<Verb>();
      if (verb == Verb::Leave) {
        leave(out);
        stays = false;
        break;
      }
      Message behind;
      out.put(execute(verb, in, behind));
      out.put_all(behind.bytes());
    }
    meet_others();
    send_message(socket_, out);
  }
}

Outcome Rank::execute(Verb verb, Message& in, Message& out) {
  switch (verb) {
    case Verb::CreateCq:
    case Verb::ResizeCq:
    case Verb::ArmCq:
    case Verb::CreateSrq:
    case Verb::LimitSrq:
      return on_queue(verb, in);
    case Verb::CreateQp:
      return create_qp(in.take<QpOrder>());
    case Verb::DestroyQp:
    case Verb::ResetQp:
    case Verb::RecoverQp:
    case Verb::AwaitState:
      return on_state(verb, in.take<StateOrder>());
    case Verb::ConnectQp:
      return connect(in.take<ConnectOrder>());
    case Verb::RegMr:
    case Verb::ReregMr:
    case Verb::DeregMr:
      return on_region(verb, in);
    case Verb::Fill: {
      const auto order = in.take<FillOrder>();
      fill({arena_ + order.offset, order.length}, order.seed);
      return {};
    }
    case Verb::PostSend:
      return post_send(in);
    case Verb::PostRecv:
      return post_recv(in);
    case Verb::Collect:
      collect(in.take<CollectOrder>(), out);
      return {};
    case Verb::Show:
      if (arena_ != visible_) copy_words(visible_, arena_, kArenaBytes);
      return {};
    case Verb::Leave:
      break;
  }
  return {-1, {}};
}

Outcome Rank::on_queue(Verb verb, Message& in) {
  if (verb == Verb::CreateSrq || verb == Verb::LimitSrq) {
    const auto order = in.take<SrqOrder>();
    engine::SrqAttr attr{order.max_wr, order.max_sge, order.limit};
    if (verb == Verb::LimitSrq) return outcome(engine::modify_srq(srq_, attr, 2));
    const auto made = engine::create_srq(pds_[order.pd], attr, handle_of(0));
    if (made) srq_ = *made;
    return outcome(made);
  }
  const auto order = in.take<CqOrder>();
  if (verb == Verb::ArmCq) return outcome(engine::req_notify(cqs_[order.cq], order.cqe != 0));
  if (verb == Verb::ResizeCq) return outcome(engine::resize_cq(cqs_[order.cq], order.cqe));
  const auto made = engine::create_cq(context_, order.cqe, channel_, handle_of(order.cq));
  if (made) put_at(cqs_, order.cq, *made);
  return outcome(made);
}

Outcome Rank::on_state(Verb verb, const StateOrder& order) {
  engine::Qp*& qp = qps_[order.qp];
  nic::QpAttr attr;
  switch (verb) {
    case Verb::DestroyQp:
      return outcome(engine::destroy_qp(std::exchange(qp, nullptr)));
    case Verb::ResetQp:
      attr.state = ib::QpState::Reset;
      return outcome(engine::modify_qp(qp, attr, nic::kMaskState));
    case Verb::RecoverQp:
      attr.state = ib::QpState::Rts;
      return outcome(engine::modify_qp(qp, attr, nic::kMaskState));
    default:
      while (engine::qp_state(qp) != order.state) sched_yield();
      return {};
  }
}

Outcome Rank::create_qp(const QpOrder& order) {
  engine::QpInit init;
  init.type = order.type;
  init.send_cq = cqs_[order.send_cq];
  init.recv_cq = cqs_[order.recv_cq];
  init.srq = order.srq ? srq_ : nullptr;
  init.cap = order.cap;
  init.sq_sig_all = order.sig_all;
  init.handle = handle_of(order.qp);
  const auto made = engine::create_qp(pds_[order.pd], init);
  if (!made) return outcome(made);
  put_at(qps_, order.qp, *made);
  return {0, {engine::qpn(*made).value, init.cap.max_send_wr}};
}

Outcome Rank::connect(const ConnectOrder& order) {
  engine::Qp* const qp = qps_[order.qp];
  const bool ud = order.type == ib::QpType::Ud;
  const bool rc = order.type == ib::QpType::Rc;
  nic::QpAttr attr;
  attr.port = attr.av.port = 1;
  attr.access = order.access;
  attr.qkey = order.qkey;
  attr.path_mtu = 3;
  attr.dest_qpn = ib::Qpn{order.dest_qpn};
  attr.min_rnr_timer = 1;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
  attr.timeout = order.timeout;
  attr.retry_cnt = order.retry_cnt;
  attr.rnr_retry = order.rnr_retry;
  std::uint32_t to_init = nic::kMaskPkeyIndex | nic::kMaskPort;
  to_init |= ud ? nic::kMaskQkey : nic::kMaskAccess;
  std::uint32_t to_rtr = 0;
  std::uint32_t to_rts = nic::kMaskSqPsn;
  if (!ud) to_rtr |= nic::kMaskAv | nic::kMaskPathMtu | nic::kMaskDestQpn | nic::kMaskRqPsn;
  if (rc) {
    to_rtr |= nic::kMaskMaxDestRdAtomic | nic::kMaskMinRnrTimer;
    to_rts |= nic::kMaskTimeout | nic::kMaskRetryCnt | nic::kMaskRnrRetry | nic::kMaskMaxRdAtomic;
  }
  const std::pair<ib::QpState, std::uint32_t> steps[] = {
      {ib::QpState::Init, to_init}, {ib::QpState::Rtr, to_rtr}, {ib::QpState::Rts, to_rts}};
  for (const auto& [state, mask] : steps) {
    attr.state = state;
    if (const auto done = engine::modify_qp(qp, attr, mask | nic::kMaskState); !done) {
      return outcome(done);
    }
  }
  return {};
}

Outcome Rank::on_region(Verb verb, Message& in) {
  const auto order = in.take<MrOrder>();
  if (verb == Verb::DeregMr) {
    return outcome(engine::dereg_mr(std::exchange(mrs_[order.mr], nullptr)));
  }
  std::byte* const addr = arena_ + order.offset;
  const auto made =
      verb == Verb::RegMr
          ? engine::reg_mr(pds_[order.pd], addr, order.length, order.iova, order.access)
          : engine::rereg_mr(mrs_[order.mr], order.flags, pds_[order.pd], addr, order.length,
                             order.access);
  if (!made) return outcome(made);
  put_at(mrs_, order.mr, made->mr);
  return {0, {made->lkey, made->rkey}};
}

Outcome Rank::post_send(Message& in) {
  const auto order = in.take<SendOrder>();
  const auto sges = in.take_list<ib::Sge>();
  queue::SendRequest request;
  request.wr_id = order.id;
  request.opcode = order.opcode;
  request.flags = order.flags;
  request.imm = order.imm;
  request.remote_addr = order.remote_addr;
  request.rkey = order.rkey;
  request.compare_add = order.compare_add;
  request.swap = order.swap;
  request.remote_qpn = order.remote_qpn;
  request.remote_qkey = order.remote_qkey;
  if (order.remote_qpn != 0) request.ah = ahs_[order.ah];
  request.sges = sges;
  return outcome(engine::post_send(qps_[order.qp], request));
}

Outcome Rank::post_recv(Message& in) {
  const auto order = in.take<RecvOrder>();
  const auto sges = in.take_list<ib::Sge>();
  const engine::RecvRequest request{order.id, sges};
  return outcome(order.srq ? engine::post_srq_recv(srq_, request)
                           : engine::post_recv(qps_[order.qp], request));
}

bool Rank::poll_queues() {
  bool any = false;
  for (std::uint32_t cq = 0; cq < cqs_.size(); ++cq) {
    std::array<nic::Completion, kBatch> batch;
    const int n = engine::poll_cq(cqs_[cq], batch);
    if (n < 0) throw std::runtime_error("poll_cq failed");
    for (int i = 0; i < n; ++i) completions_.push_back({cq, batch[static_cast<std::size_t>(i)]});
    any |= n > 0;
  }
  return any;
}

bool Rank::take_async() {
  if (!readable(engine::async_fd(context_))) return false;
  const auto event = engine::get_async_event(context_);
  if (!event) throw std::runtime_error("get_async_event failed");
  async_.push_back({event->type, index_of(event->element)});
  engine::ack_async_event(*event);
  return true;
}

bool Rank::take_event() {
  if (!readable(engine::channel_fd(channel_))) return false;
  const auto handle = engine::get_cq_event(channel_);
  if (!handle) throw std::runtime_error("get_cq_event failed");
  events_.push_back(index_of(*handle));
  engine::ack_cq_events(cqs_.at(events_.back()), 1);
  return true;
}

// Arms all, looks once more, and then waits for a completion or asynchronous event.
void Rank::sleep() {
  for (engine::Cq* cq : cqs_) must(engine::req_notify(cq, false), "req_notify");
  if (poll_queues()) return;
  pollfd fds[2] = {{engine::channel_fd(channel_), POLLIN, 0},
                   {engine::async_fd(context_), POLLIN, 0}};
  poll(fds, 2, patience_s() != 0 ? 100 : -1);
}

void Rank::collect(const CollectOrder& order, Message& out) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const auto waited = std::chrono::steady_clock::now() - start;
    if (patience_s() != 0 && waited > std::chrono::seconds(patience_s())) break;
    const bool enough = completions_.size() >= order.completions &&
                        async_.size() >= order.async_events &&
                        (order.sleeps || events_.size() >= order.cq_events);
    if (enough) break;
    const bool polled = poll_queues();
    const bool told = take_async();
    if (take_event() || polled || told) continue;
    if (order.sleeps) {
      sleep();
    } else {
      sched_yield();
    }
  }
  while (poll_queues() || take_async() || take_event()) {
  }  // what nobody expects
  out.put_list(std::exchange(completions_, {}));
  out.put_list(std::exchange(events_, {}));
  out.put_list(std::exchange(async_, {}));
}

void Rank::leave(Message& out) {
  collect({}, out);
  for (engine::Qp* qp : qps_) {
    if (qp != nullptr) must(engine::destroy_qp(qp), "destroy_qp");
  }
  for (engine::Mr* mr : mrs_) {
    if (mr != nullptr) must(engine::dereg_mr(mr), "dereg_mr");
  }
  if (srq_ != nullptr) must(engine::destroy_srq(srq_), "destroy_srq");
  for (engine::Cq* cq : cqs_) must(engine::destroy_cq(cq), "destroy_cq");
  for (engine::Ah* ah : ahs_) must(engine::destroy_ah(ah), "destroy_ah");
  for (engine::Pd* pd : pds_) must(engine::dealloc_pd(pd), "dealloc_pd");
  must(engine::destroy_channel(channel_), "destroy_channel");
  must(engine::close_device(context_), "close_device");
  engine::free_context(context_);
}

int serve_ranks(std::span<char*> arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (arguments.size() < 2 || getppid() != std::atoi(arguments[0])) return 4;  // it has gone
  if (std::atoi(arguments[1]) != 0 && !refuse_cma()) return 5;
  std::vector<std::thread> threads;
  for (std::size_t i = 2; i + 2 < arguments.size(); i += 3) {
    const int socket = std::atoi(arguments[i]);
    const int memfd = std::atoi(arguments[i + 1]);
    const bool shares = std::atoi(arguments[i + 2]) != 0;
    threads.emplace_back([=] {
      try {
        Rank(socket, memfd, shares).serve();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "model rank: %s\n", error.what());
        std::_Exit(3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace vrb::model
