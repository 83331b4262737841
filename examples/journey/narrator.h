// Prints a journey from the records of its two processes: a line a record, in the order of the
// steps, with the actor and the time. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "record.h"

namespace journey {

class Narrator {
 public:
  explicit Narrator(bool colours) : colours_(colours) {}

  void introduce(pid_t sender, pid_t receiver) const;
  void tell(Kind kind, const std::vector<Record>& records) const;

 private:
  const char* style(const char* code) const { return colours_ ? code : ""; }
  void print_title(const char* title) const;
  void print_line(const Record& record, const std::string& time) const;
  void print_causes(const std::vector<Record>& records) const;
  void print_times(const std::vector<Record>& records, std::int64_t posted) const;
  void print_moral(Kind kind, std::int64_t warm) const;

  bool colours_;
};

}  // namespace journey
