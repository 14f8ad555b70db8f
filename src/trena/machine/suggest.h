#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trena {

// The candidate that a slip of the keyboard most likely meant, or "" when none is close.
std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace trena
