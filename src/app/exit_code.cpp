// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "app/exit_code.hpp"

#include <cstdio>
#include <exception>
#include <new>

#include "trn3sim/base/error.hpp"

#include <fmt/format.h>

namespace trn3sim::app {
namespace {

// Text from files must not drive the terminal: control characters are shown as \xNN.
std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  return shown;
}

// stderr may be closed; there is nobody left to tell.
void say(const std::string& text) {
  (void)std::fputs(printable(text).c_str(), stderr);
}

int bug(const char* what) {
  say(fmt::format("bug in trn3sim: {}\nPlease report this with the command that led here.\n",
                  what));
  return kBug;
}

}  // namespace

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const base::UserError& e) {
    for (const base::Problem& problem : e.problems())
      say(fmt::format("error: {}\n", problem.text()));
    return kUserError;
  } catch (const std::bad_alloc&) {
    say("error: out of memory\n");
    return kUserError;
  } catch (const std::exception& e) {
    return bug(e.what());
  } catch (...) {
    return bug("unknown exception");
  }
}

}  // namespace trn3sim::app
