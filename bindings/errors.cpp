// trena::Error becomes the Python exception of its kind: trena.errors.<Kind>, with the same fields.
#include <typeinfo>

#include "bindings.h"
#include "trena/error.h"

namespace trena::bindings {

void warn(const char* text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text, 1) != 0) {
    throw nb::python_error();
  }
}

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "UsageError";
    case ErrorKind::kIllegal:
      return "IllegalInstruction";
    case ErrorKind::kBounds:
      return "OutOfBounds";
    case ErrorKind::kCapacity:
      return "CapacityError";
    case ErrorKind::kUnwritten:
      return "UnwrittenRead";
    case ErrorKind::kHazard:
      return "Hazard";
    case ErrorKind::kDeadlock:
      return "Deadlock";
    case ErrorKind::kMachine:
      return "MachineError";
    case ErrorKind::kNotModelled:
      return "NotModelled";
    case ErrorKind::kInternal:
      return "InternalError";
  }
  return "Error";
}

void raise(const Error& error) {
  nb::object type = nb::module_::import_("trena.errors").attr(class_name(error.kind()));
  const ErrorText& text = error.text();
  SourceLine where = error.where();
  if (!error.has_where()) {
    const UserLine line = user_line();
    where = {std::string(line.file), line.number};
  }
  nb::object exception = type("id"_a = error.id(), "rule"_a = text.rule, "here"_a = text.here,
                              "limit"_a = text.limit, "device"_a = text.device, "fix"_a = text.fix,
                              "file"_a = where.file, "line"_a = where.line);
  PyErr_SetObject(type.ptr(), exception.ptr());
}

namespace {

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    raise(error);
  } catch (const std::bad_cast&) {  // of an object inside a sequence, mostly
    raise(Error(ErrorKind::kUsage, "argument-type",
                {.rule = "an argument has a type that the function takes, and so have its parts",
                 .here = "an object of another type"}));
  }
}

}  // namespace

nb::list finding_list(const std::vector<Finding>& findings) {
  const auto line = [](const SourceLine& where) -> nb::object {
    if (where.line == 0) {
      return nb::none();
    }
    nb::dict place;
    place["file"] = where.file;
    place["line"] = where.line;
    return place;
  };
  nb::list list;
  for (const Finding& finding : findings) {
    nb::dict entry;
    entry["id"] = finding.id;
    entry["kind"] = class_name(finding.kind);
    entry["severity"] = finding.severity == Severity::kError ? "error" : "warning";
    entry["rule"] = finding.text.rule;
    entry["here"] = finding.text.here;
    entry["limit"] = finding.text.limit;
    entry["device"] = finding.text.device;
    entry["fix"] = finding.text.fix;
    entry["at"] = line(finding.where);
    entry["other"] = line(finding.other);
    entry["core"] = finding.core;
    entry["count"] = finding.count;
    list.append(entry);
  }
  return list;
}

void bind_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace trena::bindings
