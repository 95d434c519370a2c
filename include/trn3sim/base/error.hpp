// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
//
// Two kinds of failure. A user's mistake is a UserError (thrown, caught once in main, exit 2): it
// names the file and place, what was found and what to do. A mistake of ours is a failed
// TRN3SIM_CHECK: it throws InternalError (exit 3) and stays on in release builds.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trn3sim::base {

// One problem: `place` is "file: path" or "file:line"; `what` says what was found and expected.
struct Problem {
  std::string place;
  std::string what;
  [[nodiscard]] std::string text() const { return place.empty() ? what : place + ": " + what; }
};

// One or more problems that the user can mend. what() has one line each, without "error: ".
class UserError : public std::runtime_error {
 public:
  UserError(std::string place, std::string what);
  explicit UserError(std::vector<Problem> problems);
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// A bug of ours: printed with file and line, exit code 3.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Collects problems so that all of a file's are reported at once.
class Problems {
 public:
  void add(std::string place, std::string what) {
    list_.push_back({std::move(place), std::move(what)});
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  void throw_if_any() const {
    if (!list_.empty()) throw UserError(list_);
  }

 private:
  std::vector<Problem> list_;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace trn3sim::base

// Checks an invariant of ours; stays on in release builds.
#define TRN3SIM_CHECK(condition, message)                                       \
  do {                                                                          \
    if (!(condition)) [[unlikely]]                                              \
      ::trn3sim::base::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
