// Tests, which follow `is`.
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace mulciber::jinja {
namespace {

using Args = const Arguments&;

const Value& other(Args args) { return *args.bind("a test", 1, {"other"})[0]; }

std::int64_t rest(Interpreter& i, const Value& self, std::int64_t divisor) {
  const Value value = i.binary("%", self, Value::integer(divisor));
  return value.is(Kind::kFloat) ? (value.real() == 0   ? 0
                                   : value.real() == 1 ? 1
                                                       : 2)
                                : value.integer();
}

/// str.isupper() and str.islower(): at least one letter with a case, and none of the other.
bool all_cased(Interpreter& i, const Value& self, bool upper) {
  const std::string text = i.to_text(self);
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t code = next_code(text, at);
    if (!is_cased(code)) continue;
    if (upper ? !is_upper(code) : !is_lower(code)) return false;
    any = true;
  }
  return any;
}

bool iterable(const Value& v) {
  return v.is_string() || v.is_sequence() || v.is(Kind::kDict) || v.is(Kind::kIterator) ||
         v.is_undefined() || v.is(Kind::kLoop);
}

struct NamedTest {
  std::string_view name;
  Test test;
};

#define MULCIBER_TEST(expression)                         \
  [](Interpreter& i, const Value& v, Args args) -> bool { \
    (void)i, (void)v, (void)args;                         \
    return expression;                                    \
  }

const NamedTest kTests[] = {
    {"defined", MULCIBER_TEST(!v.is_undefined())},
    {"undefined", MULCIBER_TEST(v.is_undefined())},
    {"none", MULCIBER_TEST(v.is_none())},
    {"string", MULCIBER_TEST(v.is_string())},
    {"mapping", MULCIBER_TEST(v.is(Kind::kDict))},
    {"iterable", MULCIBER_TEST(iterable(v))},
    {"sequence",
     MULCIBER_TEST(v.is_string() || v.is_sequence() || v.is(Kind::kDict) || v.is_undefined())},
    {"boolean", MULCIBER_TEST(v.is(Kind::kBool))},
    {"true", MULCIBER_TEST(v.is(Kind::kBool) && v.boolean())},
    {"false", MULCIBER_TEST(v.is(Kind::kBool) && !v.boolean())},
    {"integer", MULCIBER_TEST(v.is(Kind::kInt))},
    {"float", MULCIBER_TEST(v.is(Kind::kFloat))},
    {"number", MULCIBER_TEST(v.is_number())},
    {"callable", MULCIBER_TEST(v.is(Kind::kFunction) || v.is_undefined() || v.is(Kind::kLoop))},
    {"odd", MULCIBER_TEST(rest(i, v, 2) == 1)},
    {"even", MULCIBER_TEST(rest(i, v, 2) == 0)},
    {"divisibleby", MULCIBER_TEST(rest(i, v, integer_of(other(args), "divisor")) == 0)},
    {"upper", MULCIBER_TEST(all_cased(i, v, true))},
    {"lower", MULCIBER_TEST(all_cased(i, v, false))},
    {"in", MULCIBER_TEST(i.contains(other(args), v))},
    {"sameas", MULCIBER_TEST(v.same_as(other(args)))},
    {"filter", MULCIBER_TEST(v.is_string() && find_filter(v.text()) != nullptr)},
    {"test", MULCIBER_TEST(v.is_string() && find_test(v.text()) != nullptr)},
    {"escaped", MULCIBER_TEST(false)},
    {"eq", MULCIBER_TEST(equal(v, other(args)))},
    {"equalto", MULCIBER_TEST(equal(v, other(args)))},
    {"==", MULCIBER_TEST(equal(v, other(args)))},
    {"ne", MULCIBER_TEST(!equal(v, other(args)))},
    {"!=", MULCIBER_TEST(!equal(v, other(args)))},
    {"lt", MULCIBER_TEST(less(v, other(args)))},
    {"lessthan", MULCIBER_TEST(less(v, other(args)))},
    {"<", MULCIBER_TEST(less(v, other(args)))},
    {"gt", MULCIBER_TEST(less(other(args), v))},
    {"greaterthan", MULCIBER_TEST(less(other(args), v))},
    {">", MULCIBER_TEST(less(other(args), v))},
    {"le", MULCIBER_TEST(less(v, other(args)) || equal(v, other(args)))},
    {"<=", MULCIBER_TEST(less(v, other(args)) || equal(v, other(args)))},
    {"ge", MULCIBER_TEST(less(other(args), v) || equal(v, other(args)))},
    {">=", MULCIBER_TEST(less(other(args), v) || equal(v, other(args)))},
};

#undef MULCIBER_TEST

}  // namespace

Test find_test(std::string_view name) {
  const auto found = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const NamedTest& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found->test;
}

}  // namespace mulciber::jinja
