// The functions that every template can call.
#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"

#include <algorithm>

namespace llmrt::text::jinja {

namespace {

constexpr Int kMaxRange = 100000; // the sandbox's own limit

Value call_range(Interpreter &, Arguments &arguments) {
  if (!arguments.named.empty() || arguments.positional.empty() || arguments.positional.size() > 3)
    fail("range() takes one to three positional arguments");
  Int bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    bounds[arguments.positional.size() == 1 ? 1 : i] = to_index(arguments.positional[i], "an argument of range()");
  if (bounds[2] == 0)
    fail("range() arg 3 must not be zero");
  auto range = std::make_shared<RangeObject>(bounds[0], bounds[1], bounds[2]);
  if (static_cast<Int>(range->length) > kMaxRange)
    fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  return Value(Kind::range, range);
}

Value call_dict(Interpreter &, Arguments &arguments) {
  if (arguments.positional.size() > 1)
    fail("dict expected at most 1 argument, got " + std::to_string(arguments.positional.size()));
  auto dict = std::make_shared<Dict>();
  if (!arguments.positional.empty()) {
    const Value &source = arguments.positional[0];
    if (source.is(Kind::dict)) {
      for (const auto &[key, value] : source.dict().items)
        dict->set(key, value);
    } else {
      for (const auto &entry : to_vector(source)) {
        auto pair = to_vector(entry);
        if (pair.size() != 2)
          fail("dictionary update sequence element has length " + std::to_string(pair.size()) + "; 2 is required");
        dict->set(pair[0], pair[1]);
      }
    }
  }
  for (const auto &[key, value] : arguments.named)
    dict->set(Value::string(key), value);
  return Value(Kind::dict, dict);
}

Value call_raise_exception(Interpreter &, Arguments &arguments) {
  Bound bound("raise_exception", arguments, {"message"}, 1);
  throw TemplateRaised(to_str(bound[0]), Budget::current->line);
}

Value call_strftime_now(Interpreter &interpreter, Arguments &arguments) {
  Bound bound("strftime_now", arguments, {"format"}, 1);
  const std::string &format = require_string(bound[0], "strftime_now()");
  std::tm now = interpreter.now();
  if (format.size() > 1024)
    fail("strftime_now() takes a format of up to 1024 bytes, not " + std::to_string(format.size()));
  std::string out(16384, '\0');
  // A leading character tells an empty result from one that does not fit.
  size_t n = std::strftime(out.data(), out.size(), (" " + format).c_str(), &now);
  if (n == 0)
    fail("the result of strftime_now() is longer than 16384 bytes");
  out.resize(n);
  return Value::string(out.substr(1));
}

Value call_cycler(Interpreter &, Arguments &arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    fail("at least one item has to be provided");
  return Value(Kind::cycler, std::make_shared<Cycler>(arguments.positional));
}

Value call_joiner(Interpreter &, Arguments &arguments) {
  Bound bound("joiner", arguments, {"sep"}, 0);
  return Value(Kind::joiner, std::make_shared<Joiner>(bound.or_else(0, Value::string(", "))));
}

} // namespace

Value find_global(const std::string &name) {
  if (name == "range")
    return make_function("range", call_range);
  if (name == "dict")
    return make_function("dict", call_dict);
  if (name == "namespace")
    return make_function("namespace", [](Interpreter &i, Arguments &a) { return i.make_namespace(a); });
  if (name == "raise_exception")
    return make_function("raise_exception", call_raise_exception);
  if (name == "strftime_now")
    return make_function("strftime_now", call_strftime_now);
  if (name == "cycler")
    return make_function("cycler", call_cycler);
  if (name == "joiner")
    return make_function("joiner", call_joiner);
  if (name == "lipsum")
    return make_function("lipsum", [](Interpreter &, Arguments &) -> Value {
      fail("lipsum() makes random text, which is not supported in a chat template");
    });
  return Value::missing();
}

} // namespace llmrt::text::jinja
