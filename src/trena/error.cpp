#include "trena/error.h"

#include <fmt/format.h>

namespace trena {
namespace {

std::string compose(std::string_view id, const ErrorText& text) {
  std::string message = fmt::format("{}: {}", id, text.rule);
  if (!text.here.empty()) {
    message += fmt::format("\n  here     {}", text.here);
  }
  if (!text.limit.empty()) {
    message += fmt::format("\n  limit    {}", text.limit);
  }
  if (!text.device.empty()) {
    message += fmt::format("\n  device   {}", text.device);
  }
  if (!text.fix.empty()) {
    message += fmt::format("\n  fix      {}", text.fix);
  }
  return message;
}

}  // namespace

Error::Error(ErrorKind kind, std::string_view id, ErrorText text)
    : std::runtime_error(compose(id, text)), kind_(kind), id_(id), text_(std::move(text)) {}

void throw_not_modelled(std::string_view what) {
  throw Error(
      ErrorKind::kNotModelled, "not-modelled",
      {.rule = "Trena does not model this yet", .here = fmt::format("not modelled: {}", what)});
}

}  // namespace trena
