// How values turn into text: str(), repr(), json.dumps() and HTML escaping, each as Python writes it.
#include "runtime/text/jinja/ast.h"
#include "runtime/text/jinja/unicode.h"
#include "runtime/text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace llmrt::text::jinja {

std::string int_to_string(Int i) {
  bool negative = i < 0;
  // Negating in unsigned arithmetic keeps the most negative value representable.
  unsigned __int128 u = negative ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i);
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(u % 10));
    u /= 10;
  } while (u);
  if (negative)
    digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string repr_float(double d) {
  if (std::isnan(d))
    return "nan";
  if (std::isinf(d))
    return d < 0 ? "-inf" : "inf";
  // Shortest digits in scientific form, then laid out as Python does: plain for exponents -4 .. 15.
  char buffer[40];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  std::string out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  size_t e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2)
    digits += text.substr(2, e - 2);
  int exponent = 0;
  auto exponent_text = text.substr(text[e + 1] == '+' ? e + 2 : e + 1);
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1)
      out += "." + digits.substr(1);
    char tail[24];
    std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return out + tail;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole)
    return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

void append_hex(std::string &out, const char *prefix, int width, char32_t c) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%s%0*x", prefix, width, static_cast<unsigned>(c));
  out += buffer;
}

void append_repr(std::string &out, std::string_view s) {
  char quote = s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t at = 0; at < s.size();) {
    char32_t c = next_code_point(s, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      append_code_point(out, c);
    } else if (c < 0x100) {
      append_hex(out, "\\x", 2, c);
    } else if (c < 0x10000) {
      append_hex(out, "\\u", 4, c);
    } else {
      append_hex(out, "\\U", 8, c);
    }
  }
  out += quote;
}

// Checks as it grows: a small value can have a large text when parts of it are shared.
class Printer {
public:
  std::string take() { return std::move(out_); }

  void repr(const Value &v) {
    charge(1);
    if ((++pieces_ & 255) == 0)
      check_memory(out_.size());
    switch (v.kind()) {
    case Kind::missing:
    case Kind::undefined:
      out_ += "Undefined";
      return;
    case Kind::none:
      out_ += "None";
      return;
    case Kind::boolean:
      out_ += v.as_bool() ? "True" : "False";
      return;
    case Kind::integer:
      out_ += int_to_string(v.as_int());
      return;
    case Kind::floating:
      out_ += repr_float(v.as_double());
      return;
    case Kind::string:
      charge_bytes(v.str().size());
      check_memory(out_.size() + v.str().size());
      if (v.str_object().markup)
        out_ += "Markup(";
      append_repr(out_, v.str());
      if (v.str_object().markup)
        out_ += ")";
      return;
    case Kind::list:
      sequence("[", v.items(), "]");
      return;
    case Kind::tuple:
      sequence("(", v.items(), v.items().size() == 1 ? ",)" : ")");
      return;
    case Kind::dict:
      mapping(v.dict());
      return;
    case Kind::dict_view:
      out_ += std::string(type_name(v)) + "(";
      sequence("[", to_vector(v), "]");
      out_ += ")";
      return;
    case Kind::range: {
      const auto &range = v.as<RangeObject>();
      out_ += "range(" + int_to_string(range.start) + ", " + int_to_string(range.stop);
      if (range.step != 1)
        out_ += ", " + int_to_string(range.step);
      out_ += ")";
      return;
    }
    case Kind::name_space:
      name_space(v.as<Namespace>());
      return;
    case Kind::loop: {
      auto &loop = v.as<LoopObject>();
      out_ += "<LoopContext " + std::to_string(loop.index0 + 1) + "/" + std::to_string(loop.length()) + ">";
      return;
    }
    case Kind::macro:
      out_ += "<Macro ";
      if (const std::string &name = v.as<MacroObject>().node->text; name.empty())
        out_ += "anonymous";
      else
        append_repr(out_, name);
      out_ += ">";
      return;
    case Kind::function:
      out_ += "<built-in method " + v.as<Function>().name + ">";
      return;
    case Kind::iterator:
    case Kind::cycler:
    case Kind::joiner:
      out_ += std::string("<") + type_name(v) + " object>";
      return;
    }
  }

private:
  void sequence(const char *open, const std::vector<Value> &items, const char *close) {
    out_ += open;
    bool first = true;
    for (const auto &item : items) {
      if (!first)
        out_ += ", ";
      first = false;
      repr(item);
    }
    out_ += close;
  }

  void mapping(const Dict &dict) {
    out_ += "{";
    bool first = true;
    for (const auto &[key, value] : dict.items) {
      if (!first)
        out_ += ", ";
      first = false;
      repr(key);
      out_ += ": ";
      repr(value);
    }
    out_ += "}";
  }

  void name_space(const Namespace &object) {
    if (++namespaces_ > 50) // it may contain itself
      fail("a namespace is nested too deeply to be printed");
    out_ += "<Namespace {";
    bool first = true;
    for (const auto &[key, value] : object.attributes) {
      if (!first)
        out_ += ", ";
      first = false;
      append_repr(out_, key);
      out_ += ": ";
      repr(value);
    }
    out_ += "}>";
    --namespaces_;
  }

  std::string out_;
  size_t pieces_ = 0;
  int namespaces_ = 0;
};

class JsonWriter {
public:
  explicit JsonWriter(const JsonStyle &style) : style_(style) {}
  std::string take() { return std::move(out_); }

  void write(const Value &v) {
    charge(1);
    if ((++pieces_ & 255) == 0)
      check_memory(out_.size());
    switch (v.kind()) {
    case Kind::none:
      out_ += "null";
      return;
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating:
      out_ += scalar(v);
      return;
    case Kind::string:
      string(v.str());
      return;
    case Kind::list:
    case Kind::tuple:
      array(v.items());
      return;
    case Kind::dict:
      object(v.dict());
      return;
    default:
      fail(std::string("Object of type ") + type_name(v) + " is not JSON serializable");
    }
  }

private:
  static std::string scalar(const Value &v) {
    if (v.is(Kind::boolean))
      return v.as_bool() ? "true" : "false";
    if (v.is(Kind::integer))
      return int_to_string(v.as_int());
    double d = v.as_double();
    if (std::isnan(d))
      return "NaN";
    if (std::isinf(d))
      return d < 0 ? "-Infinity" : "Infinity";
    return repr_float(d);
  }

  void string(std::string_view s) {
    charge_bytes(s.size());
    check_memory(out_.size() + s.size());
    out_ += '"';
    for (size_t at = 0; at < s.size();) {
      size_t begin = at;
      char32_t c = next_code_point(s, at);
      switch (c) {
      case '"':
        out_ += "\\\"";
        continue;
      case '\\':
        out_ += "\\\\";
        continue;
      case '\n':
        out_ += "\\n";
        continue;
      case '\r':
        out_ += "\\r";
        continue;
      case '\t':
        out_ += "\\t";
        continue;
      case '\b':
        out_ += "\\b";
        continue;
      case '\f':
        out_ += "\\f";
        continue;
      default:
        break;
      }
      if (c < 0x20 || (style_.ensure_ascii && c >= 0x7f && c < 0x10000)) {
        append_hex(out_, "\\u", 4, c);
      } else if (style_.ensure_ascii && c >= 0x10000) {
        append_hex(out_, "\\u", 4, 0xd800 + ((c - 0x10000) >> 10));
        append_hex(out_, "\\u", 4, 0xdc00 + ((c - 0x10000) & 0x3ff));
      } else {
        out_ += s.substr(begin, at - begin);
      }
    }
    out_ += '"';
  }

  void new_line() {
    out_ += '\n';
    for (int i = 0; i < level_; ++i) {
      check_memory(out_.size() + style_.indent->size());
      charge_bytes(style_.indent->size());
      out_ += *style_.indent;
    }
  }

  void array(const std::vector<Value> &items) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    bool first = true;
    for (const auto &item : items) {
      separate(first);
      write(item);
    }
    --level_;
    if (style_.indent)
      new_line();
    out_ += ']';
  }

  void separate(bool &first) {
    if (!first)
      out_ += style_.item_separator;
    first = false;
    if (style_.indent)
      new_line();
  }

  void object(const Dict &dict) {
    if (dict.items.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    ++level_;
    bool first = true;
    auto write_item = [&](const Dict::Item &item) {
      const auto &[key, value] = item;
      separate(first);
      if (key.is_string())
        string(key.str());
      else if (key.is_number())
        string(scalar(key));
      else if (key.is_none())
        string("null");
      else
        fail(std::string("keys must be str, int, float, bool or None, not ") + type_name(key));
      out_ += style_.key_separator;
      write(value);
    };
    if (style_.sort_keys) {
      auto sorted = dict.items;
      std::stable_sort(sorted.begin(), sorted.end(), [](const Dict::Item &a, const Dict::Item &b) {
        return ordered(Order::lt, a.first, b.first);
      });
      for (const auto &item : sorted)
        write_item(item);
    } else {
      for (const auto &item : dict.items)
        write_item(item);
    }
    --level_;
    if (style_.indent)
      new_line();
    out_ += '}';
  }

  const JsonStyle &style_;
  std::string out_;
  size_t pieces_ = 0;
  int level_ = 0;
};

} // namespace

std::string repr(const Value &v) {
  Printer printer;
  printer.repr(v);
  return printer.take();
}

std::string to_str(const Value &v) {
  if (v.is_string())
    return v.str();
  if (v.is_undefined())
    return {};
  return repr(v);
}

std::string dump_json(const Value &v, const JsonStyle &style) {
  JsonWriter writer(style);
  writer.write(v);
  return writer.take();
}

std::string html_escape(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (char c : s) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&#34;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  }
  return out;
}

} // namespace llmrt::text::jinja
