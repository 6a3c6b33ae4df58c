// What clients get wrong in well-formed HTTP: each gets a 4xx in OpenAI's form that names the field, and costs the
// engine nothing.
#include "test/unit/serve/fixture.h"

namespace llmrt::test {
namespace {

class BadRequests : public ServeTest {
protected:
  // The error object, after checks of its form.
  Json error_of(const Reply &reply, int status, const std::string &what) {
    EXPECT_EQ(reply.status, status) << what << ": " << reply.body;
    if (reply.status != status)
      return Json::object();
    Json error = reply.json()["error"];
    EXPECT_TRUE(error.contains("message") && error.contains("type") && error.contains("param") && error.contains("code"))
        << error.dump();
    EXPECT_GT(error["message"].get<std::string>().size(), 10u);
    return error;
  }
  const Json hi = Json::parse(R"([{"role": "user", "content": "hi"}])");
};

TEST_F(BadRequests, ChatFields) {
  const std::pair<const char *, const char *> bad[] = {
      {"temperature", "-1"}, {"temperature", "\"hot\""}, {"temperature", "2.5"}, {"temperature", "[1]"}, {"top_p", "0"},
      {"top_p", "1.5"}, {"top_p", "-0.1"}, {"top_k", "-7"}, {"top_k", "1.5"}, {"top_k", "99999999999"}, {"min_p", "2"},
      {"min_p", "-1"}, {"n", "0"}, {"n", "-1"}, {"n", "1.5"}, {"n", "1000"}, {"n", "true"}, {"max_tokens", "-5"},
      {"max_tokens", "0"}, {"max_tokens", "\"many\""}, {"max_tokens", "1e30"}, {"max_completion_tokens", "0.5"},
      {"max_completion_tokens", "0"}, {"stop", "5"}, {"stop", "[1]"}, {"stop", "[\"\"]"}, {"stop", "{}"}, {"seed", "\"x\""},
      {"seed", "1.5"}, {"seed", "18446744073709551615"}, {"presence_penalty", "99"}, {"frequency_penalty", "\"a\""},
      {"repetition_penalty", "0"}, {"repetition_penalty", "-1"}, {"logit_bias", "[1]"}, {"logit_bias", "{\"x\": 1}"},
      {"logit_bias", "{\"260\": 1}"}, {"logit_bias", "{\"-1\": 1}"}, {"logit_bias", "{\"1\": \"a\"}"},
      {"logit_bias", "{\"1\": 101}"}, {"logit_bias", "{\" 1\": 1}"}, {"logprobs", "\"yes\""}, {"logprobs", "1"},
      {"top_logprobs", "-1"}, {"top_logprobs", "21"}, {"top_logprobs", "3"}, {"stream", "\"yes\""}, {"stream", "1"},
      {"stream_options", "1"}, {"stream_options", "{\"include_usage\": true}"}, {"stop_token_ids", "[\"a\"]"},
      {"stop_token_ids", "[260]"}, {"stop_token_ids", "[-1]"}, {"stop_token_ids", "5"}, {"messages", "[]"},
      {"messages", "\"hi\""}, {"messages", "null"}, {"messages", "[5]"}, {"messages", "[{\"content\": \"no role\"}]"},
      {"messages", "[{\"role\": \"user\", \"content\": 5}]"}, {"messages", "[{\"role\": 5, \"content\": \"x\"}]"},
      {"messages", "[{\"role\": \"user\"}]"}, {"messages", "[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]"},
      {"messages", "[{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]"},
      {"messages", "[{\"role\": \"user\", \"content\": [\"x\"]}]"},
      {"messages", "[{\"role\": \"assistant\", \"tool_calls\": [{}]}]"},
      {"messages", "[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": \"{\"}}]}]"},
      {"messages", "[{\"role\": \"user\", \"content\": \"x\", \"tool_calls\": []}]"}, {"model", "5"},
      {"response_format", "{\"type\": \"json_object\"}"}, {"response_format", "\"json\""}, {"response_format", "{}"},
      {"tools", "5"}, {"tools", "[5]"}, {"tools", "[{\"type\": \"function\"}]"}, {"tool_choice", "\"required\""},
      {"tool_choice", "{\"type\": \"function\", \"function\": {\"name\": \"f\"}}"}, {"tool_choice", "\"maybe\""},
      {"chat_template", "\"{{ x }}\""}, {"chat_template_kwargs", "5"}, {"chat_template_kwargs", "{\"messages\": []}"},
      {"continue_final_message", "true"}, {"ignore_eos", "5"}, {"min_tokens", "-1"}, {"min_tokens", "10"},
      {"best_of", "5"}, {"user", "5"}, {"return_token_ids", "\"x\""}, {"skip_special_tokens", "0"},
      {"add_generation_prompt", "\"no\""}};
  for (auto [field, value] : bad) {
    Json body = {{"messages", hi}, {"max_tokens", 2}};
    body[field] = Json::parse(value);
    std::string what = std::string(field) + " = " + value;
    Json error = error_of(post("/v1/chat/completions", body), 400, what);
    EXPECT_NE(error.dump().find(field), std::string::npos) << what << ": " << error.dump();
    EXPECT_EQ(error["type"], "invalid_request_error");
  }
  EXPECT_EQ(engine.submitted, 0);
  expect_alive();
}

TEST_F(BadRequests, Prompts) {
  for (const char *prompt : {"null", "5", "[]", "[[]]", "[\"a\", 1]", "[1, \"a\"]", "[-1]", "[260]", "[[1, 2], [999999]]",
                             "{\"a\": 1}", "[1.5]", "[1e300]", "[18446744073709551615]", "[null]", "[[1], 2]", "[[[1]]]",
                             "true", "\"\"", "[\"\"]", "[true]"}) {
    Json body = {{"prompt", Json::parse(prompt)}, {"max_tokens", 2}};
    error_of(post("/v1/completions", body), 400, prompt);
  }
  for (const char *field : {"\"logprobs\": true", "\"logprobs\": 21", "\"logprobs\": -1", "\"echo\": 1", "\"suffix\": \"x\"",
                            "\"max_tokens\": -1"})
    error_of(Client(port()).post("/v1/completions", std::string("{\"prompt\": \"x\", ") + field + "}"), 400, field);
  EXPECT_EQ(engine.submitted, 0);
}

TEST_F(BadRequests, ContextLength) {
  auto ask = [&](size_t prompt, const Json &max_tokens) {
    return post("/v1/completions", {{"prompt", std::vector<int>(prompt, 65)}, {"max_tokens", max_tokens}});
  };
  Json error = error_of(ask(500, 100), 400, "500 + 100");
  EXPECT_EQ(error["code"], "context_length_exceeded");
  for (const char *number : {"512", "500", "100", "600"})
    EXPECT_NE(error["message"].get<std::string>().find(number), std::string::npos) << error.dump();
  EXPECT_EQ(error_of(ask(512, nullptr), 400, "512")["code"], "context_length_exceeded");
  EXPECT_EQ(error_of(ask(5000, nullptr), 400, "5000")["code"], "context_length_exceeded");
  EXPECT_EQ(error_of(ask(513, 0), 400, "513 + 0")["code"], "context_length_exceeded");
  EXPECT_EQ(ask(500, 12).status, 200);
  EXPECT_EQ(ask(508, nullptr).json()["usage"]["total_tokens"], 512);
  EXPECT_EQ(ask(512, 0).status, 200);
  Json chat = Json::parse(R"([{"role": "user", "content": ""}])");
  chat[0]["content"] = std::string(600, 'x');
  EXPECT_EQ(error_of(post("/v1/chat/completions", {{"messages", chat}}), 400, "chat")["param"], "messages");
}

TEST_F(BadRequests, ModelsAndRoutes) {
  Json error = error_of(post("/v1/completions", {{"model", "gpt-17"}, {"prompt", "x"}}), 404, "model");
  EXPECT_EQ(error["code"], "model_not_found");
  EXPECT_NE(error["message"].get<std::string>().find("gpt-17"), std::string::npos);
  error_of(post("/v1/chat/completions", {{"model", "gpt-17"}, {"messages", hi}}), 404, "chat model");
  error_of(post("/tokenize", {{"model", "gpt-17"}, {"prompt", "x"}}), 404, "tokenize model");
  error_of(get("/v1/nothing"), 404, "path");
  error_of(get("/"), 404, "root");
  error_of(get("/v1/models/"), 404, "no model");
  error_of(get("/v1/models/" + std::string(5000, 'x')), 404, "long model");
  Reply reply = get("/v1/chat/completions");
  error_of(reply, 405, "method");
  EXPECT_EQ(reply.headers["allow"], "POST, OPTIONS");
  error_of(post("/health", {}), 405, "post health");
  error_of(Client(port()).get("/v1/models", {}, "DELETE"), 405, "delete");
}

TEST_F(BadRequests, Detokenize) {
  for (const char *tokens : {"[-1]", "[260]", "[\"a\"]", "null", "5", "[1.5]"})
    error_of(Client(port()).post("/detokenize", std::string("{\"tokens\": ") + tokens + "}"), 400, tokens);
  error_of(Client(port()).post("/detokenize", "{}"), 400, "none");
  error_of(Client(port()).post("/tokenize", "{}"), 400, "none");
  error_of(Client(port()).post("/tokenize", "{\"prompt\": 5}"), 400, "number");
}

// Case 24, and a model without a template.
TEST_F(BadRequests, Templates) {
  Json wizard = Json::parse(R"([{"role": "wizard", "content": "x"}])");
  Json error = error_of(post("/v1/chat/completions", {{"messages", wizard}}), 400, "wizard");
  EXPECT_EQ(error["message"], "No wizards here ☃");
  model->chat_template = nullptr;
  model->no_chat_reason = "The model has no chat template.";
  error = error_of(post("/v1/chat/completions", {{"messages", hi}}), 400, "none");
  EXPECT_EQ(error["message"], "The model has no chat template.");
  expect_alive();
}

TEST_F(BadRequests, QueueFull) {
  engine.max_active = 0;
  Reply reply = post("/v1/completions", {{"prompt", "x"}});
  error_of(reply, 429, "full");
  EXPECT_EQ(reply.headers["retry-after"], "1");
  // Some of several choices fit: they do not stay behind.
  engine.max_active = 2;
  engine.step = std::chrono::milliseconds(2);
  for (bool stream : {false, true}) {
    reply = post("/v1/completions", {{"prompt", "x"}, {"n", 5}, {"max_tokens", 400}, {"ignore_eos", true}, {"stream", stream}});
    error_of(reply, 429, "full for some");
    EXPECT_TRUE(eventually([&] { return engine.stats().running == 0; }));
  }
  expect_alive();
}

TEST_F(BadRequests, ApiKey) {
  options.api_key = "secret";
  auto with = [&](const std::string &header) { return Client(port()).get("/v1/models", header).status; };
  EXPECT_EQ(with("Authorization: Bearer secret\r\n"), 200);
  EXPECT_EQ(with("authorization: bearer secret\r\n"), 200);
  for (const char *header : {"", "Authorization: Bearer secre\r\n", "Authorization: Bearer secrets\r\n",
                             "Authorization: secret\r\n", "Authorization: Bearer \r\n", "Authorization: Basic secret\r\n",
                             "Authorization: Bearer SECRET\r\n"})
    EXPECT_EQ(with(header), 401) << header;
  error_of(post("/v1/completions", {{"prompt", "x"}}), 401, "post");
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/version").status, 200);
}

} // namespace
} // namespace llmrt::test
