#include "tools/llmc/text_check.h"

#include "runtime/plan/plan_generated.h"
#include "runtime/support/error.h"
#ifdef LLMC_HAVE_TEXT
#include "runtime/text/jinja/chat_template.h"
#include "runtime/text/tokenizer.h"
#endif

using namespace llmc;

TextCheck llmc::checkText(const llmrt::plan::Plan &plan) {
  TextCheck check;
#ifdef LLMC_HAVE_TEXT
  const llmrt::plan::Text *text = plan.text();
  auto str = [](const flatbuffers::String *s) { return s ? s->str() : std::string(); };
  if (!text || str(text->tokenizer_json()).empty())
    return check;
  try {
    llmrt::text::Tokenizer::from_json(text->tokenizer_json()->string_view());
  } catch (const llmrt::Error &e) {
    check.error = std::string("the tokenizer cannot be used: ") + e.what() + " Without a tokenizer.json, token ids could be served";
    return check;
  }
  try {
    if (std::string source = str(text->chat_template()); !source.empty())
      llmrt::text::ChatTemplate(source, str(text->bos_token()), str(text->eos_token()));
  } catch (const llmrt::Error &e) {
    check.warning = std::string("the chat template cannot be used, so there will be no chat: ") + e.what();
  }
#else
  (void)plan;
#endif
  return check;
}
