// Our enumerations carry the values of verbs.h, and the struct layouts that we rely on are the
// system's: nothing here but assertions.
// SPDX-License-Identifier: Apache-2.0
#include "nic/qp_attr.h"
#include "verbs/objects.h"

namespace vrb {
namespace {

using ib::EventType;
using ib::Opcode;
using ib::QpState;
using ib::QpType;
using ib::WcOpcode;
using ib::WcStatus;

template <class Ours, class Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<long>(ours) == static_cast<long>(theirs);
}

#define VRB_SAME(ours, theirs) static_assert(same(ours, theirs))

VRB_SAME(QpType::Rc, IBV_QPT_RC);
VRB_SAME(QpType::Uc, IBV_QPT_UC);
VRB_SAME(QpType::Ud, IBV_QPT_UD);

VRB_SAME(QpState::Reset, IBV_QPS_RESET);
VRB_SAME(QpState::Init, IBV_QPS_INIT);
VRB_SAME(QpState::Rtr, IBV_QPS_RTR);
VRB_SAME(QpState::Rts, IBV_QPS_RTS);
VRB_SAME(QpState::Sqd, IBV_QPS_SQD);
VRB_SAME(QpState::Sqe, IBV_QPS_SQE);
VRB_SAME(QpState::Err, IBV_QPS_ERR);

VRB_SAME(Opcode::Write, IBV_WR_RDMA_WRITE);
VRB_SAME(Opcode::WriteWithImm, IBV_WR_RDMA_WRITE_WITH_IMM);
VRB_SAME(Opcode::Send, IBV_WR_SEND);
VRB_SAME(Opcode::SendWithImm, IBV_WR_SEND_WITH_IMM);
VRB_SAME(Opcode::Read, IBV_WR_RDMA_READ);
VRB_SAME(Opcode::CompareSwap, IBV_WR_ATOMIC_CMP_AND_SWP);
VRB_SAME(Opcode::FetchAdd, IBV_WR_ATOMIC_FETCH_AND_ADD);

VRB_SAME(ib::kSendFence, IBV_SEND_FENCE);
VRB_SAME(ib::kSendSignaled, IBV_SEND_SIGNALED);
VRB_SAME(ib::kSendSolicited, IBV_SEND_SOLICITED);
VRB_SAME(ib::kSendInline, IBV_SEND_INLINE);

VRB_SAME(WcStatus::Success, IBV_WC_SUCCESS);
VRB_SAME(WcStatus::LocLenErr, IBV_WC_LOC_LEN_ERR);
VRB_SAME(WcStatus::LocQpOpErr, IBV_WC_LOC_QP_OP_ERR);
VRB_SAME(WcStatus::LocEecOpErr, IBV_WC_LOC_EEC_OP_ERR);
VRB_SAME(WcStatus::LocProtErr, IBV_WC_LOC_PROT_ERR);
VRB_SAME(WcStatus::WrFlushErr, IBV_WC_WR_FLUSH_ERR);
VRB_SAME(WcStatus::MwBindErr, IBV_WC_MW_BIND_ERR);
VRB_SAME(WcStatus::BadRespErr, IBV_WC_BAD_RESP_ERR);
VRB_SAME(WcStatus::LocAccessErr, IBV_WC_LOC_ACCESS_ERR);
VRB_SAME(WcStatus::RemInvReqErr, IBV_WC_REM_INV_REQ_ERR);
VRB_SAME(WcStatus::RemAccessErr, IBV_WC_REM_ACCESS_ERR);
VRB_SAME(WcStatus::RemOpErr, IBV_WC_REM_OP_ERR);
VRB_SAME(WcStatus::RetryExcErr, IBV_WC_RETRY_EXC_ERR);
VRB_SAME(WcStatus::RnrRetryExcErr, IBV_WC_RNR_RETRY_EXC_ERR);
VRB_SAME(WcStatus::LocRddViolErr, IBV_WC_LOC_RDD_VIOL_ERR);
VRB_SAME(WcStatus::RemInvRdReqErr, IBV_WC_REM_INV_RD_REQ_ERR);
VRB_SAME(WcStatus::RemAbortErr, IBV_WC_REM_ABORT_ERR);
VRB_SAME(WcStatus::InvEecnErr, IBV_WC_INV_EECN_ERR);
VRB_SAME(WcStatus::InvEecStateErr, IBV_WC_INV_EEC_STATE_ERR);
VRB_SAME(WcStatus::FatalErr, IBV_WC_FATAL_ERR);
VRB_SAME(WcStatus::RespTimeoutErr, IBV_WC_RESP_TIMEOUT_ERR);
VRB_SAME(WcStatus::GeneralErr, IBV_WC_GENERAL_ERR);

VRB_SAME(WcOpcode::Send, IBV_WC_SEND);
VRB_SAME(WcOpcode::RdmaWrite, IBV_WC_RDMA_WRITE);
VRB_SAME(WcOpcode::RdmaRead, IBV_WC_RDMA_READ);
VRB_SAME(WcOpcode::CompSwap, IBV_WC_COMP_SWAP);
VRB_SAME(WcOpcode::FetchAdd, IBV_WC_FETCH_ADD);
VRB_SAME(WcOpcode::Recv, IBV_WC_RECV);
VRB_SAME(WcOpcode::RecvRdmaWithImm, IBV_WC_RECV_RDMA_WITH_IMM);
VRB_SAME(ib::kWcGrh, IBV_WC_GRH);
VRB_SAME(ib::kWcWithImm, IBV_WC_WITH_IMM);

VRB_SAME(ib::kLocalWrite, IBV_ACCESS_LOCAL_WRITE);
VRB_SAME(ib::kRemoteWrite, IBV_ACCESS_REMOTE_WRITE);
VRB_SAME(ib::kRemoteRead, IBV_ACCESS_REMOTE_READ);
VRB_SAME(ib::kRemoteAtomic, IBV_ACCESS_REMOTE_ATOMIC);
VRB_SAME(ib::kMwBind, IBV_ACCESS_MW_BIND);
VRB_SAME(ib::kZeroBased, IBV_ACCESS_ZERO_BASED);
VRB_SAME(ib::kOnDemand, IBV_ACCESS_ON_DEMAND);
VRB_SAME(ib::kHugetlb, IBV_ACCESS_HUGETLB);
VRB_SAME(ib::kOptionalAccess, IBV_ACCESS_OPTIONAL_RANGE);

VRB_SAME(EventType::CqErr, IBV_EVENT_CQ_ERR);
VRB_SAME(EventType::QpFatal, IBV_EVENT_QP_FATAL);
VRB_SAME(EventType::QpReqErr, IBV_EVENT_QP_REQ_ERR);
VRB_SAME(EventType::QpAccessErr, IBV_EVENT_QP_ACCESS_ERR);
VRB_SAME(EventType::CommEst, IBV_EVENT_COMM_EST);
VRB_SAME(EventType::SqDrained, IBV_EVENT_SQ_DRAINED);
VRB_SAME(EventType::PathMig, IBV_EVENT_PATH_MIG);
VRB_SAME(EventType::PathMigErr, IBV_EVENT_PATH_MIG_ERR);
VRB_SAME(EventType::DeviceFatal, IBV_EVENT_DEVICE_FATAL);
VRB_SAME(EventType::PortActive, IBV_EVENT_PORT_ACTIVE);
VRB_SAME(EventType::PortErr, IBV_EVENT_PORT_ERR);
VRB_SAME(EventType::LidChange, IBV_EVENT_LID_CHANGE);
VRB_SAME(EventType::PkeyChange, IBV_EVENT_PKEY_CHANGE);
VRB_SAME(EventType::SmChange, IBV_EVENT_SM_CHANGE);
VRB_SAME(EventType::SrqErr, IBV_EVENT_SRQ_ERR);
VRB_SAME(EventType::SrqLimitReached, IBV_EVENT_SRQ_LIMIT_REACHED);
VRB_SAME(EventType::QpLastWqeReached, IBV_EVENT_QP_LAST_WQE_REACHED);
VRB_SAME(EventType::ClientReregister, IBV_EVENT_CLIENT_REREGISTER);
VRB_SAME(EventType::GidChange, IBV_EVENT_GID_CHANGE);

VRB_SAME(nic::kMaskState, IBV_QP_STATE);
VRB_SAME(nic::kMaskCurState, IBV_QP_CUR_STATE);
VRB_SAME(nic::kMaskSqdNotify, IBV_QP_EN_SQD_ASYNC_NOTIFY);
VRB_SAME(nic::kMaskAccess, IBV_QP_ACCESS_FLAGS);
VRB_SAME(nic::kMaskPkeyIndex, IBV_QP_PKEY_INDEX);
VRB_SAME(nic::kMaskPort, IBV_QP_PORT);
VRB_SAME(nic::kMaskQkey, IBV_QP_QKEY);
VRB_SAME(nic::kMaskAv, IBV_QP_AV);
VRB_SAME(nic::kMaskPathMtu, IBV_QP_PATH_MTU);
VRB_SAME(nic::kMaskTimeout, IBV_QP_TIMEOUT);
VRB_SAME(nic::kMaskRetryCnt, IBV_QP_RETRY_CNT);
VRB_SAME(nic::kMaskRnrRetry, IBV_QP_RNR_RETRY);
VRB_SAME(nic::kMaskRqPsn, IBV_QP_RQ_PSN);
VRB_SAME(nic::kMaskMaxRdAtomic, IBV_QP_MAX_QP_RD_ATOMIC);
VRB_SAME(nic::kMaskAltPath, IBV_QP_ALT_PATH);
VRB_SAME(nic::kMaskMinRnrTimer, IBV_QP_MIN_RNR_TIMER);
VRB_SAME(nic::kMaskSqPsn, IBV_QP_SQ_PSN);
VRB_SAME(nic::kMaskMaxDestRdAtomic, IBV_QP_MAX_DEST_RD_ATOMIC);
VRB_SAME(nic::kMaskPathMigState, IBV_QP_PATH_MIG_STATE);
VRB_SAME(nic::kMaskCap, IBV_QP_CAP);
VRB_SAME(nic::kMaskDestQpn, IBV_QP_DEST_QPN);
VRB_SAME(nic::kMaskRateLimit, IBV_QP_RATE_LIMIT);

// The prefixes that verbs.h itself casts to.
static_assert(offsetof(ibv_qp_init_attr_ex, comp_mask) >= offsetof(ibv_qp_init_attr, sq_sig_all));
static_assert(offsetof(ibv_qp_init_attr_ex, cap) == offsetof(ibv_qp_init_attr, cap));
static_assert(offsetof(ibv_qp_init_attr_ex, sq_sig_all) == offsetof(ibv_qp_init_attr, sq_sig_all));
static_assert(offsetof(ibv_srq_init_attr_ex, attr) == offsetof(ibv_srq_init_attr, attr));
// Offsets that programs of any age rely on.
static_assert(offsetof(ibv_device, name) == 24 && sizeof(ibv_device) == 664);
static_assert(offsetof(ibv_port_attr, port_cap_flags2) == 48 && sizeof(ibv_port_attr) == 52);
static_assert(offsetof(verbs_context, context) ==
              offsetof(verbs_context, sz) + sizeof(std::size_t));

}  // namespace
}  // namespace vrb
