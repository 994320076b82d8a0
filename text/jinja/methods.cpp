// Methods of lists, dicts and loops, with Python's behaviour; methods that change their object are
// missing.
#include <algorithm>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"

namespace mulciber::jinja {
namespace {

using Args = const Arguments&;

Value keys(Interpreter& i, const Value& self, Args) { return i.list(i.elements(self)); }
Value values(Interpreter& i, const Value& self, Args) {
  std::vector<Value> all;
  for (const auto& [key, value] : self.dict().items) all.push_back(value);
  return i.list(std::move(all));
}
Value items(Interpreter& i, const Value& self, Args) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict().items)
    pairs.push_back(i.list({key, value}, Kind::kTuple));
  return i.list(std::move(pairs));
}
Value get(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("get()", 1, {"key", "default"});
  i.step(1 + self.dict().items.size() / 8);
  const Value* value = self.dict().find(*a[0]);
  return value ? *value : a[1] ? *a[1] : Value::none();
}
Value copy(Interpreter&, const Value& self, Args) { return self; }

Value list_index(Interpreter& i, const Value& self, Args args) {
  const Value& wanted = *args.bind("index()", 1, {"value"})[0];
  i.step(self.weight());
  for (std::size_t n = 0; n < self.items().size(); ++n)
    if (equal(self.items()[n], wanted)) return Value::integer(static_cast<std::int64_t>(n));
  throw Fault("the value is not in the list");
}
Value list_count(Interpreter& i, const Value& self, Args args) {
  const Value& wanted = *args.bind("count()", 1, {"value"})[0];
  i.step(self.weight());
  return Value::integer(std::count_if(self.items().begin(), self.items().end(),
                                      [&](const Value& each) { return equal(each, wanted); }));
}

Value cycle(Interpreter&, const Value& self, Args args) {
  if (args.positional.empty()) throw Fault("no items for cycling given");
  return args.positional[self.loop().index % args.positional.size()];
}
Value changed(Interpreter& i, const Value& self, Args args) {
  Loop& loop = self.loop();
  i.step(args.positional.size());
  const auto same = [&] {
    const auto& old = *loop.last_changed;
    return std::equal(old.begin(), old.end(), args.positional.begin(), args.positional.end(),
                      equal);
  };
  if (loop.last_changed && same()) return Value::boolean(false);
  loop.last_changed = args.positional;
  return Value::boolean(true);
}

const std::vector<NamedMethod>& of_kind(Kind kind) {
  static const std::vector<NamedMethod> kList = {
      {"index", list_index}, {"count", list_count}, {"copy", copy}};
  static const std::vector<NamedMethod> kDict = {
      {"keys", keys}, {"values", values}, {"items", items}, {"get", get}, {"copy", copy}};
  static const std::vector<NamedMethod> kLoop = {{"cycle", cycle}, {"changed", changed}};
  static const std::vector<NamedMethod> kNone;
  switch (kind) {
    case Kind::kString: return text_methods();
    case Kind::kList:
    case Kind::kTuple: return kList;
    case Kind::kDict: return kDict;
    case Kind::kLoop: return kLoop;
    default: return kNone;
  }
}

}  // namespace

Method find_method(Kind kind, std::string_view name) { return find_in(of_kind(kind), name); }

}  // namespace mulciber::jinja
