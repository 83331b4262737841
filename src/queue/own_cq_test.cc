// SPDX-License-Identifier: Apache-2.0
#include "queue/own_cq.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace vrb::queue {
namespace {

OwnCqe cqe(std::uint64_t wr_id, std::uint16_t qp) {
  OwnCqe c;
  c.wr_id = wr_id;
  c.qp = qp;
  return c;
}

TEST(OwnCq, IsEmptyAtFirst) {
  OwnCq cq;
  EXPECT_EQ(cq.size(), 0U);
  EXPECT_FALSE(cq.pop());
  cq.purge(1);
  EXPECT_FALSE(cq.pop());
}

TEST(OwnCq, GrowsWithItsFrontAnywhere) {
  for (std::uint64_t offset = 0; offset < 20; ++offset) {
    OwnCq cq;
    for (std::uint64_t i = 0; i < offset; ++i) {
      cq.push(cqe(i, 0));
      EXPECT_TRUE(cq.pop());
    }
    for (std::uint64_t i = 0; i < 100; ++i) cq.push(cqe(i, 0));
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(cq.pop()->wr_id, i);
    EXPECT_FALSE(cq.pop());
  }
}

TEST(OwnCq, DoesAsAPlainQueueDoes) {
  std::mt19937_64 random(1);
  OwnCq cq;
  std::deque<OwnCqe> model;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const auto dice = random() % 100;
    if (dice == 0) {
      const auto qp = static_cast<std::uint16_t>(random() % 4);
      cq.purge(qp);
      std::erase_if(model, [qp](const OwnCqe& c) { return c.qp == qp; });
    } else if (dice < 52) {
      model.push_back(cqe(i, static_cast<std::uint16_t>(random() % 4)));
      cq.push(model.back());
    } else {
      const auto got = cq.pop();
      ASSERT_EQ(got.has_value(), !model.empty());
      if (!got) continue;
      EXPECT_EQ(got->wr_id, model.front().wr_id);
      EXPECT_EQ(got->qp, model.front().qp);
      model.pop_front();
    }
    ASSERT_EQ(cq.size(), model.size());
  }
}

}  // namespace
}  // namespace vrb::queue
