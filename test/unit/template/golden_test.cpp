// Compares rendering with goldens made by jinja2 under transformers (test/golden/template/make_golden.py): byte for
// byte where it renders, the message where raise_exception was called, and a failure where Python fails.
#include "runtime/text/jinja/chat_template.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace {

using Json = nlohmann::ordered_json;
using llmrt::text::ChatTemplate;
using llmrt::text::TemplateError;
using llmrt::text::TemplateRaised;

const char *golden_folder() {
  const char *folder = std::getenv("LLMRT_TEMPLATE_GOLDENS"); // another set, made with --out
  return folder ? folder : LLMC_SOURCE_DIR "/test/golden/template";
}

std::string read_file(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Json read_json(const std::string &name) { return Json::parse(read_file(std::string(golden_folder()) + "/" + name)); }

std::tm golden_time() {
  std::tm now{};
  now.tm_year = 2024 - 1900;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 9;
  now.tm_min = 5;
  now.tm_sec = 3;
  now.tm_isdst = -1;
  std::mktime(&now); // fills in the weekday and the day of the year
  return now;
}

// Renders and compares with a case's "out", "raised" or "error". Returns what differs, or nothing.
template <typename Render> std::string difference(const Json &expected, Render render) {
  std::string got, kind = "out";
  try {
    got = render();
  } catch (const TemplateRaised &e) {
    kind = "raised";
    got = e.what();
  } catch (const TemplateError &e) {
    kind = "error";
    got = e.what();
  }
  if (expected.contains("any"))
    return {};
  for (const char *wanted : {"out", "raised"}) {
    if (!expected.contains(wanted))
      continue;
    auto text = expected[wanted].get<std::string>();
    if (kind == wanted && got == text)
      return {};
    return "expected " + std::string(wanted) + ": " + Json(text).dump() + "\n     got " + kind + ": " + Json(got).dump();
  }
  if (kind == "error")
    return {};
  return "expected " + expected["error"].get<std::string>() + "\n     got " + kind + ": " + Json(got).dump();
}

TEST(TemplateGolden, Snippets) {
  Json golden = read_json("snippets.json");
  const std::tm now = golden_time();
  size_t cases = 0, failed = 0;
  for (const auto &c : golden["cases"]) {
    ++cases;
    auto source = c["source"].get<std::string>();
    auto diff = difference(c, [&] { return ChatTemplate(source).render(golden["context"], now); });
    if (!diff.empty()) {
      ++failed;
      ADD_FAILURE() << "snippet " << Json(source).dump() << "\n" << diff;
    }
  }
  EXPECT_GE(cases, 300u);
  EXPECT_EQ(failed, 0u) << "of " << cases;
}

TEST(TemplateGolden, Chats) {
  Json golden = read_json("chats.json");
  std::map<std::string, Json> conversations;
  for (const auto &c : golden["conversations"])
    conversations[c["name"].get<std::string>()] = c;
  std::map<std::string, ChatTemplate> templates;
  const std::tm now = golden_time();
  size_t rendered = 0, raised = 0, failed = 0;
  for (const auto &c : golden["cases"]) {
    auto name = c["template"].get<std::string>();
    if (!templates.count(name)) {
      Json tokens = golden["tokens"].value(name, Json::object());
      const char *folder = std::getenv("LLMRT_TEMPLATE_SOURCES");
      templates.emplace(name, ChatTemplate(read_file((folder ? folder : golden_folder()) + ("/" + name + ".jinja")),
                                           tokens.value("bos_token", ""), tokens.value("eos_token", "")));
    }
    const Json &chat = conversations.at(c["conversation"].get<std::string>());
    auto diff = difference(c, [&] {
      Json context = llmrt::text::make_chat_context(chat["messages"], chat.value("tools", Json()),
                                                    chat["add_generation_prompt"].get<bool>(),
                                                    chat.value("kwargs", Json::object()));
      return templates.at(name).render(context, now);
    });
    rendered += c.contains("out");
    raised += c.contains("raised");
    if (!diff.empty()) {
      ++failed;
      ADD_FAILURE() << name << " with " << c["conversation"] << "\n" << diff;
    }
  }
  EXPECT_GE(rendered, 500u);
  EXPECT_GE(raised, 20u);
  EXPECT_EQ(failed, 0u);
}

} // namespace
