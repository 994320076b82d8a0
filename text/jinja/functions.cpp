// Global functions of every template: Jinja's and those that transformers adds.
#include <algorithm>
#include <ctime>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {

std::tm Interpreter::now() const {
  if (now_) return *now_;
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

namespace {

using Args = const Arguments&;

Value range(Interpreter& i, const Value&, Args args) {
  const auto a = args.bind("range()", 1, {"start", "stop", "step"});
  std::int64_t start = a[1] ? integer_of(*a[0], "start") : 0;
  const std::int64_t stop = integer_of(a[1] ? *a[1] : *a[0], "stop"),
                     by = a[2] ? integer_of(*a[2], "step") : 1;
  if (by == 0) throw Fault("range() arg 3 must not be zero");
  constexpr std::size_t kMost = 100'000;  // the limit of Jinja's sandbox
  std::vector<Value> numbers;
  while (by > 0 ? start < stop : start > stop) {
    if (numbers.size() == kMost)
      throw Fault("Range too big. The sandbox blocks ranges larger than 100000.");
    numbers.push_back(Value::integer(start));
    if (__builtin_add_overflow(start, by, &start)) break;
  }
  return i.list(std::move(numbers));
}

Dict named_values(Interpreter& i, Args args, std::string_view what) {
  Dict values;
  if (args.positional.size() > 1)
    throw Fault(std::string(what) + " takes at most one argument without a name");
  if (!args.positional.empty()) {
    const Value& first = args.positional[0];
    if (first.is(Kind::kDict)) {
      values = first.dict();
    } else {
      for (const Value& pair : i.elements(first)) {
        std::vector<Value> both = i.elements(pair);
        if (both.size() != 2) throw Fault(std::string(what) + " needs pairs of keys and values");
        values.set(std::move(both[0]), std::move(both[1]));
        i.step(values.items.size());
      }
    }
  }
  for (const auto& [name, value] : args.named) values.set(Value::string(name), value);
  i.step(values.items.size());
  return values;
}

Value dict(Interpreter& i, const Value&, Args args) {
  return Value::dict(named_values(i, args, "dict()"));
}

Value name_space(Interpreter& i, const Value&, Args args) {
  Dict values = named_values(i, args, "namespace()");
  for (const auto& [name, value] : values.items)
    if (value.is_transient())
      throw Fault("a namespace cannot hold a function, a loop or a namespace");
  return Value::name_space(std::move(values));
}

Value raise_exception(Interpreter& i, const Value&, Args args) {
  const Value& message = *args.bind("raise_exception()", 1, {"message"})[0];
  throw Fault("the template refuses this conversation: " + i.to_text(message));
}

Value strftime_now(Interpreter& i, const Value&, Args args) {
  const Value& format = *args.bind("strftime_now()", 1, {"format"})[0];
  if (!format.is_string()) throw Fault("strftime_now() needs a format string");
  if (format.text().empty()) return i.text("");
  if (format.text().size() > 256) throw Fault("the date's format is too long");
  const std::tm now = i.now();
  char buffer[2048];
  const std::size_t size = std::strftime(buffer, sizeof buffer, format.text().c_str(), &now);
  if (size == 0) throw Fault("the date cannot be formatted");
  return i.text(valid_utf8(std::string_view(buffer, size)));
}

}  // namespace

Method find_global(std::string_view name) {
  static const std::vector<NamedMethod> kFunctions = {
      {"range", range},
      {"dict", dict},
      {"namespace", name_space},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  return find_in(kFunctions, name);
}

}  // namespace mulciber::jinja
