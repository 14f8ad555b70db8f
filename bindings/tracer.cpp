#include "bindings.h"
#include "objects.h"

// Behind Python.h, which bindings.h includes.
#include <frameobject.h>

#include <string>
#include <unordered_map>

namespace trena::bindings {
namespace {

thread_local Tracer tracer;

// The line that counts instead of the running one while the legacy front end emits a result it held
// back.
thread_local std::string held_file;
thread_local int held_line = 0;

// Files of this package are not the user's: their frames are skipped. Code objects share their file
// name object, so a pointer identifies a file; the reference held here keeps the pointer unique.
struct FileEntry {
  std::string path;
  bool internal;
};

// Operators of PyTorch are called through its own modules; the user's line is the one above them.
bool in_pytorch(const std::string& path) {
  const nb::dict modules = nb::borrow<nb::dict>(nb::module_::import_("sys").attr("modules"));
  if (!modules.contains("torch")) {
    return false;
  }
  const nb::object file = nb::getattr(modules["torch"], "__file__", nb::none());
  if (file.is_none()) {
    return false;
  }
  const std::string init = nb::cast<std::string>(file);
  const std::size_t directory = init.find_last_of("/\\") + 1;
  return path.compare(0, directory, init, 0, directory) == 0;
}

const FileEntry& file_entry(PyObject* filename) {
  static std::unordered_map<PyObject*, FileEntry>* entries =
      new std::unordered_map<PyObject*, FileEntry>();
  const auto found = entries->find(filename);
  if (found != entries->end()) {
    return found->second;
  }
  static const std::string package_directory =
      nb::cast<std::string>(nb::module_::import_("os.path").attr("dirname")(
          nb::module_::import_("trena").attr("__file__")));
  Py_INCREF(filename);
  const char* path = PyUnicode_AsUTF8(filename);
  std::string text = path != nullptr ? path : "?";
  const bool internal =
      text.rfind(package_directory, 0) == 0 || text.rfind("<frozen ", 0) == 0 || in_pytorch(text);
  return entries->emplace(filename, FileEntry{std::move(text), internal}).first->second;
}

// Python finds a frame's line by walking a table from the start of its function, which takes longer
// than an instruction does in a long kernel. The answer for one place in one code object is always
// the same: a small table remembers it, and keeps the code object so that its address stays taken.
int line_of(PyFrameObject* frame, PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030B0000
  struct Entry {
    PyCodeObject* code = nullptr;
    int instruction = 0;
    int line = 0;
  };
  constexpr std::size_t kEntries = 4096;  // a power of two; two places that meet share one in turns
  static Entry* entries = new Entry[kEntries];
  const int instruction = PyFrame_GetLasti(frame);
  const auto where = reinterpret_cast<std::uintptr_t>(code) / alignof(std::max_align_t) +
                     static_cast<std::uintptr_t>(instruction) / sizeof(std::uint16_t);
  Entry& entry = entries[where & (kEntries - 1)];
  if (entry.code != code || entry.instruction != instruction) {
    Py_INCREF(code);
    Py_XDECREF(entry.code);
    entry = {code, instruction, PyFrame_GetLineNumber(frame)};
  }
  return entry.line;
#else
  static_cast<void>(code);
  return PyFrame_GetLineNumber(frame);
#endif
}

}  // namespace

Tracer& current_tracer() {
  if (tracer.program == nullptr) {
    throw Error(
        ErrorKind::kUsage, "nki-outside-kernel",
        {.rule = "NKI instructions and tensors exist only inside a kernel that is being launched",
         .here = "no kernel is running on this thread",
         .fix = "decorate the function with @nki.jit and call it, or use nki.simulate"});
  }
  return tracer;
}

void set_current_tracer(Tracer next) { tracer = next; }

void hold_position(std::string_view file, int line) {
  held_file = file;
  held_line = line;
}

UserLine user_line() {
  if (held_line > 0) {
    return {held_file, held_line};
  }
  UserLine line;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const FileEntry& file = file_entry(code->co_filename);
    if (!file.internal) {
      line = {file.path, line_of(frame, code)};
    }
    Py_DECREF(code);
    if (!file.internal) {
      break;
    }
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  Py_XDECREF(frame);
  return line;
}

void mark_position(Program& program) {
  const UserLine line = user_line();
  if (line.number > 0) {
    program.set_position({program.intern_file(line.file), line.number});
  }
}

const Seat& prepare(Instruction& instruction, const std::optional<std::string>& name) {
  const Tracer& current = current_tracer();
  mark_position(*current.program);
  if (name) {
    instruction.label = *name;
  }
  return current;
}

InstructionHandle last_instruction(const Seat& seat) {
  const auto& instructions = seat.program->instructions(seat.core);
  if (seat.program->left_out(seat.core)) {
    return {seat.program, nullptr, seat.core, 0, 0};
  }
  return {seat.program, instructions.back().get(), seat.core,
          static_cast<std::uint32_t>(instructions.size() - 1), current_iteration()};
}

InstructionHandle emit(std::unique_ptr<Instruction> instruction,
                       const std::optional<std::string>& name) {
  const Seat& seat = prepare(*instruction, name);
  seat.program->append(seat.core, std::move(instruction));
  return last_instruction(seat);
}

}  // namespace trena::bindings
