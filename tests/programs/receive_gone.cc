// A SEND meets a posted receive whose memory was unmapped, between two processes, through plain
// verbs: the sender's completion says REM_OP_ERR, the receiver's LOC_PROT_ERR
// (IBTA 9.7.4.1, 11.6.2). Ends with 0 when both are so.
// SPDX-License-Identifier: Apache-2.0
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t kBytes = 4096;

void must(bool fine, const char* what) {
  if (fine) return;
  std::perror(what);
  std::exit(2);
}

struct End {
  ibv_context* context = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  void* memory = nullptr;

  void open() {
    ibv_device** devices = ibv_get_device_list(nullptr);
    must(devices != nullptr && devices[0] != nullptr, "ibv_get_device_list");
    context = ibv_open_device(devices[0]);
    must(context != nullptr, "ibv_open_device");
    ibv_free_device_list(devices);
    ibv_pd* pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
    memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(pd != nullptr && cq != nullptr && memory != MAP_FAILED, "pd, cq, mmap");
    const int access = IBV_ACCESS_LOCAL_WRITE;
    mr = ibv_reg_mr(pd, memory, kBytes, access);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {4, 4, 1, 1, 0};
    qp = ibv_create_qp(pd, &init);
    must(mr != nullptr && qp != nullptr, "mr, qp");
  }

  void connect(int socket) const {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    must(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "INIT");
    std::uint32_t remote = 0;
    must(write(socket, &qp->qp_num, 4) == 4 && read(socket, &remote, 4) == 4, "socket");
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = remote;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    must(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
    must(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    must(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
  }

  void post(bool send) const {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory), kBytes, mr->lkey};
    ibv_send_wr send_wr{};
    ibv_recv_wr recv_wr{};
    ibv_send_wr* bad_send = nullptr;
    ibv_recv_wr* bad_recv = nullptr;
    send_wr.sg_list = recv_wr.sg_list = &sge;
    send_wr.num_sge = recv_wr.num_sge = 1;
    send_wr.opcode = IBV_WR_SEND;
    send_wr.send_flags = IBV_SEND_SIGNALED;
    must((send ? ibv_post_send(qp, &send_wr, &bad_send) : ibv_post_recv(qp, &recv_wr, &bad_recv)) ==
             0,
         "post");
  }

  // True when the one completion has this status and the QP is in the error state with it.
  bool ends_with(ibv_wc_status wanted, const char* who) const {
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 0) continue;
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    must(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
    std::printf("%s: %s, QP state %d\n", who, ibv_wc_status_str(wc.status), attr.qp_state);
    return wc.status == wanted && attr.qp_state == IBV_QPS_ERR;
  }
};

}  // namespace

int main() {
  int sockets[2];
  must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0, "socketpair");
  const pid_t child = fork();
  must(child >= 0, "fork");
  const bool sends = child == 0;
  const int socket = sockets[sends ? 0 : 1];
  End end;
  end.open();
  end.connect(socket);
  char go = 0;
  if (sends) {
    must(read(socket, &go, 1) == 1, "socket");
    end.post(true);
    return end.ends_with(IBV_WC_REM_OP_ERR, "sender") ? 0 : 1;
  }
  end.post(false);
  must(munmap(end.memory, kBytes) == 0 && write(socket, &go, 1) == 1, "munmap, socket");
  const bool right = end.ends_with(IBV_WC_LOC_PROT_ERR, "receiver");
  int status = 0;
  must(waitpid(child, &status, 0) == child, "waitpid");
  return right && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
