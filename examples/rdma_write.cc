// One RDMA WRITE between two processes, on nothing but <infiniband/verbs.h>. The receiver gives
// away the address and the R_Key of a buffer; the sender writes into it; no code of the receiver
// runs.
//
//   g++ -std=c++20 rdma_write.cc -o rdma_write -libverbs && verbena run -- ./rdma_write
//
// SPDX-License-Identifier: Apache-2.0
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t kBytes = 64;

void must(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(1);
}

// What the other side must know; it travels over an ordinary socket.
struct Address {
  ibv_gid gid;
  uint32_t qpn, rkey;
  uint64_t buffer;
};

struct Endpoint {
  char buffer[kBytes] = {};
  ibv_cq* cq;
  ibv_mr* mr;
  ibv_qp* qp;
  Address address;
};

void open_endpoint(Endpoint& e) {
  ibv_device** devices = ibv_get_device_list(nullptr);
  must(devices != nullptr && devices[0] != nullptr, "no RDMA device");
  ibv_context* context = ibv_open_device(devices[0]);
  must(context != nullptr, "ibv_open_device");
  ibv_pd* pd = ibv_alloc_pd(context);
  e.mr = ibv_reg_mr(pd, e.buffer, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  e.cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
  must(e.mr != nullptr && e.cq != nullptr, "ibv_reg_mr, ibv_create_cq");
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = e.cq;
  init.cap.max_send_wr = init.cap.max_recv_wr = 1;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.qp_type = IBV_QPT_RC;
  e.qp = ibv_create_qp(pd, &init);
  must(e.qp != nullptr, "ibv_create_qp");
  must(ibv_query_gid(context, 1, 0, &e.address.gid) == 0, "ibv_query_gid");
  e.address.qpn = e.qp->qp_num;
  e.address.rkey = e.mr->rkey;
  e.address.buffer = reinterpret_cast<uint64_t>(e.buffer);
}

void modify(ibv_qp* qp, ibv_qp_attr& attr, ibv_qp_state state, int mask) {
  attr.qp_state = state;
  must(ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE) == 0, "ibv_modify_qp");
}

void connect_qp(ibv_qp* qp, const Address& remote) {
  ibv_qp_attr a = {};
  a.port_num = a.ah_attr.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  modify(qp, a, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = remote.qpn;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = remote.gid;
  a.ah_attr.grh.hop_limit = 64;
  modify(qp, a, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER);
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  modify(qp, a, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

Address exchange(int socket, const Address& own) {
  Address remote;
  must(write(socket, &own, sizeof own) == sizeof own, "write");
  must(read(socket, &remote, sizeof remote) == sizeof remote, "read");
  return remote;
}

void rdma_write(Endpoint& e, const Address& remote, uint32_t data_len) {
  struct ibv_send_wr wr = {}, *bad_wr = nullptr;
  struct ibv_sge sge = {};
  sge.addr = reinterpret_cast<uint64_t>(e.buffer);  // local source
  sge.length = data_len;
  sge.lkey = e.mr->lkey;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.rdma.remote_addr = remote.buffer;  // where it goes
  wr.wr.rdma.rkey = remote.rkey;           // the key that allows it
  must(ibv_post_send(e.qp, &wr, &bad_wr) == 0, "ibv_post_send");
  ibv_wc wc = {};
  while (ibv_poll_cq(e.cq, 1, &wc) == 0) {
  }
  std::printf("sender:   the WRITE completed: %s\n", ibv_wc_status_str(wc.status));
  if (wc.status != IBV_WC_SUCCESS) std::exit(1);
}

}  // namespace

int main() {
  int sockets[2];
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
  const bool sender = fork() == 0;  // before the device is opened
  close(sockets[sender ? 0 : 1]);
  const int socket = sockets[sender ? 1 : 0];
  Endpoint e;
  open_endpoint(e);
  connect_qp(e.qp, exchange(socket, e.address));
  const Address remote = exchange(socket, e.address);  // again: now both QPs are in RTS
  if (sender) {
    const int length = std::snprintf(e.buffer, kBytes, "hello from process %d", getpid());
    rdma_write(e, remote, static_cast<uint32_t>(length));
  }
  exchange(socket, e.address);  // only this tells the receiver that the bytes are there
  if (sender) return 0;
  std::printf("receiver: process %d found \"%s\"\n", getpid(), e.buffer);
  int status = 1;
  wait(&status);
  return status == 0 && e.buffer[0] == 'h' ? 0 : 1;
}
