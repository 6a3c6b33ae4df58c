// Errors, limits and the shape of the context: what the goldens cannot show.
#include "runtime/text/jinja/chat_template.h"

#include <gtest/gtest.h>
#include <thread>

namespace {

using Json = nlohmann::ordered_json;
using namespace llmrt::text;

std::string render(const std::string &source, const Json &context = Json::object()) {
  return ChatTemplate(source).render(context);
}

std::string error_of(const std::string &source, const Json &context = Json::object(), TemplateLimits limits = {}) {
  try {
    std::string out = ChatTemplate(source, "", "", limits).render(context);
    return "rendered " + std::to_string(out.size()) + " bytes";
  } catch (const TemplateError &e) {
    return e.what();
  }
}

// Case 24: what raise_exception says reaches the client word for word.
TEST(ChatTemplate, RaiseExceptionCarriesItsMessage) {
  ChatTemplate t("{{ bos_token }}\n{% if messages[0].role == 'system' %}\n"
                 "{{ raise_exception('System role not supported ☃') }}{% endif %}ok",
                 "<s>");
  Json chat = Json::parse(R"([{"role": "system", "content": "x"}])");
  try {
    t.render(make_chat_context(chat, nullptr, true));
    FAIL() << "nothing was raised";
  } catch (const TemplateRaised &e) {
    EXPECT_STREQ(e.what(), "System role not supported ☃");
    EXPECT_EQ(e.line(), 3);
  }
  chat[0]["role"] = "user";
  EXPECT_EQ(t.render(make_chat_context(chat, nullptr, true)), "<s>\nok");
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a\nb {{ nope.x }}"), "chat template, line 2: 'nope' is undefined");
  EXPECT_EQ(error_of("\n\n{{ d.x.y }}", {{"d", Json::object()}}),
            "chat template, line 3: 'dict object' has no attribute 'x'");
  EXPECT_EQ(error_of("{% for x in [1] %}\n{% if x %}\n{% endfor %}"),
            "chat template, line 3: unknown tag 'endfor' where 'elif' may come");
  EXPECT_EQ(error_of("{{ 'a' + 1 }}"), "chat template, line 1: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(error_of("\n{{ x|nope }}"), "chat template, line 2: No filter named 'nope'");
  EXPECT_EQ(error_of("{% if x %}"), "chat template, line 1: unexpected end of template, looking for 'elif' or 'else' or 'endif'");
  EXPECT_EQ(error_of("{{ [].append(1) }}"),
            "chat template, line 1: access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(error_of("{{ \xff }}"), "chat template: the template is not valid UTF-8 at byte 3");
}

TEST(ChatTemplate, EmptyTokensAreUndefined) {
  EXPECT_EQ(ChatTemplate("{{ bos_token is defined }}{{ eos_token }}", "", "</s>").render(Json::object()), "False</s>");
  EXPECT_EQ(ChatTemplate("{{ bos_token }}", "<s>").render({{"bos_token", "other"}}), "other");
}

TEST(ChatTemplate, ContextAsTransformersMakesIt) {
  Json messages = Json::parse(R"([{"role": "assistant", "content": null, "reasoning": "r"}])");
  Json context = make_chat_context(messages, nullptr, false, {{"enable_thinking", true}});
  EXPECT_EQ(context.dump(), R"({"messages":[{"thinking":"r","role":"assistant","reasoning":"r","reasoning_content":"r"}],)"
                            R"("tools":null,"documents":null,"add_generation_prompt":false,"enable_thinking":true})");
  EXPECT_THROW(make_chat_context("hi", nullptr, false), llmrt::Error);
  EXPECT_THROW(make_chat_context(Json::parse("[5]"), nullptr, false), llmrt::Error);
}

TEST(ChatTemplate, BadContextsAreErrors) {
  EXPECT_EQ(error_of("x", Json::array()), "chat template: the context must be a JSON object");
  EXPECT_EQ(error_of("{{ s }}", {{"s", "\xff"}}), "chat template: a string of the messages or tools is not valid UTF-8");
  Json deep = 1;
  for (int i = 0; i < 1000; ++i)
    deep = Json::array({deep});
  EXPECT_EQ(error_of("{{ d }}", {{"d", deep}}),
            "chat template: the messages or tools are nested deeper than 150 levels");
}

TEST(ChatTemplate, BigNumbersKeepTheirDigits) {
  Json context = Json::parse(R"({"u": 18446744073709551615, "i": -9223372036854775808, "f": 1e300})");
  EXPECT_EQ(render("{{ u }} {{ i }} {{ f }} {{ [u, i]|tojson }}", context),
            "18446744073709551615 -9223372036854775808 1e+300 [18446744073709551615, -9223372036854775808]");
  EXPECT_NE(error_of("{{ 2 ** 200 }}").find("127 bits"), std::string::npos);
  EXPECT_NE(error_of("{{ 99999999999999999999999999999999999999999 }}").find("127 bits"), std::string::npos);
}

// Every one of these would hang, exhaust memory or overflow the stack without its limit.
TEST(ChatTemplate, HostileTemplatesAreStopped) {
  const char *hostile[] = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% for a in range(99999) %}{% for b in range(99999) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
      "{{ 'x' * 99999999999 }}",
      "{{ 'x' * 999999999999999999999999999999 }}",
      "{{ [1] * 99999999999 }}",
      "{{ [[0] * 99999] * 99999 }}{{ x }}",
      "{% set ns = namespace(s='xxxxxxxxxx') %}{% for i in range(99999) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99999) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1} }}",
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99999) %}{% set ns.l = ns.l|map('string') %}{% endfor %}{{ ns.l|list }}",
      "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}",
      "{% set ns = namespace(n=0) %}{% for i in range(99999) %}{% set ns.n = namespace(n=ns.n) %}{% endfor %}{{ ns }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
      "{% for x in [[[]]] recursive %}{{ loop([[]]) }}{% endfor %}",
      "{{ '%99999999999d' % 1 }}",
      "{{ '%*d' % (99999999999, 1) }}",
      "{{ '{:99999999999}'.format(1) }}",
      "{{ '{:.99999999999f}'.format(1.0) }}",
      "{{ 'x'.center(99999999999) }}",
      "{{ 'x'.ljust(99999999999) }}",
      "{{ 'x'.zfill(99999999999) }}",
      "{{ '\\t'.expandtabs(99999999999) }}",
      "{{ 'a\\nb'|indent(99999999999) }}",
      "{{ [1]|tojson(indent=99999999999) }}",
      "{{ [1]|batch(99999999999, 0)|list }}",
      "{{ [1]|slice(99999999999)|list }}",
      "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
      "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}",
      "{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}",
      "{{ ('x' * 1000000).join(['a'] * 1000000) }}",
      "{{ (['a'] * 1000000)|join('x' * 1000000) }}",
      "{% set s = 'ab' * 3000000 %}{% for i in range(99999) %}{{ s.find('ba' * 1000 + 'c') }}{% endfor %}",
      "{% set s = 'a' * 3000000 %}{% for i in range(99999) %}{{ 'b' in s }}{% endfor %}",
      "{% set s = 'a' * 3000000 %}{% for i in range(99999) %}{{ s == s }}{{ s < s }}{{ s|length }}{{ s|lower|first }}{% endfor %}",
      "{% set s = 'a ' * 3000000 %}{{ s.split() }}{{ s.split() }}{{ s.split() }}{{ s.split() }}{{ s|list }}",
      "{{ range(99999)|map('string')|join('xxxxxxxxxxxxxxxxxxxxxxxxxxx' * 1000) }}",
      "{{ (range(99999)|list * 500)|sort|unique|list|length }}",
      "{% set x %}{% for i in range(99999) %}{{ 'x' * 100000 }}{% endfor %}{% endset %}",
      "{{ 'x' * 70000000 }}",
  };
  // The default limits take each of these to about a second; smaller ones stop them the same way.
  const TemplateLimits small{8u << 20, 64u << 20, 2'000'000};
  for (const char *source : hostile) {
    std::string message = error_of(source, Json::object(), small);
    EXPECT_EQ(message.rfind("chat template", 0), 0u) << source << "\n" << message.substr(0, 200);
  }
}

TEST(ChatTemplate, DeepSourcesAreRefused) {
  auto times = [](const char *s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i)
      out += s;
    return out;
  };
  for (int n : {1000, 50000}) {
    for (const std::string &source :
         {"{{ " + times("(", n) + "1" + times(")", n) + " }}", "{{ " + times("[", n) + times("]", n) + " }}",
          "{{ " + times("{1:", n) + "1" + times("}", n) + " }}", "{{ " + times("not ", n) + "1 }}",
          "{{ " + times("-", n) + "1 }}", "{{ 1" + times(" + 1", n) + " }}", "{{ 1" + times(" if 1 else 2", n) + " }}",
          "{{ x" + times(".x", n) + " }}", "{{ x" + times("|string", n) + " }}", "{{ x" + times("[0]", n) + " }}",
          "{{ x" + times("()", n) + " }}", "{{ x(" + times("x(", n) + " }}", times("{% if 1 %}", n) + times("{% endif %}", n),
          times("{% for x in y %}", n) + times("{% endfor %}", n), "{{ 1" + times(" and 1", n) + " }}",
          "{{ 1" + times(" ** 1", n) + " }}", "{{ 1" + times(" is odd", n) + " }}", "{% set " + times("(", n) + "x = 1 %}"}) {
      std::string message = error_of(source);
      EXPECT_EQ(message.rfind("chat template", 0), 0u) << source.substr(0, 60) << ": " << message.substr(0, 200);
    }
  }
  // Long is not deep.
  EXPECT_EQ(render("{{ 1" + times(" ~ 1", 5000) + " }}").size(), 5001u);
  EXPECT_EQ(render(times("{{ 1 }}", 20000)).size(), 20000u);
  EXPECT_EQ(render("{{ 1" + times(" <= 2", 3000) + " }}"), "True");
}

TEST(ChatTemplate, LongConversationsAreWithinTheLimits) {
  ChatTemplate t("{% set ns = namespace(last='') %}{% for m in messages %}{% set c = m.content|trim %}"
                 "{% if '</think>' in c %}{% set c = c.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
                 "{% set ns.last = c %}{{ '<|' ~ m.role ~ '|>' + c + '\\n' }}{% endfor %}{{ ns.last|tojson }}");
  Json messages = Json::array();
  for (int i = 0; i < 2000; ++i)
    messages.push_back({{"role", "user"}, {"content", "  " + std::string(5000, 'x') + "</think>\n\n" + std::string(3000, 'y')}});
  std::string out = t.render(make_chat_context(messages, nullptr, false));
  EXPECT_EQ(out.size(), 2000u * (8 + 3000 + 1) + 3002);
}

TEST(ChatTemplate, RendersFromManyThreads) {
  ChatTemplate t("{% macro m(x) %}[{{ x|upper }}]{% endmacro %}{% for i in range(50) %}{{ m('k' ~ n ~ i) }}{% endfor %}");
  std::vector<std::thread> threads;
  std::vector<std::string> out(8);
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&, k] {
      for (int i = 0; i < 20; ++i)
        out[static_cast<size_t>(k)] = t.render({{"n", k}});
    });
  for (auto &thread : threads)
    thread.join();
  for (int k = 0; k < 8; ++k)
    EXPECT_EQ(out[static_cast<size_t>(k)].substr(0, 10), "[K" + std::to_string(k) + "0][K" + std::to_string(k) + "1]");
}

} // namespace
