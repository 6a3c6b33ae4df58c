// The methods of str, over UTF-8 with code-point positions.
#include "runtime/text/jinja/arguments.h"
#include "runtime/text/jinja/format.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/unicode.h"

#include <algorithm>
#include <cstring>

namespace llmrt::text::jinja {

namespace {

constexpr size_t npos = std::string_view::npos;

// memmem is linear even for needles that make naive search quadratic.
size_t find_bytes(std::string_view s, std::string_view part, size_t from = 0) {
  if (from > s.size())
    return npos;
  if (part.empty())
    return from;
  const void *hit = memmem(s.data() + from, s.size() - from, part.data(), part.size());
  return hit ? static_cast<size_t>(static_cast<const char *>(hit) - s.data()) : npos;
}

size_t find_last_bytes(std::string_view s, std::string_view part) {
  if (part.empty())
    return s.size();
  // The last of all occurrences, overlapping ones included; searching the reversed texts keeps it linear.
  std::string reversed(s.rbegin(), s.rend()), needle(part.rbegin(), part.rend());
  size_t at = find_bytes(reversed, needle);
  return at == npos ? npos : s.size() - at - part.size();
}

// The part of a string between code points `start` and `stop` of a method's optional arguments, as byte offsets.
struct Window {
  size_t begin, end;
  bool valid; ///< false when start lies beyond the end
};

Window window(const Str &s, const Bound &bound, size_t first) {
  charge_bytes(s.text.size());
  auto n = static_cast<int64_t>(s.code_points);
  auto position = [&](size_t i, int64_t fallback) {
    if (!bound.has(i) || bound[i].is_none())
      return fallback;
    int64_t v = to_index(bound[i], "a position");
    return v < 0 ? std::max<int64_t>(v + n, 0) : v;
  };
  int64_t start = position(first, 0), stop = std::min(position(first + 1, n), n);
  if (start > n || start > stop)
    return {0, 0, false};
  auto offset = [&](int64_t p) { return s.ascii() ? static_cast<size_t>(p) : offset_of(s.text, static_cast<size_t>(p)); };
  return {offset(start), offset(stop), true};
}

Value position_of(const Str &s, Arguments &arguments, const char *name, bool from_right, bool must_find) {
  Bound bound(name, arguments, {"sub", "start", "end"}, 1);
  const std::string &part = require_string(bound[0], name);
  Window w = window(s, bound, 1);
  size_t at = npos;
  if (w.valid) {
    std::string_view inner = std::string_view(s.text).substr(w.begin, w.end - w.begin);
    at = from_right ? find_last_bytes(inner, part) : find_bytes(inner, part);
  }
  if (at == npos) {
    if (must_find)
      fail("substring not found");
    return Value::integer(-1);
  }
  at += w.begin;
  return Value::integer(
      static_cast<Int>(s.ascii() ? at : count_code_points(std::string_view(s.text).substr(0, at))));
}

Value count_of(const Str &s, Arguments &arguments) {
  Bound bound("count", arguments, {"sub", "start", "end"}, 1);
  const std::string &part = require_string(bound[0], "count");
  Window w = window(s, bound, 1);
  if (!w.valid)
    return Value::integer(0);
  std::string_view inner = std::string_view(s.text).substr(w.begin, w.end - w.begin);
  if (part.empty())
    return Value::integer(static_cast<Int>(count_code_points(inner)) + 1);
  Int n = 0;
  for (size_t at = 0; (at = find_bytes(inner, part, at)) != npos; at += part.size())
    ++n;
  return Value::integer(n);
}

Value has_affix(const Str &s, Arguments &arguments, bool at_end) {
  const char *name = at_end ? "endswith" : "startswith";
  Bound bound(name, arguments, {"affix", "start", "end"}, 1);
  Window w = window(s, bound, 1);
  auto matches = [&](const Value &affix) {
    if (!affix.is_string())
      fail(std::string(name) + " first arg must be str or a tuple of str, not " + type_name(affix));
    if (!w.valid)
      return false;
    std::string_view inner = std::string_view(s.text).substr(w.begin, w.end - w.begin);
    return at_end ? inner.ends_with(affix.str()) : inner.starts_with(affix.str());
  };
  require_defined(bound[0]);
  if (bound[0].is(Kind::tuple)) {
    const auto &affixes = bound[0].items();
    return Value::boolean(std::any_of(affixes.begin(), affixes.end(), matches));
  }
  return Value::boolean(matches(bound[0]));
}

Value stripped(const Str &s, Arguments &arguments, const char *name, Side side) {
  Bound bound(name, arguments, {"chars"}, 0);
  charge_bytes(s.text.size());
  if (!bound.has(0) || bound[0].is_none())
    return Value::string(std::string(strip(s.text, side)), s.markup);
  std::string_view chars = require_string(bound[0], name);
  charge_bytes(s.text.size() * std::min<size_t>(chars.size(), 1000));
  return Value::string(std::string(strip(s.text, side, &chars)), s.markup);
}

Value split_method(const Str &s, Arguments &arguments, bool from_right) {
  const char *name = from_right ? "rsplit" : "split";
  Bound bound(name, arguments, {"sep", "maxsplit"}, 0);
  const std::string *separator = nullptr;
  if (bound.has(0) && !bound[0].is_none()) {
    separator = &require_string(bound[0], name);
    if (separator->empty())
      fail("empty separator");
  }
  return Value::list(split(s, separator, bound.has(1) ? to_index(bound[1], "maxsplit") : -1, from_right));
}

Value partition(const Str &s, Arguments &arguments, bool from_right) {
  const char *name = from_right ? "rpartition" : "partition";
  Bound bound(name, arguments, {"sep"}, 1);
  const std::string &separator = require_string(bound[0], name);
  if (separator.empty())
    fail("empty separator");
  charge_bytes(s.text.size());
  size_t at = from_right ? find_last_bytes(s.text, separator) : find_bytes(s.text, separator);
  auto text = [&](std::string t) { return Value::string(std::move(t), s.markup); };
  if (at == npos)
    return from_right ? Value::tuple({text(""), text(""), text(s.text)}) : Value::tuple({text(s.text), text(""), text("")});
  return Value::tuple({text(s.text.substr(0, at)), text(separator), text(s.text.substr(at + separator.size()))});
}

Value joined(const Str &s, Arguments &arguments) {
  Bound bound("join", arguments, {"iterable"}, 1);
  require_defined(bound[0]);
  std::string out;
  auto next = iterate(bound[0]);
  size_t i = 0;
  for (Value item; next(item); ++i) {
    if (!item.is_string())
      fail("sequence item " + std::to_string(i) + ": expected str instance, " + type_name(item) + " found");
    if (i > 0)
      out += s.text;
    std::string part = s.markup && !item.str_object().markup ? html_escape(item.str()) : item.str();
    check_memory(out.size() + part.size() + s.text.size());
    charge_bytes(part.size() + s.text.size());
    out += part;
  }
  return Value::string(std::move(out), s.markup);
}

Value replaced(const Str &s, Arguments &arguments) {
  Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  return Value::string(replace_all(s.text, require_string(bound[0], "replace"), require_string(bound[1], "replace"),
                                   bound.has(2) ? to_index(bound[2], "count") : -1),
                       s.markup);
}

// Padding to a width: 'l'just, 'r'just, 'c'enter.
Value padded(const Str &s, Arguments &arguments, const char *name, char mode) {
  Bound bound(name, arguments, {"width", "fillchar"}, 1);
  int64_t width = to_index(bound[0], "a width");
  std::string fill = bound.has(1) ? require_string(bound[1], name) : " ";
  if (count_code_points(fill) != 1)
    fail("The fill character must be exactly one character long");
  auto n = static_cast<int64_t>(s.code_points);
  if (width <= n)
    return Value::string(s.text, s.markup);
  int64_t missing = width - n;
  int64_t left = mode == 'l' ? 0 : mode == 'r' ? missing : missing / 2 + (missing & width & 1);
  return Value::string(repeat(fill, left) + s.text + repeat(fill, missing - left), s.markup);
}

Value zero_filled(const Str &s, Arguments &arguments) {
  Bound bound("zfill", arguments, {"width"}, 1);
  int64_t missing = to_index(bound[0], "a width") - static_cast<int64_t>(s.code_points);
  if (missing <= 0)
    return Value::string(s.text, s.markup);
  bool sign = !s.text.empty() && (s.text[0] == '-' || s.text[0] == '+');
  return Value::string(s.text.substr(0, sign) + repeat("0", missing) + s.text.substr(sign), s.markup);
}

Value tabs_expanded(const Str &s, Arguments &arguments) {
  Bound bound("expandtabs", arguments, {"tabsize"}, 0);
  int64_t size = bound.has(0) ? to_index(bound[0], "a tab size") : 8;
  std::string out;
  int64_t column = 0;
  for (size_t at = 0; at < s.text.size();) {
    size_t begin = at;
    char32_t c = next_code_point(s.text, at);
    if (c == '\t') {
      int64_t n = size > 0 ? size - column % size : 0;
      check_memory(out.size() + static_cast<size_t>(n));
      out += repeat(" ", n);
      column += n;
      continue;
    }
    column = c == '\n' || c == '\r' ? 0 : column + 1;
    out.append(s.text, begin, at - begin);
  }
  return Value::string(std::move(out), s.markup);
}

// isalpha() and its kin: not empty, and every character passes.
template <bool (*test)(char32_t)> bool every(const std::string &s) {
  for (size_t at = 0; at < s.size();)
    if (!test(next_code_point(s, at)))
      return false;
  return !s.empty();
}

bool is_alnum_char(char32_t c) { return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }

bool is_title_text(const std::string &s) {
  bool any = false, previous_cased = false;
  for (size_t at = 0; at < s.size();) {
    char32_t c = next_code_point(s, at);
    if (is_upper(c) || is_title(c)) {
      if (previous_cased)
        return false;
      previous_cased = any = true;
    } else if (is_lower(c)) {
      if (!previous_cased)
        return false;
      any = true;
    } else {
      previous_cased = false;
    }
  }
  return any;
}

bool is_identifier(const std::string &s) {
  size_t at = 0;
  if (s.empty() || !is_identifier_start(next_code_point(s, at)))
    return false;
  while (at < s.size())
    if (!is_identifier_part(next_code_point(s, at)))
      return false;
  return true;
}

bool is_ascii_text(const std::string &s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_printable_text(const std::string &s) { return s.empty() || every<is_printable>(s); }

using Method = Value (*)(Interpreter &, const Str &, Arguments &);

template <std::string (*map)(std::string_view)> Value mapped(Interpreter &, const Str &s, Arguments &arguments) {
  Bound bound("a case method", arguments, {}, 0);
  charge_bytes(s.text.size() * 4);
  return Value::string(map(s.text), s.markup);
}

template <bool (*test)(const std::string &)> Value tested(Interpreter &, const Str &s, Arguments &arguments) {
  Bound bound("a test method", arguments, {}, 0);
  charge_bytes(s.text.size() * 4);
  return Value::boolean(test(s.text));
}

const std::pair<const char *, Method> kMethods[] = {
    {"strip", [](Interpreter &, const Str &s, Arguments &a) { return stripped(s, a, "strip", Side::both); }},
    {"lstrip", [](Interpreter &, const Str &s, Arguments &a) { return stripped(s, a, "lstrip", Side::left); }},
    {"rstrip", [](Interpreter &, const Str &s, Arguments &a) { return stripped(s, a, "rstrip", Side::right); }},
    {"split", [](Interpreter &, const Str &s, Arguments &a) { return split_method(s, a, false); }},
    {"rsplit", [](Interpreter &, const Str &s, Arguments &a) { return split_method(s, a, true); }},
    {"splitlines",
     [](Interpreter &, const Str &s, Arguments &a) {
       Bound bound("splitlines", a, {"keepends"}, 0);
       std::vector<Value> out;
       for (auto &line : split_lines(s.text, bound.flag(0)))
         out.push_back(Value::string(std::move(line), s.markup));
       return Value::list(std::move(out));
     }},
    {"partition", [](Interpreter &, const Str &s, Arguments &a) { return partition(s, a, false); }},
    {"rpartition", [](Interpreter &, const Str &s, Arguments &a) { return partition(s, a, true); }},
    {"startswith", [](Interpreter &, const Str &s, Arguments &a) { return has_affix(s, a, false); }},
    {"endswith", [](Interpreter &, const Str &s, Arguments &a) { return has_affix(s, a, true); }},
    {"removeprefix",
     [](Interpreter &, const Str &s, Arguments &a) {
       Bound bound("removeprefix", a, {"prefix"}, 1);
       const std::string &prefix = require_string(bound[0], "removeprefix");
       return Value::string(s.text.starts_with(prefix) ? s.text.substr(prefix.size()) : s.text, s.markup);
     }},
    {"removesuffix",
     [](Interpreter &, const Str &s, Arguments &a) {
       Bound bound("removesuffix", a, {"suffix"}, 1);
       const std::string &suffix = require_string(bound[0], "removesuffix");
       return Value::string(s.text.ends_with(suffix) ? s.text.substr(0, s.text.size() - suffix.size()) : s.text,
                            s.markup);
     }},
    {"replace", [](Interpreter &, const Str &s, Arguments &a) { return replaced(s, a); }},
    {"join", [](Interpreter &, const Str &s, Arguments &a) { return joined(s, a); }},
    {"find", [](Interpreter &, const Str &s, Arguments &a) { return position_of(s, a, "find", false, false); }},
    {"rfind", [](Interpreter &, const Str &s, Arguments &a) { return position_of(s, a, "rfind", true, false); }},
    {"index", [](Interpreter &, const Str &s, Arguments &a) { return position_of(s, a, "index", false, true); }},
    {"rindex", [](Interpreter &, const Str &s, Arguments &a) { return position_of(s, a, "rindex", true, true); }},
    {"count", [](Interpreter &, const Str &s, Arguments &a) { return count_of(s, a); }},
    {"upper", mapped<to_upper>},
    {"lower", mapped<to_lower>},
    {"title", mapped<to_title>},
    {"capitalize", mapped<capitalize>},
    {"swapcase", mapped<swap_case>},
    {"casefold", mapped<case_fold>},
    {"isalpha", tested<every<is_alpha>>},
    {"isalnum", tested<every<is_alnum_char>>},
    {"isdecimal", tested<every<is_decimal>>},
    {"isdigit", tested<every<is_digit>>},
    {"isnumeric", tested<every<is_numeric>>},
    {"isspace", tested<every<is_space>>},
    {"isprintable", tested<is_printable_text>},
    {"isascii", tested<is_ascii_text>},
    {"isidentifier", tested<is_identifier>},
    {"istitle", tested<is_title_text>},
    {"islower", tested<[](const std::string &s) { return all_cased(s, false); }>},
    {"isupper", tested<[](const std::string &s) { return all_cased(s, true); }>},
    {"ljust", [](Interpreter &, const Str &s, Arguments &a) { return padded(s, a, "ljust", 'l'); }},
    {"rjust", [](Interpreter &, const Str &s, Arguments &a) { return padded(s, a, "rjust", 'r'); }},
    {"center", [](Interpreter &, const Str &s, Arguments &a) { return padded(s, a, "center", 'c'); }},
    {"zfill", [](Interpreter &, const Str &s, Arguments &a) { return zero_filled(s, a); }},
    {"expandtabs", [](Interpreter &, const Str &s, Arguments &a) { return tabs_expanded(s, a); }},
    {"format",
     [](Interpreter &i, const Str &s, Arguments &a) { return Value::string(format_braces(i, s.text, a), s.markup); }},
    {"format_map",
     [](Interpreter &i, const Str &s, Arguments &a) {
       Bound bound("format_map", a, {"mapping"}, 1);
       Arguments named;
       if (!bound[0].is(Kind::dict))
         fail("format_map() needs a dict");
       for (const auto &[key, value] : bound[0].dict().items)
         if (key.is_string())
           named.named.emplace_back(key.str(), value);
       return Value::string(format_braces(i, s.text, named), s.markup);
     }},
    {"encode",
     [](Interpreter &, const Str &, Arguments &) -> Value { fail("bytes are not supported in a chat template"); }},
    {"translate",
     [](Interpreter &, const Str &, Arguments &) -> Value { fail("str.translate is not supported in a chat template"); }},
};

} // namespace

bool all_cased(const std::string &s, bool upper) {
  bool any = false;
  for (size_t at = 0; at < s.size();) {
    char32_t c = next_code_point(s, at);
    if (is_title(c) || (upper ? is_lower(c) : is_upper(c)))
      return false;
    any = any || (upper ? is_upper(c) : is_lower(c));
  }
  return any;
}

Value string_method(const Value &object, const std::string &name) {
  for (const auto &[method_name, method] : kMethods)
    if (name == method_name)
      return make_function(
          name, [object, method = method](Interpreter &i, Arguments &a) { return method(i, object.str_object(), a); });
  return Value::missing();
}

std::vector<Value> split(const Str &s, const std::string *separator, int64_t limit, bool from_right) {
  std::string_view text = s.text;
  charge_bytes(text.size() * 2);
  std::vector<Value> out;
  auto add = [&](std::string_view part) { out.push_back(Value::string(std::string(part), s.markup)); };
  if (limit < 0)
    limit = INT64_MAX;
  if (separator) {
    std::vector<size_t> cuts; // offsets of the separators to cut at
    if (!from_right) {
      for (size_t at = 0; limit > 0 && (at = find_bytes(text, *separator, at)) != npos; at += separator->size(), --limit)
        cuts.push_back(at);
    } else {
      std::string reversed(text.rbegin(), text.rend()), needle(separator->rbegin(), separator->rend());
      for (size_t at = 0; limit > 0 && (at = find_bytes(reversed, needle, at)) != npos; at += needle.size(), --limit)
        cuts.push_back(text.size() - at - needle.size());
      std::reverse(cuts.begin(), cuts.end());
    }
    size_t begin = 0;
    for (size_t cut : cuts) {
      add(text.substr(begin, cut - begin));
      begin = cut + separator->size();
    }
    add(text.substr(begin));
    return out;
  }
  if (!from_right) {
    text = strip(text, Side::left);
    while (!text.empty()) {
      if (limit-- == 0) {
        add(text);
        break;
      }
      size_t end = 0;
      while (end < text.size()) {
        size_t next = end;
        if (is_space(next_code_point(text, next)))
          break;
        end = next;
      }
      add(text.substr(0, end));
      text = strip(text.substr(end), Side::left);
    }
    return out;
  }
  text = strip(text, Side::right);
  while (!text.empty()) {
    if (limit-- == 0) {
      add(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      size_t previous = begin - 1;
      while (previous > 0 && (static_cast<unsigned char>(text[previous]) & 0xc0) == 0x80)
        --previous;
      size_t at = previous;
      if (is_space(next_code_point(text, at)))
        break;
      begin = previous;
    }
    add(text.substr(begin));
    text = strip(text.substr(0, begin), Side::right);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split_lines(const std::string &s, bool keep_ends) {
  charge_bytes(s.size() * 2);
  std::vector<std::string> out;
  for (size_t at = 0; at < s.size();) {
    size_t begin = at, end = at;
    while (at < s.size()) {
      end = at;
      char32_t c = next_code_point(s, at);
      if (is_line_break(c)) {
        if (c == '\r' && at < s.size() && s[at] == '\n')
          ++at;
        break;
      }
      end = at;
    }
    charge(1);
    out.push_back(s.substr(begin, (keep_ends ? at : end) - begin));
  }
  return out;
}

std::string replace_all(const std::string &s, const std::string &from, const std::string &to, int64_t limit) {
  charge_bytes(s.size());
  if (limit < 0)
    limit = INT64_MAX;
  std::string out;
  auto grow = [&](std::string_view part) {
    check_memory(out.size() + part.size());
    charge_bytes(part.size());
    out += part;
  };
  if (from.empty()) { // between all characters
    size_t at = 0;
    while (limit > 0) {
      grow(to);
      --limit;
      if (at >= s.size())
        return out;
      size_t begin = at;
      next_code_point(s, at);
      out.append(s, begin, at - begin);
    }
    grow(std::string_view(s).substr(at));
    return out;
  }
  size_t begin = 0;
  for (size_t at; limit > 0 && (at = find_bytes(s, from, begin)) != npos; --limit) {
    grow(std::string_view(s).substr(begin, at - begin));
    grow(to);
    begin = at + from.size();
  }
  grow(std::string_view(s).substr(begin));
  return out;
}

} // namespace llmrt::text::jinja
