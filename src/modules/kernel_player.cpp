// SPDX-FileCopyrightText: The trn3sim authors
// SPDX-License-Identifier: Apache-2.0
#include "trn3sim/modules/kernel_player.hpp"

#include <algorithm>

#include "trn3sim/base/error.hpp"

namespace trn3sim::modules {

void KernelPlayer::play(const KernelWork& work, base::Time hidden) {
  TRN3SIM_CHECK(ahead_ == nullptr || ahead_ == work.profile, "another kernel was loaded ahead");
  parts_ = shares_.size();
  std::vector<base::Time> done(shares_.size(), hidden);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (ahead_ != nullptr) {
      done[i] += models::ShareModel::saved(
          ahead_->ahead, loads_[i].running ? shares_[i]->withdraw(loads_[i].handle)
                                           : models::ShareModel::kWholeKernel);
      loads_[i].running = false;
    }
  }
  ahead_ = nullptr;
  limiter_.enter(shares_.front()->now(), *work.profile,
                 *std::min_element(done.begin(), done.end()));
  throttled_ = {limiter_.cost(), limiter_.passes()};
  for (std::size_t i = 0; i < shares_.size(); ++i)
    shares_[i]->start_kernel(*work.profile,
                             std::min(done[i] + limiter_.saved(), work.profile->duration),
                             {group_, work.weights}, *this);
}

void KernelPlayer::kernel_part_ended() {
  if (--parts_ > 0) return;
  limiter_.leave(shares_.front()->now());
  end_.kernel_ended();
}

// Between the pieces of one op, everything before the first compute overlaps: see RankRunner.
void KernelPlayer::prefetch(const KernelWork& next, models::Ahead ahead) {
  if (ahead != models::Ahead::Weights || next.loads == nullptr) return;
  ahead_ = next.profile;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    loads_[i].handle = next.deferred ? shares_[i]->start_deferred(*next.loads, group_, loads_[i])
                                     : shares_[i]->start_kernel(*next.loads, base::Time(0),
                                                                {group_, {}}, loads_[i]);
    loads_[i].running = true;
  }
}

void KernelPlayer::fingerprint(base::StateHash& hash) const {
  hash.add(ahead_ == nullptr ? 0 : 1);
  for (const Loads& l : loads_) hash.add(l.running ? l.handle : -1);
  limiter_.fingerprint(hash, shares_.front()->now());
}

}  // namespace trn3sim::modules
