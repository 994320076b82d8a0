// Filters of lists and mappings.
#include <algorithm>
#include <functional>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {
namespace {

using Args = const Arguments&;

/// Follows a dotted path of attributes and indices, the form of `attribute=` arguments.
Value follow(Interpreter& i, Value value, const Value& path) {
  if (!path.is_string()) return i.item(value, path);
  std::string_view rest = path.text();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    const bool number =
        !part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    value = i.item(value, number ? Value::integer(std::stoll(part)) : Value::string(part));
    if (dot == rest.npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

Value without_case(const Value& value) {
  if (value.is_string()) return Value::string(to_lower(value.text()));
  return value;
}

/// The sort key of a value: one attribute, or several separated by commas.
Value follow_all(Interpreter& i, const Value& value, const Value& paths) {
  if (!paths.is_string() || paths.text().find(',') == std::string::npos)
    return follow(i, value, paths);
  std::vector<Value> parts;
  std::string_view rest = paths.text();
  while (true) {
    const std::size_t comma = rest.find(',');
    parts.push_back(follow(i, value, Value::string(std::string(rest.substr(0, comma)))));
    if (comma == rest.npos) return i.list(std::move(parts));
    rest.remove_prefix(comma + 1);
  }
}

/// The key by which sort, unique, min, max and groupby compare an element.
struct Key {
  const Value* attribute = nullptr;
  bool case_sensitive = false;
  Value operator()(Interpreter& i, const Value& item) const {
    Value key = attribute && !attribute->is_none() ? follow_all(i, item, *attribute) : item;
    i.step(key.weight());
    return case_sensitive ? key : without_case(key);
  }
};

using Keyed = std::vector<std::pair<Value, Value>>;

Keyed keyed(Interpreter& i, const std::vector<Value>& items, const Key& key) {
  Keyed pairs;
  for (const Value& item : items) pairs.emplace_back(key(i, item), item);
  return pairs;
}

void sort_by_key(Interpreter& i, Keyed& pairs, bool reverse) {
  const auto before = [&](const auto& a, const auto& b) {
    i.step(std::min(a.first.weight(), b.first.weight()));
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  };
  std::stable_sort(pairs.begin(), pairs.end(), before);
}

Value length(Interpreter& i, const Value& self, Args) {
  switch (self.kind()) {
    case Kind::kUndefined: return Value::integer(0);
    case Kind::kString:
      i.step(self.weight());
      return Value::integer(static_cast<std::int64_t>(length_of(self.text())));
    case Kind::kList:
    case Kind::kTuple: return Value::integer(static_cast<std::int64_t>(self.items().size()));
    case Kind::kDict: return Value::integer(static_cast<std::int64_t>(self.dict().items.size()));
    default: throw Fault(std::string("object of type '") + type_name(self) + "' has no len()");
  }
}

Value list(Interpreter& i, const Value& self, Args) { return i.list(i.elements(self)); }

Value items(Interpreter& i, const Value& self, Args) {
  if (self.is_undefined()) return i.list({}, Kind::kIterator);
  if (!self.is(Kind::kDict)) throw Fault("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : self.dict().items)
    pairs.push_back(i.list({key, value}, Kind::kTuple));
  return i.list(std::move(pairs), Kind::kIterator);
}

Value first(Interpreter& i, const Value& self, Args) {
  if (self.is(Kind::kIterator)) {
    List& rest = self.iterator();
    return rest.next < rest.items.size() ? rest.items[rest.next++]
                                         : Value::undefined("No first item, sequence was empty.");
  }
  const std::vector<Value> all = i.elements(self);
  return all.empty() ? Value::undefined("No first item, sequence was empty.") : all.front();
}

Value last(Interpreter& i, const Value& self, Args) {
  if (self.is(Kind::kIterator)) throw Fault("'generator' object is not reversible");
  const std::vector<Value> all = i.elements(self);
  return all.empty() ? Value::undefined("No last item, sequence was empty.") : all.back();
}

Value join(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'join'", 0, {"d", "attribute"});
  const std::string separator = a[0] ? i.to_text(*a[0]) : "";
  std::string out;
  bool begun = false;
  for (const Value& item : i.elements(self)) {
    if (std::exchange(begun, true)) out += separator;
    i.bytes(separator.size());
    out += i.to_text(a[1] && !a[1]->is_none() ? follow(i, item, *a[1]) : item);
  }
  return i.text(std::move(out));
}

Value reverse(Interpreter& i, const Value& self, Args) {
  std::vector<Value> all = i.elements(self);
  std::reverse(all.begin(), all.end());
  if (!self.is_string())
    return i.list(std::move(all), self.is(Kind::kIterator) ? Kind::kList : Kind::kIterator);
  std::string out;
  for (const Value& item : all) out += item.text();
  return i.text(std::move(out));
}

Value map(Interpreter& i, const Value& self, Args args) {
  std::vector<Value> out;
  if (args.positional.empty()) {
    const auto a = args.bind("filter 'map'", 1, {"attribute", "default"});
    for (const Value& item : i.elements(self)) {
      Value found = follow(i, item, *a[0]);
      if (found.is_undefined() && a[1] && !a[1]->is_none()) found = *a[1];
      out.push_back(std::move(found));
    }
  } else {
    if (!args.positional[0].is_string()) throw Fault("filter 'map' needs the name of a filter");
    Arguments rest = args;
    rest.positional.erase(rest.positional.begin());
    for (const Value& item : i.elements(self))
      out.push_back(i.filter(args.positional[0].text(), item, rest));
  }
  return i.list(std::move(out), Kind::kIterator);
}

/// Implements select, reject, selectattr and rejectattr.
Value chosen(Interpreter& i, const Value& self, Args args, bool by_attribute, bool wanted) {
  Arguments rest = args;
  Value attribute;
  const auto shift = [&] {
    Value value = std::move(rest.positional.front());
    rest.positional.erase(rest.positional.begin());
    return value;
  };
  if (by_attribute) {
    if (rest.positional.empty()) throw Fault("Missing parameter for attribute name");
    attribute = shift();
  }
  std::string test;
  if (!rest.positional.empty()) {
    const Value name = shift();
    if (!name.is_string()) throw Fault("the name of a test must be a string");
    test = name.text();
  }
  std::vector<Value> out;
  for (const Value& item : i.elements(self)) {
    const Value subject = by_attribute ? follow(i, item, attribute) : item;
    const bool holds = test.empty() ? truth(subject) : i.test(test, subject, rest);
    if (holds == wanted) out.push_back(item);
  }
  return i.list(std::move(out), Kind::kIterator);
}

Value select(Interpreter& i, const Value& self, Args args) {
  return chosen(i, self, args, false, true);
}
Value reject(Interpreter& i, const Value& self, Args args) {
  return chosen(i, self, args, false, false);
}
Value selectattr(Interpreter& i, const Value& self, Args args) {
  return chosen(i, self, args, true, true);
}
Value rejectattr(Interpreter& i, const Value& self, Args args) {
  return chosen(i, self, args, true, false);
}

Value sort(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'sort'", 0, {"reverse", "case_sensitive", "attribute"});
  Keyed pairs = keyed(i, i.elements(self), {a[2], a[1] && truth(*a[1])});
  sort_by_key(i, pairs, a[0] && truth(*a[0]));
  std::vector<Value> out;
  for (auto& pair : pairs) out.push_back(std::move(pair.second));
  return i.list(std::move(out));
}

Value dictsort(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'dictsort'", 0, {"case_sensitive", "by", "reverse"});
  if (!self.is(Kind::kDict)) throw Fault("filter 'dictsort' needs a mapping");
  const bool by_value = a[1] && a[1]->is_string() && a[1]->text() == "value";
  const Value place = Value::integer(by_value);
  const Value pairs_now = items(i, self, {});
  Keyed pairs = keyed(i, i.elements(pairs_now), {&place, a[0] && truth(*a[0])});
  sort_by_key(i, pairs, a[2] && truth(*a[2]));
  std::vector<Value> out;
  for (auto& pair : pairs) out.push_back(std::move(pair.second));
  return i.list(std::move(out));
}

Value unique(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'unique'", 0, {"case_sensitive", "attribute"});
  std::vector<Value> seen, out;
  for (auto& [key, item] : keyed(i, i.elements(self), {a[1], a[0] && truth(*a[0])})) {
    i.step(seen.size());
    if (std::any_of(seen.begin(), seen.end(),
                    [&key = key](const Value& old) { return equal(old, key); }))
      continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return i.list(std::move(out), Kind::kIterator);
}

Value extreme(Interpreter& i, const Value& self, Args args, bool most) {
  const auto a = args.bind("filter 'min' or 'max'", 0, {"case_sensitive", "attribute"});
  const Keyed pairs = keyed(i, i.elements(self), {a[1], a[0] && truth(*a[0])});
  if (pairs.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto* best = &pairs[0];
  for (const auto& pair : pairs)
    if (most ? less(best->first, pair.first) : less(pair.first, best->first)) best = &pair;
  return best->second;
}
Value min(Interpreter& i, const Value& self, Args args) { return extreme(i, self, args, false); }
Value max(Interpreter& i, const Value& self, Args args) { return extreme(i, self, args, true); }

Value sum(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'sum'", 0, {"attribute", "start"});
  Value total = a[1] ? *a[1] : Value::integer(0);
  for (const Value& item : i.elements(self))
    total = i.binary("+", total, a[0] && !a[0]->is_none() ? follow(i, item, *a[0]) : item);
  return total;
}

Value batch(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'batch'", 1, {"linecount", "fill_with"});
  const std::int64_t size = integer_of(*a[0], "linecount");
  std::vector<Value> out, row;
  for (const Value& item : i.elements(self)) {
    if (static_cast<std::int64_t>(row.size()) == size)
      out.push_back(i.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    while (a[1] && !a[1]->is_none() && static_cast<std::int64_t>(row.size()) < size) {
      i.bytes(sizeof(Value));
      row.push_back(*a[1]);
    }
    out.push_back(i.list(std::move(row)));
  }
  return i.list(std::move(out), Kind::kIterator);
}

Value slice(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'slice'", 1, {"slices", "fill_with"});
  const std::int64_t slices = integer_of(*a[0], "slices");
  if (slices <= 0 || slices > 100'000) throw Fault("filter 'slice' takes 1 to 100000 slices");
  const std::vector<Value> all = i.elements(self);
  const std::size_t count = static_cast<std::size_t>(slices), each = all.size() / count,
                    more = all.size() % count;
  std::vector<Value> out;
  auto at = all.begin();
  for (std::size_t n = 0; n < count; ++n) {
    const auto end = at + static_cast<std::ptrdiff_t>(each + (n < more ? 1 : 0));
    std::vector<Value> part(at, end);
    if (a[1] && !a[1]->is_none() && n >= more) part.push_back(*a[1]);
    out.push_back(i.list(std::move(part)));
    at = end;
  }
  return i.list(std::move(out), Kind::kIterator);
}

Value groupby(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'groupby'", 1, {"attribute", "default", "case_sensitive"});
  const Key key{a[0], a[2] && truth(*a[2])};
  Keyed pairs = keyed(i, i.elements(self), key);
  for (auto& pair : pairs)
    if (pair.first.is_undefined() && a[1] && !a[1]->is_none()) pair.first = *a[1];
  sort_by_key(i, pairs, false);
  std::vector<Value> out;
  for (std::size_t begin = 0; begin < pairs.size();) {
    std::vector<Value> group;
    std::size_t end = begin;
    while (end < pairs.size() && equal(pairs[end].first, pairs[begin].first))
      group.push_back(pairs[end++].second);
    Value grouper = follow(i, group[0], *a[0]);
    if (grouper.is_undefined() && a[1]) grouper = *a[1];
    out.push_back(i.list({std::move(grouper), i.list(std::move(group))}, Kind::kTuple));
    begin = end;
  }
  return i.list(std::move(out));
}

Value attribute(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("filter 'attr'", 1, {"name"});
  // Attributes only, no elements: a plain dict has no attributes but its methods.
  const std::string name = i.to_text(*a[0]);
  if (self.is(Kind::kDict) && !find_method(Kind::kDict, name))
    return Value::undefined("'dict object' has no attribute '" + name + "'");
  return i.attribute(self, name);
}

}  // namespace

const std::vector<NamedMethod>& list_filters() {
  static const std::vector<NamedMethod> kFilters = {
      {"length", length},   {"count", length},      {"list", list},
      {"items", items},     {"first", first},       {"last", last},
      {"join", join},       {"reverse", reverse},   {"map", map},
      {"select", select},   {"reject", reject},     {"selectattr", selectattr},
      {"sort", sort},       {"dictsort", dictsort}, {"rejectattr", rejectattr},
      {"unique", unique},   {"min", min},           {"max", max},
      {"sum", sum},         {"batch", batch},       {"slice", slice},
      {"groupby", groupby}, {"attr", attribute},
  };
  return kFilters;
}

}  // namespace mulciber::jinja
