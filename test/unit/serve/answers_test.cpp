// The forms of answers: whole and streamed, chat and completions, logprobs, echo, several choices, and the rest of
// the surface.
#include "test/unit/serve/fixture.h"

namespace llmrt::test {
namespace {

class Answers : public ServeTest {
protected:
  // The events of a stream as JSON, without the final [DONE], which is checked.
  std::vector<Json> stream(const std::string &path, Json body) {
    body["stream"] = true;
    Reply reply = post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.headers["content-type"], "text/event-stream; charset=utf-8");
    EXPECT_TRUE(reply.whole);
    auto events = reply.events();
    EXPECT_FALSE(events.empty());
    EXPECT_EQ(events.back(), "[DONE]");
    std::vector<Json> out;
    for (size_t i = 0; i + 1 < events.size(); ++i)
      out.push_back(Json::parse(events[i]));
    return out;
  }
  const Json hi = Json::parse(R"([{"role": "user", "content": "hi"}])");
};

TEST_F(Answers, CompletionForm) {
  engine.script = "abc";
  Reply reply = post("/v1/completions", {{"model", "test-model"}, {"prompt", "xy"}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.headers["content-type"], "application/json");
  Json j = reply.json();
  EXPECT_EQ(j["id"].get<std::string>().substr(0, 5), "cmpl-");
  EXPECT_EQ(j["object"], "text_completion");
  EXPECT_EQ(j["model"], "test-model");
  EXPECT_EQ(j["choices"].dump(),
            R"([{"index":0,"text":"abc","logprobs":null,"finish_reason":"stop","stop_reason":null}])");
  EXPECT_EQ(j["usage"].dump(), R"({"prompt_tokens":2,"completion_tokens":4,"total_tokens":6,)"
                               R"("prompt_tokens_details":{"cached_tokens":1}})");
}

TEST_F(Answers, ChatForm) {
  engine.script = "Hi there";
  Json j = post("/v1/chat/completions", {{"model", "test-model"}, {"messages", hi}}).json();
  EXPECT_EQ(j["id"].get<std::string>().substr(0, 9), "chatcmpl-");
  EXPECT_EQ(j["object"], "chat.completion");
  EXPECT_EQ(j["choices"][0].dump(), R"({"index":0,"message":{"role":"assistant","content":"Hi there","refusal":null},)"
                                    R"("logprobs":null,"finish_reason":"stop","stop_reason":null})");
  EXPECT_EQ(model->tokenizer->decode(engine.last_prompt(), false),
            "<|im_start|>user\nhi<|im_end|><|im_start|>assistant\n");
  // A chat may use what the context leaves; a completion takes 16 tokens unless it asks for more.
  EXPECT_EQ(engine.last_sampling().max_tokens, 512 - engine.last_prompt().size());
  post("/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(engine.last_sampling().max_tokens, 16u);
}

TEST_F(Answers, ChatStream) {
  engine.script = "a👋b";
  auto events = stream("/v1/chat/completions",
                       {{"messages", hi}, {"max_tokens", 5}, {"stream_options", {{"include_usage", true}}}});
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(events[0]["choices"][0].dump(),
            R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})");
  EXPECT_TRUE(events[0]["usage"].is_null());
  EXPECT_EQ(events[1]["choices"][0]["delta"].dump(), R"({"content":"a"})");
  // The four bytes of the emoji come as one piece, with the end.
  EXPECT_EQ(events[2]["choices"][0]["delta"].dump(), R"({"content":"👋"})");
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events[3]["choices"].dump(), "[]");
  EXPECT_EQ(events[3]["usage"]["completion_tokens"], 5);
  for (const auto &event : events)
    EXPECT_EQ(event["id"], events[0]["id"]);
}

TEST_F(Answers, CompletionStream) {
  engine.script = "abc";
  auto events = stream("/v1/completions", {{"prompt", "x"}});
  ASSERT_EQ(events.size(), 4u);
  std::string text;
  for (const auto &event : events) {
    EXPECT_FALSE(event.contains("usage"));
    EXPECT_EQ(event["object"], "text_completion");
    text += event["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, "abc");
  EXPECT_TRUE(events[2]["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "stop");
}

TEST_F(Answers, BrokenCharacterAtTheEndIsRepaired) {
  engine.script = "a👋";
  EXPECT_EQ(post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 3}}).json()["choices"][0]["text"], "a\ufffd");
}

// Case 25: nothing of a stop string leaks, nothing else is swallowed, wherever the pieces are cut.
TEST_F(Answers, StopStrings) {
  engine.script = "one two STOP three";
  for (bool streamed : {false, true}) {
    auto ask = [&](const Json &stop, const Json &more = Json::object()) {
      Json body = {{"prompt", "x"}, {"max_tokens", 50}, {"stop", stop}};
      body.update(more);
      if (!streamed)
        return std::make_pair(post("/v1/completions", body).json()["choices"][0]["text"].get<std::string>(),
                              post("/v1/completions", body).json()["choices"][0]);
      std::string text;
      Json last;
      for (const auto &event : stream("/v1/completions", body)) {
        text += event["choices"][0]["text"].get<std::string>();
        EXPECT_EQ(engine.script.compare(0, text.size(), text), 0);
        last = event["choices"][0];
      }
      return std::make_pair(text, last);
    };
    auto [text, choice] = ask("STOP");
    EXPECT_EQ(text, "one two ");
    EXPECT_EQ(choice["finish_reason"], "stop");
    EXPECT_EQ(choice["stop_reason"], "STOP");
    EXPECT_EQ(ask("STOP it").first, "one two STOP three");
    EXPECT_EQ(ask(Json::array({"zzz", "two", "three"})).first, "one ");
    EXPECT_EQ(ask("e!").first, "one two STOP three");
    EXPECT_EQ(ask("two", {{"include_stop_str_in_output", true}}).first, "one two");
  }
  // The engine is told to end what nobody wants any more.
  engine.script = std::string(100, 'a') + "STOP" + std::string(100000, 'b');
  engine.step = std::chrono::microseconds(200);
  model->max_model_len = 100000;
  post("/v1/completions", {{"prompt", "x"}, {"max_tokens", 90000}, {"stop", "STOP"}});
  EXPECT_TRUE(eventually([&] { return engine.stats().running == 0; }));
  EXPECT_GE(engine.cancelled, 1);
}

TEST_F(Answers, StopTokensAndMinTokens) {
  engine.script = "abc";
  Json j = post("/v1/completions", {{"prompt", "x"}, {"stop_token_ids", {kEos}}, {"return_token_ids", true}}).json();
  EXPECT_EQ(j["choices"][0]["stop_reason"], kEos);
  EXPECT_EQ(j["choices"][0]["token_ids"].dump(), "[97,98,99,256]");
  EXPECT_EQ(j["choices"][0]["prompt_token_ids"].dump(), "[120]");
  j = post("/v1/completions", {{"prompt", "x"}, {"min_tokens", 5}}).json();
  EXPECT_EQ(j["choices"][0]["text"], "abcab");
  j = post("/v1/completions", {{"prompt", "x"}, {"ignore_eos", true}, {"max_tokens", 7}}).json();
  EXPECT_EQ(j["choices"][0]["text"], "abcabca");
}

TEST_F(Answers, SamplingReachesTheEngine) {
  post("/v1/completions",
       {{"prompt", "x"}, {"temperature", 0.5}, {"top_p", 0.9}, {"top_k", 40}, {"min_p", 0.1}, {"seed", -3},
        {"presence_penalty", 1}, {"frequency_penalty", -1.5}, {"repetition_penalty", 1.25},
        {"logit_bias", {{"65", 5}, {"66", -100}}}, {"max_tokens", 9}});
  SamplingParams p = engine.last_sampling();
  EXPECT_FLOAT_EQ(p.temperature, 0.5f);
  EXPECT_FLOAT_EQ(p.top_p, 0.9f);
  EXPECT_EQ(p.top_k, 40);
  EXPECT_FLOAT_EQ(p.min_p, 0.1f);
  EXPECT_EQ(p.seed, static_cast<uint64_t>(-3));
  EXPECT_FLOAT_EQ(p.presence_penalty, 1);
  EXPECT_FLOAT_EQ(p.frequency_penalty, -1.5f);
  EXPECT_FLOAT_EQ(p.repetition_penalty, 1.25f);
  EXPECT_EQ(p.logit_bias, (std::vector<std::pair<int32_t, float>>{{65, 5.f}, {66, -100.f}}));
  EXPECT_EQ(p.max_tokens, 9u);
  EXPECT_EQ(p.logprobs, -1);
  model->defaults.temperature = 0.7f;
  model->defaults.top_k = 12;
  post("/v1/completions", {{"prompt", "x"}, {"temperature", nullptr}});
  EXPECT_FLOAT_EQ(engine.last_sampling().temperature, 0.7f);
  EXPECT_EQ(engine.last_sampling().top_k, 12);
}

TEST_F(Answers, NullsAndUnknownFieldsAreFine) {
  Json body = {{"messages", hi}, {"max_tokens", 3}, {"some_field_of_the_future", {{"a", {1}}}}};
  for (const char *name :
       {"temperature", "top_p", "n", "stop", "seed", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty",
        "logit_bias", "stream", "stream_options", "user", "max_completion_tokens", "response_format", "tools",
        "tool_choice", "top_k", "min_p", "stop_token_ids", "ignore_eos", "min_tokens", "chat_template_kwargs", "model"})
    body[name] = nullptr;
  Reply reply = post("/v1/chat/completions", body);
  EXPECT_EQ(reply.status, 200) << reply.body;
}

TEST_F(Answers, BothMaxTokens) {
  auto tokens = [&](const Json &more) {
    Json body = {{"messages", hi}};
    body.update(more);
    return post("/v1/chat/completions", body).json()["usage"]["completion_tokens"].get<int>();
  };
  EXPECT_EQ(tokens({{"max_tokens", 5}}), 5);
  EXPECT_EQ(tokens({{"max_completion_tokens", 4}}), 4);
  EXPECT_EQ(tokens({{"max_tokens", 5}, {"max_completion_tokens", 3}}), 3);
  EXPECT_EQ(tokens({{"max_tokens", 2}, {"max_completion_tokens", 3}}), 2);
  EXPECT_EQ(post("/v1/chat/completions", {{"messages", hi}, {"max_tokens", 5}, {"max_completion_tokens", 600}})
                .json()["error"]["code"],
            "context_length_exceeded");
}

TEST_F(Answers, PromptsInEveryForm) {
  auto choices = [&](const Json &prompt, const Json &more = Json::object()) {
    Json body = {{"prompt", prompt}, {"max_tokens", 3}, {"echo", true}};
    body.update(more);
    Json j = post("/v1/completions", body).json();
    std::string out;
    for (const auto &choice : j["choices"])
      out += std::to_string(choice["index"].get<int>()) + choice["text"].get<std::string>() + "|";
    return out + j["usage"]["prompt_tokens"].dump() + "+" + j["usage"]["completion_tokens"].dump();
  };
  EXPECT_EQ(choices("ab"), "0abHel|2+3");
  EXPECT_EQ(choices({97, 98}), "0abHel|2+3");
  EXPECT_EQ(choices({"ab", "c"}), "0abHel|1cHel|3+6");
  EXPECT_EQ(choices(Json::array({Json::array({97, 98}), Json::array({99})})), "0abHel|1cHel|3+6");
  EXPECT_EQ(choices({"ab", "c"}, {{"n", 2}}), "0abHel|1abHel|2cHel|3cHel|3+12");
}

TEST_F(Answers, SeveralChoicesHaveSeedsOfTheirOwn) {
  post("/v1/completions", {{"prompt", "x"}, {"n", 3}, {"seed", 7}});
  EXPECT_EQ(engine.last_sampling().seed, 9u);
  post("/v1/completions", {{"prompt", {"x", "y", "z"}}, {"seed", 7}});
  EXPECT_EQ(engine.last_sampling().seed, 7u);
}

TEST_F(Answers, SeveralChoicesStreamed) {
  engine.script = "abcdef";
  std::map<int, std::string> texts, reasons;
  int roles = 0;
  for (const auto &event : stream("/v1/chat/completions", {{"messages", hi}, {"n", 3}, {"max_tokens", 4}}))
    for (const auto &choice : event["choices"]) {
      int i = choice["index"].get<int>();
      texts[i] += choice["delta"].value("content", "");
      roles += choice["delta"].contains("role");
      if (!choice["finish_reason"].is_null())
        reasons[i] = choice["finish_reason"].get<std::string>();
    }
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "abcd"}, {1, "abcd"}, {2, "abcd"}}));
  EXPECT_EQ(reasons.size(), 3u);
  EXPECT_EQ(roles, 3);
}

TEST_F(Answers, ChatLogprobs) {
  engine.script = "a\xc3\xa9";
  Json j = post("/v1/chat/completions", {{"messages", hi}, {"max_tokens", 2}, {"logprobs", true}, {"top_logprobs", 2}}).json();
  EXPECT_EQ(j["choices"][0]["logprobs"].dump(),
            R"({"content":[{"token":"a","logprob":-0.25,"bytes":[97],"top_logprobs":[)"
            R"({"token":"a","logprob":-0.25,"bytes":[97]},{"token":"b","logprob":-1.25,"bytes":[98]}]},)"
            R"({"token":"�","logprob":-0.25,"bytes":[195],"top_logprobs":[)"
            R"({"token":"�","logprob":-0.25,"bytes":[195]},{"token":"�","logprob":-1.25,"bytes":[196]}]}]})");
  size_t tokens = 0;
  for (const auto &event : stream("/v1/chat/completions", {{"messages", hi}, {"max_tokens", 3}, {"logprobs", true}}))
    if (!event["choices"][0]["logprobs"].is_null())
      tokens += event["choices"][0]["logprobs"]["content"].size();
  EXPECT_EQ(tokens, 3u);
}

TEST_F(Answers, EchoAndLogprobs) {
  engine.script = "é!";
  Json choice = post("/v1/completions", {{"prompt", "aé"}, {"max_tokens", 3}, {"echo", true}, {"logprobs", 1}})
                    .json()["choices"][0];
  EXPECT_EQ(choice["text"], "aéé!");
  const Json &lp = choice["logprobs"];
  EXPECT_EQ(lp["tokens"].size(), 6u);
  EXPECT_EQ(lp["text_offset"].dump(), "[0,1,2,2,3,3]");
  EXPECT_TRUE(lp["token_logprobs"][0].is_null());
  EXPECT_TRUE(lp["top_logprobs"][0].is_null());
  EXPECT_EQ(lp["token_logprobs"][5].dump(), "-0.25");
  EXPECT_EQ(lp["top_logprobs"][5].dump(), R"({"!":-0.25})");
  EXPECT_EQ(lp["tokens"][5], "!");
  // Special tokens are in the text of a prompt that was given as text.
  choice = post("/v1/completions", {{"prompt", "a<eos>b"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 0}}).json()["choices"][0];
  EXPECT_EQ(choice["text"], "a<eos>b");
  EXPECT_EQ(choice["logprobs"]["text_offset"].dump(), "[0,1,6]");
  choice = post("/v1/completions", {{"prompt", {97, 256, 98}}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 0}}).json()["choices"][0];
  EXPECT_EQ(choice["text"], "ab");
  EXPECT_EQ(choice["logprobs"]["text_offset"].dump(), "[0,1,1]");
  // Only the prompt.
  Json alone = post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 0}}).json();
  EXPECT_EQ(alone["choices"][0]["text"], "abc");
  EXPECT_EQ(alone["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(alone["choices"][0]["logprobs"]["tokens"].size(), 3u);
  EXPECT_EQ(alone["usage"]["completion_tokens"], 0);
  int before = engine.submitted;
  alone = post("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 0}, {"echo", true}}).json();
  EXPECT_EQ(alone["choices"][0]["text"], "abc");
  EXPECT_EQ(engine.submitted, before) << "nothing had to be computed";
  auto events = stream("/v1/completions", {{"prompt", "abc"}, {"max_tokens", 0}, {"echo", true}});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "abc");
}

TEST_F(Answers, TokenIdsInStreams) {
  engine.script = "é";
  std::vector<int> ids;
  auto events = stream("/v1/completions", {{"prompt", "x"}, {"return_token_ids", true}});
  for (const auto &event : events)
    for (int id : event["choices"][0]["token_ids"])
      ids.push_back(id);
  EXPECT_EQ(ids, (std::vector<int>{0xc3, 0xa9, kEos}));
  EXPECT_EQ(events[0]["choices"][0]["prompt_token_ids"].dump(), "[120]");
  EXPECT_FALSE(events[1]["choices"][0].contains("prompt_token_ids"));
  events = stream("/v1/chat/completions", {{"messages", hi}, {"return_token_ids", true}});
  EXPECT_EQ(events[0]["prompt_token_ids"].size(), engine.last_prompt().size());
  Json whole = post("/v1/chat/completions", {{"messages", hi}, {"return_token_ids", true}}).json();
  EXPECT_EQ(whole["prompt_token_ids"].size(), engine.last_prompt().size());
  EXPECT_EQ(whole["choices"][0]["token_ids"].size(), 3u);
}

TEST_F(Answers, ToolsReachTheTemplate) {
  Json tools = Json::parse(R"([{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}])");
  auto prompt = [&](const Json &more) {
    Json body = {{"messages", hi}, {"max_tokens", 1}};
    body.update(more);
    Reply reply = post("/v1/chat/completions", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return model->tokenizer->decode(engine.last_prompt(), false);
  };
  EXPECT_NE(prompt({{"tools", tools}}).find(R"([{"type": "function", "function": {"name": "f", "parameters": {"z": 1, "a": 2}}}])"),
            std::string::npos);
  EXPECT_EQ(prompt({{"tools", tools}, {"tool_choice", "none"}}).find("function"), std::string::npos);
  EXPECT_EQ(prompt({{"tools", Json::array()}, {"tool_choice", "auto"}}).find("function"), std::string::npos);
  EXPECT_NE(prompt({{"chat_template_kwargs", {{"extra", "EXTRA"}}}}).find("EXTRA"), std::string::npos);
  Json calls = Json::parse(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
    {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"w","arguments":"{\"city\": \"Oslo\"}"}}]},
    {"role":"tool","tool_call_id":"1","content":"rain"}])");
  EXPECT_EQ(prompt({{"messages", calls}}), "<|im_start|>user\na\nb<|im_end|><|im_start|>assistant\nwOslo<|im_end|>"
                                           "<|im_start|>tool\nrain<|im_end|><|im_start|>assistant\n");
  EXPECT_EQ(prompt({{"add_generation_prompt", false}}), "<|im_start|>user\nhi<|im_end|>");
}

// Messages of the assistant that call tools have no content, and many templates know of no tools; some want the arguments as text.
TEST_F(Answers, FormsOfToolCalls) {
  const std::vector<std::pair<const char *, const char *>> templates = {
      {"{% for m in messages %}{{ m['role'] + ':' + m['content'] + '.' }}{% endfor %}", "user:x.assistant:.tool:rain."},
      {"{% for m in messages %}{{ m.role }}:{{ m.content }}.{% endfor %}", "user:x.assistant:.tool:rain."},
      {"{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.name }}{% else %}{{ m.content + '.' }}{% endif %}{% endfor %}",
       "x.wrain."},
      {"{% for m in messages %}{{ m.content if m.content is defined else m.tool_calls[0].function.name }}.{% endfor %}", "x.w.rain."},
      {"{% for m in messages %}{{ m.content if not m.tool_calls else m.tool_calls[0].function.arguments.city }}.{% endfor %}", "x.Oslo.rain."},
      {"{% for m in messages %}{{ m.content if not m.tool_calls else m.tool_calls[0].function.arguments|tojson }}.{% endfor %}",
       R"(x.{"city": "Oslo"}.rain.)"},
      {"{% for m in messages %}{{ m.content if not m.tool_calls else '<' + m.tool_calls[0].function.arguments }}.{% endfor %}",
       R"(x.<{ "city":"Oslo" }.rain.)"},
      {"{% for m in messages %}{% if m.content is none %}{{ '<' + m.tool_calls[0].function.arguments }}{% else %}{{ m.content + '.' }}{% endif %}{% endfor %}",
       R"(x.<{ "city":"Oslo" }rain.)"}};
  Json call = {{"role", "assistant"},
               {"tool_calls", Json::parse(R"([{"id":"1","type":"function","function":{"name":"w","arguments":"{ \"city\":\"Oslo\" }"}}])")}};
  Json null_call = call;
  null_call["content"] = nullptr;
  for (const auto &[source, text] : templates) {
    model->chat_template = std::make_shared<const text::ChatTemplate>(source);
    for (const Json &assistant : {call, null_call}) {
      Json messages = {{{"role", "user"}, {"content", "x"}}, assistant, {{"role", "tool"}, {"tool_call_id", "1"}, {"content", "rain"}}};
      Reply reply = post("/v1/chat/completions", {{"messages", messages}, {"max_tokens", 1}});
      ASSERT_EQ(reply.status, 200) << source << reply.body;
      EXPECT_EQ(model->tokenizer->decode(engine.last_prompt(), false), text) << source;
    }
  }
  model->chat_template = std::make_shared<const text::ChatTemplate>("{{ messages[0].nothing.at.all }}");
  Reply reply = post("/v1/chat/completions", {{"messages", {call}}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("has no attribute 'nothing'"), std::string::npos) << reply.body;
}

TEST_F(Answers, ModelsHealthVersion) {
  Json list = get("/v1/models").json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "test-model");
  EXPECT_EQ(list["data"][0]["object"], "model");
  EXPECT_EQ(list["data"][0]["max_model_len"], 512);
  EXPECT_EQ(get("/v1/models/test-model").json(), list["data"][0]);
  EXPECT_EQ(get("/v1/models/test%2Dmodel?x=y").status, 200);
  EXPECT_EQ(get("/v1/models/other").json()["error"]["code"], "model_not_found");
  EXPECT_EQ(get("/version").json()["version"], "1.2.3");
  EXPECT_EQ(get("/health").status, 200);
  engine.stalled = 1e4;
  EXPECT_EQ(get("/health").status, 503);
  engine.stalled = 0;
  engine.die("rank 3 is gone");
  Reply reply = get("/health");
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.body.find("rank 3 is gone"), std::string::npos);
  EXPECT_EQ(post("/v1/completions", {{"prompt", "x"}}).status, 503);
}

TEST_F(Answers, TokenizeAndDetokenize) {
  EXPECT_EQ(post("/tokenize", {{"model", "test-model"}, {"prompt", "hé<eos>"}}).json().dump(),
            R"({"count":4,"max_model_len":512,"tokens":[104,195,169,256]})");
  EXPECT_EQ(post("/tokenize", {{"prompt", ""}}).json()["count"], 0);
  EXPECT_EQ(post("/tokenize", {{"messages", hi}, {"add_generation_prompt", false}}).json()["tokens"].dump(),
            "[257,117,115,101,114,10,104,105,258]");
  EXPECT_EQ(post("/tokenize", {{"prompt", "a "}, {"return_token_strs", true}}).json()["token_strs"].dump(), R"(["a","Ġ"])");
  EXPECT_EQ(post("/detokenize", {{"tokens", {104, 195, 169, 256}}}).json().dump(), R"({"prompt":"hé<eos>"})");
  EXPECT_EQ(post("/detokenize", {{"tokens", Json::array()}}).json().dump(), R"({"prompt":""})");
}

TEST_F(Answers, BrowsersAndHeads) {
  Reply options_reply = Client(port()).get("/v1/chat/completions", "Origin: http://x\r\n", "OPTIONS");
  EXPECT_EQ(options_reply.status, 204);
  EXPECT_EQ(options_reply.headers["access-control-allow-origin"], "*");
  EXPECT_NE(options_reply.headers["access-control-allow-methods"].find("POST"), std::string::npos);
  EXPECT_NE(options_reply.headers["access-control-allow-headers"].find("Authorization"), std::string::npos);
  // What OpenAI's client asks for in a browser.
  const std::string wanted = "authorization,content-type,x-stainless-arch,x-stainless-os,x-stainless-retry-count";
  options_reply = Client(port()).get("/v1/chat/completions", "Origin: http://x\r\nAccess-Control-Request-Method: POST\r\n"
                                     "Access-Control-Request-Headers: " + wanted + "\r\n", "OPTIONS");
  EXPECT_EQ(options_reply.status, 204);
  EXPECT_EQ(options_reply.headers["access-control-allow-headers"], wanted);
  Client client(port());
  Reply head = client.get("/v1/models", {}, "HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.headers["content-length"], "0");
  EXPECT_EQ(client.get("/version").json()["version"], "1.2.3") << "the head's body was not sent";
}

TEST_F(Answers, ErrorMidStreamIsAnEvent) {
  engine.fail_with = "rank 1 stopped";
  Reply reply = post("/v1/completions", {{"prompt", "x"}, {"stream", true}});
  EXPECT_EQ(reply.status, 200);
  auto events = reply.events();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(Json::parse(events[3])["error"]["message"], "rank 1 stopped");
  EXPECT_EQ(events[4], "[DONE]");
  reply = post("/v1/completions", {{"prompt", "x"}});
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.json()["error"]["message"], "rank 1 stopped");
}

TEST_F(Answers, WithoutTokenizerIdsStillWork) {
  model->tokenizer = nullptr;
  Json j = post("/v1/completions", {{"prompt", {1, 2}}, {"max_tokens", 2}, {"return_token_ids", true}, {"logprobs", 1}}).json();
  EXPECT_EQ(j["choices"][0]["token_ids"].dump(), "[72,101]");
  EXPECT_EQ(j["choices"][0]["logprobs"]["tokens"][0], "token_id:72");
  EXPECT_EQ(post("/v1/completions", {{"prompt", "x"}}).status, 400);
  EXPECT_EQ(post("/detokenize", {{"tokens", {1}}}).status, 400);
}

} // namespace
} // namespace llmrt::test
