// Every complaint of Trena: a stable id, the rule, the actual value, the limit and the user's line.
//
// C++ throws trena::Error; the Python front end turns it into the exception class of its kind.
// docs/errors.md explains each id (`trena explain ID`); tests/tidy checks that none is missing
// there.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace trena {

enum class ErrorKind {
  kUsage,        // the call itself is malformed: wrong argument, unknown name
  kIllegal,      // the machine refuses the instruction: dtype, shape, engine, memory
  kBounds,       // a view or an index leaves its tensor
  kCapacity,     // SBUF, PSUM or HBM cannot hold it
  kUnwritten,    // bytes are read that nobody wrote
  kHazard,       // the order of the program does not cover an overlap of bytes
  kDeadlock,     // a rendezvous that nobody joins
  kMachine,      // a hardware file is wrong
  kNotModelled,  // the hardware does it, Trena does not (yet)
  kInternal,     // a broken promise of Trena itself
};

// The line of the user's program that caused an instruction, a tensor or an error.
struct SourceLine {
  std::string file;
  int line = 0;
};

struct ErrorText {
  std::string rule = {};    // the rule, in one sentence
  std::string here = {};    // what this call did: the actual value
  std::string limit = {};   // what would have been allowed; empty when the rule says it
  std::string device = {};  // what the device would do; empty when it would refuse
  std::string fix = {};     // the way out; empty when it is obvious
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string_view id, ErrorText text);

  ErrorKind kind() const { return kind_; }
  const std::string& id() const { return id_; }
  const ErrorText& text() const { return text_; }
  const SourceLine& where() const { return where_; }
  bool has_where() const { return where_.line > 0; }
  void set_where(SourceLine where) { where_ = std::move(where); }

 private:
  ErrorKind kind_;
  std::string id_;
  ErrorText text_;
  SourceLine where_;
};

// "not modelled: <what>": the honest answer where Trena has no model yet.
[[noreturn]] void throw_not_modelled(std::string_view what);

}  // namespace trena
