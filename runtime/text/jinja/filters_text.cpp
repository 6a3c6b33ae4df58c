// Filters that make or change text.
#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/filters.h"
#include "runtime/text/jinja/format.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/unicode.h"

#include <algorithm>

namespace llmrt::text::jinja {

namespace {

bool is_markup(const Value &v) { return v.is_string() && v.str_object().markup; }

// A str stays as it is (Markup too); anything else becomes one.
Value soft_string(const Value &v) { return v.is_string() ? v : Value::string(to_str(v)); }

template <std::string (*map)(std::string_view)> Value mapped(const Value &input, Arguments &arguments) {
  Bound bound("a case filter", arguments, {}, 0);
  Value text = soft_string(input);
  charge_bytes(text.str().size() * 4);
  return Value::string(map(text.str()), is_markup(text));
}

// Words begin after white space and any of -({[<.
std::string title_words(std::string_view s) {
  std::string out, word;
  auto flush = [&] {
    if (word.empty())
      return;
    size_t at = 0;
    next_code_point(word, at);
    out += to_upper(std::string_view(word).substr(0, at));
    out += to_lower(std::string_view(word).substr(at));
    word.clear();
  };
  for (size_t at = 0; at < s.size();) {
    size_t begin = at;
    char32_t c = next_code_point(s, at);
    if (is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<') {
      flush();
      out += s.substr(begin, at - begin);
    } else {
      word += s.substr(begin, at - begin);
    }
  }
  flush();
  return out;
}

Value trim(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("trim", arguments, {"chars"}, 0);
  Value text = soft_string(input);
  charge_bytes(text.str().size());
  if (!bound.has(0) || bound[0].is_none())
    return Value::string(std::string(strip(text.str(), Side::both)), is_markup(text));
  std::string_view chars = require_string(bound[0], "trim");
  charge_bytes(text.str().size() * std::min<size_t>(chars.size(), 1000));
  return Value::string(std::string(strip(text.str(), Side::both, &chars)), is_markup(text));
}

Value replace(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  int64_t count = bound.has(2) && !bound[2].is_none() ? to_index(bound[2], "count") : -1;
  return Value::string(replace_all(to_str(input), to_str(bound[0]), to_str(bound[1]), count));
}

Value escape(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("escape", arguments, {}, 0);
  if (is_markup(input))
    return input;
  return Value::string(html_escape(to_str(input)), true);
}

Value force_escape(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("forceescape", arguments, {}, 0);
  return Value::string(html_escape(to_str(input)), true);
}

Value safe(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("safe", arguments, {}, 0);
  return Value::string(to_str(input), true);
}

Value string(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("string", arguments, {}, 0);
  return soft_string(input);
}

Value indent(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("indent", arguments, {"width", "first", "blank"}, 0);
  std::string unit = "    ";
  if (bound.has(0))
    unit = bound[0].is_string() ? bound[0].str() : repeat(" ", to_index(bound[0], "a width"));
  const std::string &text = require_string(input, "indent");
  auto lines = split_lines(text + "\n", false);
  std::string out;
  bool blank = bound.flag(2);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0)
      out += '\n';
    if (i > 0 && (blank || !lines[i].empty()))
      out += unit;
    check_memory(out.size() + lines[i].size() + unit.size());
    charge_bytes(lines[i].size() + unit.size());
    out += lines[i];
  }
  if (bound.flag(1))
    out = unit + out;
  return Value::string(std::move(out), is_markup(input));
}

Value truncate(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0);
  int64_t length = bound.has(0) ? to_index(bound[0], "a length") : 255;
  std::string end = bound.has(2) ? require_string(bound[2], "truncate") : "...";
  int64_t leeway = bound.has(3) && !bound[3].is_none() ? to_index(bound[3], "leeway") : 5;
  auto end_length = static_cast<int64_t>(count_code_points(end));
  if (length < end_length)
    fail("expected length >= " + std::to_string(end_length) + ", got " + std::to_string(length));
  if (leeway < 0)
    fail("expected leeway >= 0, got " + std::to_string(leeway));
  if (input.is_undefined())
    return input;
  if (!input.is_string())
    fail(std::string("truncate needs a str, not ") + type_name(input));
  const Str &s = input.str_object();
  if (static_cast<int64_t>(s.code_points) <= length + leeway)
    return input;
  std::string head = s.text.substr(0, offset_of(s.text, static_cast<size_t>(length - end_length)));
  if (!bound.flag(1))
    if (size_t space = head.rfind(' '); space != std::string::npos)
      head.resize(space);
  return Value::string(head + end, s.markup);
}

Value center(Interpreter &interpreter, const Value &input, Arguments &arguments) {
  Bound bound("center", arguments, {"width"}, 0);
  Value method = string_method(soft_string(input), "center");
  Arguments width{{bound.or_else(0, Value::integer(80))}, {}};
  return method.as<Function>().body(interpreter, width);
}

Value format(Interpreter &, const Value &input, Arguments &arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail("can't handle positional and keyword arguments at the same time");
  Value text = soft_string(input);
  if (arguments.named.empty())
    return Value::string(format_percent(text.str(), Value::tuple(arguments.positional), is_markup(text)), is_markup(text));
  auto named = std::make_shared<Dict>();
  for (const auto &[key, value] : arguments.named)
    named->set(Value::string(key), value);
  return Value::string(format_percent(text.str(), Value(Kind::dict, named), is_markup(text)), is_markup(text));
}

Value word_count(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("wordcount", arguments, {}, 0);
  const std::string text = to_str(input);
  charge_bytes(text.size());
  Int n = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    bool word = c == '_' || is_alpha(c) || is_numeric(c);
    n += word && !inside;
    inside = word;
  }
  return Value::integer(n);
}

Value url_encode(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("urlencode", arguments, {}, 0);
  auto quote = [](const std::string &s, bool for_query) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    std::string out;
    for (char ch : s) {
      auto c = static_cast<unsigned char>(ch);
      if ((c < 0x80 && std::isalnum(c)) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query)) {
        out += ch;
      } else if (c == ' ' && for_query) {
        out += '+';
      } else {
        out += '%';
        out += kHex[c >> 4];
        out += kHex[c & 15];
      }
    }
    return out;
  };
  if (input.is_string() || !is_iterable(input))
    return Value::string(quote(to_str(input), false));
  std::string out;
  auto add = [&](const Value &key, const Value &value) {
    out += (out.empty() ? "" : "&") + quote(to_str(key), true) + "=" + quote(to_str(value), true);
    check_memory(out.size());
  };
  if (input.is(Kind::dict)) {
    for (const auto &[key, value] : input.dict().items)
      add(key, value);
  } else {
    for (const auto &entry : to_vector(input)) {
      auto pair = to_vector(entry);
      if (pair.size() != 2)
        fail("urlencode needs pairs of a key and a value");
      add(pair[0], pair[1]);
    }
  }
  return Value::string(std::move(out));
}

// json.dumps with the options that transformers' own filter takes.
Value to_json(Interpreter &, const Value &input, Arguments &arguments) {
  Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ensure_ascii = bound.flag(0);
  if (bound.has(1) && !bound[1].is_none()) {
    style.indent = bound[1].is_string() ? bound[1].str() : repeat(" ", to_index(bound[1], "indent"));
    style.item_separator = ",";
  }
  if (bound.has(2) && !bound[2].is_none()) {
    auto parts = to_vector(bound[2]);
    if (parts.size() != 2)
      fail("separators must be a pair of strings");
    style.item_separator = require_string(parts[0], "tojson separators");
    style.key_separator = require_string(parts[1], "tojson separators");
  }
  style.sort_keys = bound.flag(3);
  return Value::string(dump_json(input, style));
}

// Filters of Jinja that make no sense in a prompt are known by name, and refused when used.
template <const char *const &name> Value refused(Interpreter &, const Value &, Arguments &) {
  fail(std::string("the filter '") + name + "' is not supported in a chat template");
}
const char *const kPprint = "pprint", *const kRandom = "random", *const kStriptags = "striptags",
                  *const kUrlize = "urlize", *const kWordwrap = "wordwrap", *const kXmlattr = "xmlattr",
                  *const kFilesizeformat = "filesizeformat";

const NamedFilter kFilters[] = {
    {"capitalize", [](Interpreter &, const Value &v, Arguments &a) { return mapped<capitalize>(v, a); }},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", refused<kFilesizeformat>},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"lower", [](Interpreter &, const Value &v, Arguments &a) { return mapped<to_lower>(v, a); }},
    {"pprint", refused<kPprint>},
    {"random", refused<kRandom>},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"striptags", refused<kStriptags>},
    {"title", [](Interpreter &, const Value &v, Arguments &a) { return mapped<title_words>(v, a); }},
    {"tojson", to_json},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", [](Interpreter &, const Value &v, Arguments &a) { return mapped<to_upper>(v, a); }},
    {"urlencode", url_encode},
    {"urlize", refused<kUrlize>},
    {"wordcount", word_count},
    {"wordwrap", refused<kWordwrap>},
    {"xmlattr", refused<kXmlattr>},
};

} // namespace

FilterTable text_filters() { return {std::begin(kFilters), std::end(kFilters)}; }

} // namespace llmrt::text::jinja
