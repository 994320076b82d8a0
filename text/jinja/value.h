// Values of the template language: Python's values, as far as templates can see them.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber::jinja {

/// An error while a template is read or rendered; a caller that knows the line turns it into a
/// ModelError.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Bounds of one rendering, because templates come from untrusted files.
struct Limits {
  std::size_t steps = 20'000'000;  // expressions and statements, comparisons, elements
  std::size_t bytes = std::size_t{256}
                      << 20;  // strings and lists made on the way, including the text
  int depth = 300;            // nested evaluation, including macros
};

enum class Kind {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kIterator,  // a Python iterator, consumed once: from map, select, items ...
  kNamespace,
  kFunction,
  kLoop,
};

class Value;
struct Dict;
struct Function;
struct Loop;

/// Elements of a list or tuple, or the rest of an iterator.
struct List {
  std::vector<Value> items;
  std::size_t next = 0;  // for an iterator: the next element
};

/// Cheap to copy; strings, lists and dicts never change once they are made. Only iterators and
/// namespaces do.
class Value {
 public:
  Value() = default;  // undefined
  static Value undefined(std::string why);
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value real(double value);
  static Value string(std::string text);
  /// kind: kList, kTuple or kIterator. Throws Fault where lists nest deeper than a hundred levels,
  /// or hold more than a few million values: repeated elements count each time.
  static Value list(std::vector<Value> items, Kind kind = Kind::kList);
  static Value dict(Dict items);
  static Value name_space(Dict items);
  static Value function(Function function);
  static Value loop(Loop* loop);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }
  /// Whether the value dies with the scope that made it, or may change: a function, a loop, a
  /// namespace, or a value that contains one.
  bool is_transient() const { return transient_; }

  /// Cost of printing or comparing the value: its elements, recursively, and text by 16 bytes.
  std::size_t weight() const { return is_string() ? 1 + text().size() / 16 : weight_; }

  // Each of these needs a value of the matching kind.
  bool boolean() const { return integer_ != 0; }
  std::int64_t integer() const { return integer_; }  // for a bool 0 or 1
  double real() const { return kind_ == Kind::kFloat ? real_ : static_cast<double>(integer_); }
  const std::string& text() const { return *static_cast<const std::string*>(object_.get()); }
  const std::vector<Value>& items() const { return static_cast<const List*>(object_.get())->items; }
  List& iterator() const { return *static_cast<List*>(object_.get()); }
  Dict& dict() const { return *static_cast<Dict*>(object_.get()); }
  const Function& function() const { return *static_cast<const Function*>(object_.get()); }
  Loop& loop() const { return *static_cast<Loop*>(object_.get()); }
  /// The reason why an undefined value is undefined.
  std::string reason() const;
  /// Whether both are the same object, like Python's `is`.
  bool same_as(const Value& other) const;

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  void count(const Value& element);

  Kind kind_ = Kind::kUndefined;
  bool transient_ = false;
  std::uint16_t nesting_ = 0;
  std::uint32_t weight_ = 1;
  union {
    std::int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<void> object_;
};

/// A dict in the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  /// Throws Fault for a key that Python could not hash.
  void set(Value key, Value value);
};

/// Python's name of a type in its messages: "str", "list".
const char* type_name(const Value& value);
bool truth(const Value& value);
/// Python's ==: numbers across kinds, otherwise only within one.
bool equal(const Value& a, const Value& b);
/// Python's <. Throws Fault for kinds that have no order.
bool less(const Value& a, const Value& b);
/// str(), the form that a template prints. Throws Fault for functions and the like.
std::string to_text(const Value& value);
/// repr(), the form inside a printed list.
std::string to_repr(const Value& value);
/// repr() of a float: the shortest digits that give the same number.
std::string float_repr(double value);

/// The options of Python's json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  int indent = -1;  // spaces a level; below 0: all on one line
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
  std::size_t most_bytes = std::size_t{64} << 20;
};
/// Throws Fault for a value that JSON cannot hold, or where the text is too long.
std::string to_json(const Value& value, const JsonStyle& style = {});
/// Parses JSON in the order of its keys. Throws ModelError naming `where`.
Value from_json(std::string_view text, const std::string& where);

}  // namespace mulciber::jinja
