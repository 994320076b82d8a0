// Methods of strings, with Python's behaviour.
#include <algorithm>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {
namespace {

using Args = const Arguments&;

const std::string& text_of(const Value& value, std::string_view what) {
  if (!value.is_string())
    throw Fault(std::string(what) + " must be a string, not " + type_name(value));
  return value.text();
}

Value stripped(Interpreter& i, const Value& self, Args args, bool left, bool right) {
  const auto a = args.bind("strip()", 0, {"chars"});
  const std::string* chars =
      a[0] && !a[0]->is_none() ? &text_of(*a[0], "strip()'s argument") : nullptr;
  i.step(self.weight() * (chars ? 1 + chars->size() : 1));
  return i.text(std::string(strip(self.text(), chars, left, right)));
}
Value strip_both(Interpreter& i, const Value& self, Args args) {
  return stripped(i, self, args, true, true);
}
Value strip_left(Interpreter& i, const Value& self, Args args) {
  return stripped(i, self, args, true, false);
}
Value strip_right(Interpreter& i, const Value& self, Args args) {
  return stripped(i, self, args, false, true);
}

/// Splits at white space, with at most `most` cuts (below 0: all) from the left or the right.
std::vector<std::string> words(std::string_view rest, std::int64_t most, bool from_right) {
  std::vector<std::string> parts;
  rest = from_right ? trim_right(rest) : trim_left(rest);
  while (!rest.empty()) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      parts.emplace_back(from_right ? trim_right(rest) : rest);
      break;
    }
    std::size_t cut = rest.size(), at = 0, after_last_space = 0;
    while (at < rest.size()) {
      const std::size_t begin = at;
      if (!is_space(next_code(rest, at))) continue;
      if (!from_right) {
        cut = begin;
        break;
      }
      after_last_space = at;
    }
    if (from_right) {
      parts.emplace_back(rest.substr(after_last_space));
      rest = trim_right(rest.substr(0, after_last_space));
    } else {
      parts.emplace_back(rest.substr(0, cut));
      rest = trim_left(rest.substr(cut));
    }
  }
  return parts;
}

Value cut(Interpreter& i, const Value& self, Args args, bool from_right) {
  const auto a = args.bind("split()", 0, {"sep", "maxsplit"});
  const std::int64_t most = a[1] ? integer_of(*a[1], "maxsplit") : -1;
  std::vector<std::string> parts;
  i.step(self.weight());
  if (!a[0] || a[0]->is_none()) {
    // From the right, every cut searches the rest of the text.
    if (from_right && self.text().size() > 100'000)
      throw Fault("rsplit() without a separator takes at most 100000 bytes");
    parts = words(self.text(), most, from_right);
    if (from_right) i.step(parts.size() * self.weight());
  } else {
    const std::string& separator = text_of(*a[0], "split()'s separator");
    if (separator.empty()) throw Fault("empty separator");
    std::string_view rest = self.text();
    while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
      const std::size_t at = from_right ? rest.rfind(separator) : rest.find(separator);
      if (at == rest.npos) break;
      i.step();
      parts.emplace_back(from_right ? rest.substr(at + separator.size()) : rest.substr(0, at));
      rest = from_right ? rest.substr(0, at) : rest.substr(at + separator.size());
    }
    parts.emplace_back(rest);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  std::vector<Value> items;
  for (std::string& part : parts) items.push_back(i.text(std::move(part)));
  return i.list(std::move(items));
}
Value split(Interpreter& i, const Value& self, Args args) { return cut(i, self, args, false); }
Value rsplit(Interpreter& i, const Value& self, Args args) { return cut(i, self, args, true); }

Value splitlines(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("splitlines()", 0, {"keepends"});
  std::vector<Value> items;
  for (const std::string_view line : split_lines(self.text(), a[0] && truth(*a[0])))
    items.push_back(i.text(std::string(line)));
  return i.list(std::move(items));
}

Value partitioned(Interpreter& i, const Value& self, Args args, bool last) {
  const std::string& separator =
      text_of(*args.bind("partition()", 1, {"sep"})[0], "partition()'s separator");
  if (separator.empty()) throw Fault("empty separator");
  const std::string& text = self.text();
  i.step(self.weight());
  const std::size_t at = last ? text.rfind(separator) : text.find(separator);
  std::vector<Value> parts = {i.text(text), i.text(""), i.text("")};
  if (at == text.npos && last)
    std::swap(parts[0], parts[2]);
  else if (at != text.npos)
    parts = {i.text(text.substr(0, at)), i.text(separator),
             i.text(text.substr(at + separator.size()))};
  return i.list(std::move(parts), Kind::kTuple);
}
Value partition(Interpreter& i, const Value& self, Args args) {
  return partitioned(i, self, args, false);
}
Value rpartition(Interpreter& i, const Value& self, Args args) {
  return partitioned(i, self, args, true);
}

/// Implements startswith and endswith: one string or a tuple of them, in a part of the text.
Value edged(Interpreter& i, const Value& self, Args args, bool front) {
  const auto a = args.bind("startswith() or endswith()", 1, {"prefix", "start", "end"});
  std::string_view text = self.text();
  if (a[1] || a[2]) {
    const auto given = [](const Value* value) {
      return value && !value->is_none() ? value : nullptr;
    };
    i.step(self.weight() * 16);
    const std::vector<std::size_t> indices =
        slice_indices(length_of(text), given(a[1]), given(a[2]), nullptr);
    if (indices.empty())
      text = {};
    else
      text = text.substr(0, offset_of(text, indices.back() + 1))
                 .substr(offset_of(text, indices.front()));
  }
  const std::vector<Value> wanted =
      a[0]->is(Kind::kTuple) ? a[0]->items() : std::vector<Value>{*a[0]};
  return Value::boolean(std::any_of(wanted.begin(), wanted.end(), [&](const Value& each) {
    const std::string& edge = text_of(each, "startswith()'s or endswith()'s argument");
    i.step(each.weight());
    return front ? text.starts_with(edge) : text.ends_with(edge);
  }));
}
Value startswith(Interpreter& i, const Value& self, Args args) {
  return edged(i, self, args, true);
}
Value endswith(Interpreter& i, const Value& self, Args args) { return edged(i, self, args, false); }

Value removeprefix(Interpreter& i, const Value& self, Args args) {
  const std::string& prefix = text_of(*args.bind("removeprefix()", 1, {"prefix"})[0], "the prefix");
  return self.text().starts_with(prefix) ? i.text(self.text().substr(prefix.size())) : self;
}
Value removesuffix(Interpreter& i, const Value& self, Args args) {
  const std::string& suffix = text_of(*args.bind("removesuffix()", 1, {"suffix"})[0], "the suffix");
  return self.text().ends_with(suffix)
             ? i.text(self.text().substr(0, self.text().size() - suffix.size()))
             : self;
}

Value replace(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("replace()", 2, {"old", "new", "count"});
  return replaced(i, self.text(), text_of(*a[0], "replace()'s first argument"),
                  text_of(*a[1], "replace()'s second argument"),
                  a[2] ? integer_of(*a[2], "count") : -1);
}

Value upper(Interpreter& i, const Value& self, Args) { return i.text(to_upper(self.text())); }
Value lower(Interpreter& i, const Value& self, Args) { return i.text(to_lower(self.text())); }
Value title(Interpreter& i, const Value& self, Args) { return i.text(to_title(self.text())); }
Value capitalize(Interpreter& i, const Value& self, Args) {
  return i.text(to_capital(self.text()));
}
Value swapcase(Interpreter& i, const Value& self, Args) {
  std::string out;
  for (std::size_t at = 0; at < self.text().size();) {
    const std::size_t begin = at;
    const bool is_up = is_upper(next_code(self.text(), at));
    const std::string letter = self.text().substr(begin, at - begin);
    out += is_up ? to_lower(letter) : to_upper(letter);
  }
  return i.text(std::move(out));
}

template <typename Holds>
Value each_is(Interpreter& i, const Value& self, Holds&& holds) {
  i.step(self.weight());
  for (std::size_t at = 0; at < self.text().size();)
    if (!holds(next_code(self.text(), at))) return Value::boolean(false);
  return Value::boolean(!self.text().empty());
}
Value isdigit(Interpreter& i, const Value& self, Args) { return each_is(i, self, is_digit); }
Value isalpha(Interpreter& i, const Value& self, Args) { return each_is(i, self, is_letter); }
Value isspace(Interpreter& i, const Value& self, Args) { return each_is(i, self, is_space); }
Value isalnum(Interpreter& i, const Value& self, Args) {
  return each_is(i, self, [](std::uint32_t code) { return is_letter(code) || is_digit(code); });
}
Value isupper(Interpreter& i, const Value& self, Args) {
  return Value::boolean(i.test("upper", self, {}));
}
Value islower(Interpreter& i, const Value& self, Args) {
  return Value::boolean(i.test("lower", self, {}));
}

Value found(Interpreter& i, const Value& self, Args args, bool last, bool must) {
  const std::string& wanted = text_of(*args.bind("find()", 1, {"sub"})[0], "find()'s argument");
  i.step(self.weight());
  const std::size_t at = last ? self.text().rfind(wanted) : self.text().find(wanted);
  if (at == std::string::npos && must) throw Fault("substring not found");
  return Value::integer(
      at == std::string::npos
          ? -1
          : static_cast<std::int64_t>(length_of(std::string_view(self.text()).substr(0, at))));
}
Value find(Interpreter& i, const Value& self, Args args) {
  return found(i, self, args, false, false);
}
Value rfind(Interpreter& i, const Value& self, Args args) {
  return found(i, self, args, true, false);
}
Value index(Interpreter& i, const Value& self, Args args) {
  return found(i, self, args, false, true);
}

Value count(Interpreter& i, const Value& self, Args args) {
  const std::string& wanted = text_of(*args.bind("count()", 1, {"sub"})[0], "count()'s argument");
  i.step(self.weight());
  if (wanted.empty()) return Value::integer(static_cast<std::int64_t>(length_of(self.text()) + 1));
  std::int64_t times = 0;
  for (std::size_t at = self.text().find(wanted); at != std::string::npos;
       at = self.text().find(wanted, at + wanted.size()))
    ++times;
  return Value::integer(times);
}

Value join(Interpreter& i, const Value& self, Args args) {
  const std::vector<Value> items = i.elements(*args.bind("join()", 1, {"iterable"})[0]);
  std::string out;
  for (std::size_t n = 0; n < items.size(); ++n) {
    i.bytes((n > 0 ? self.text().size() : 0) +
            text_of(items[n], "an element of join()'s argument").size());
    if (n > 0) out += self.text();
    out += items[n].text();
  }
  return i.text(std::move(out));
}

Value padded(Interpreter& i, const Value& self, Args args, bool before) {
  const auto a = args.bind("ljust() or rjust()", 1, {"width", "fillchar"});
  const std::string fill = a[1] ? text_of(*a[1], "fillchar") : " ";
  if (length_of(fill) != 1) throw Fault("The fill character must be exactly one character long");
  const std::string margin = padding(
      i, integer_of(*a[0], "width") - static_cast<std::int64_t>(length_of(self.text())), fill);
  return i.text(before ? margin + self.text() : self.text() + margin);
}
Value ljust(Interpreter& i, const Value& self, Args args) { return padded(i, self, args, false); }
Value rjust(Interpreter& i, const Value& self, Args args) { return padded(i, self, args, true); }
Value center(Interpreter& i, const Value& self, Args args) {
  const auto a = args.bind("center()", 1, {"width", "fillchar"});
  return centered(i, self.text(), integer_of(*a[0], "width"),
                  a[1] ? text_of(*a[1], "fillchar") : " ");
}
Value zfill(Interpreter& i, const Value& self, Args args) {
  const std::int64_t width = integer_of(*args.bind("zfill()", 1, {"width"})[0], "width");
  const std::string zeros =
      padding(i, width - static_cast<std::int64_t>(length_of(self.text())), "0");
  const bool sign = self.text().starts_with('-') || self.text().starts_with('+');
  return i.text(self.text().substr(0, sign) + zeros + self.text().substr(sign));
}

/// Implements format with fields in braces: in order, by number or by name, without format
/// specifications.
Value format(Interpreter& i, const Value& self, Args args) {
  const std::string& pattern = self.text();
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at + 1 < pattern.size() && pattern[at + 1] == c) {
      out += pattern[++at];
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    if (c == '}' || end == pattern.npos) throw Fault("single brace in format string");
    const std::string field = pattern.substr(at + 1, end - at - 1);
    at = end;
    if (field.find_first_of(":!.[{") != field.npos)
      throw Fault("only plain fields are supported in format strings");
    const bool number =
        !field.empty() && field.size() < 4 &&
        std::all_of(field.begin(), field.end(), [](char d) { return d >= '0' && d <= '9'; });
    if (field.empty() || number) {
      const std::size_t place = field.empty() ? next++ : std::stoul(field);
      if (place >= args.positional.size())
        throw Fault("Replacement index " + std::to_string(place) + " out of range");
      out += i.to_text(args.positional[place]);
    } else {
      const auto named = std::find_if(args.named.begin(), args.named.end(),
                                      [&](const auto& pair) { return pair.first == field; });
      if (named == args.named.end()) throw Fault("there is no '" + field + "' to format");
      out += i.to_text(named->second);
    }
  }
  return i.text(std::move(out));
}

}  // namespace

const std::vector<NamedMethod>& text_methods() {
  static const std::vector<NamedMethod> kMethods = {
      {"strip", strip_both},
      {"lstrip", strip_left},
      {"rstrip", strip_right},
      {"split", split},
      {"rsplit", rsplit},
      {"splitlines", splitlines},
      {"partition", partition},
      {"rpartition", rpartition},
      {"startswith", startswith},
      {"endswith", endswith},
      {"replace", replace},
      {"removeprefix", removeprefix},
      {"removesuffix", removesuffix},
      {"upper", upper},
      {"lower", lower},
      {"title", title},
      {"capitalize", capitalize},
      {"swapcase", swapcase},
      {"isdigit", isdigit},
      {"isalpha", isalpha},
      {"isspace", isspace},
      {"isalnum", isalnum},
      {"isupper", isupper},
      {"islower", islower},
      {"find", find},
      {"rfind", rfind},
      {"index", index},
      {"count", count},
      {"join", join},
      {"ljust", ljust},
      {"rjust", rjust},
      {"center", center},
      {"zfill", zfill},
      {"format", format},
      {"casefold", lower},
      {"isnumeric", isdigit},
      {"isdecimal", isdigit},
  };
  return kMethods;
}

}  // namespace mulciber::jinja
