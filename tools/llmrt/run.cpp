// `llmrt run`: answers prompts on the terminal, once.
#include "runtime/support/error.h"
#include "tools/llmrt/answer.h"
#include "tools/llmrt/commands.h"
#include "tools/llmrt/npy.h"
#include "tools/llmrt/prompts.h"
#include "tools/llmrt/sampling_flags.h"
#include "tools/llmrt/startup.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace llmrt::tool {
namespace {

struct RunFlags {
  StartFlags start;
  PromptFlags prompts;
  SamplingFlags sampling;
  std::vector<std::string> stops;
  std::string dump_logits;
  bool json = false, sequential = false, verbose = false;
};

void print_now(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// FILE.npy, or with several prompts FILE.0.npy, FILE.1.npy, …
std::string logits_path(const std::string &path, size_t index, size_t count) {
  if (count == 1)
    return path;
  const size_t dot = path.ends_with(".npy") ? path.size() - 4 : path.size();
  return path.substr(0, dot) + "." + std::to_string(index) + path.substr(dot);
}

void print_answer(const RunFlags &flags, const Answer &answer, bool streamed) {
  if (flags.json)
    return;
  if (!streamed)
    print_now(answer.text());
  if (answer.text().empty() && !answer.token_ids().empty()) { // no tokenizer
    std::string ids;
    for (int32_t id : answer.token_ids())
      ids += (ids.empty() ? "" : ",") + std::to_string(id);
    print_now(ids);
  }
  print_now("\n");
  if (flags.verbose) {
    const size_t n = answer.token_ids().size();
    const double rest = answer.seconds() - answer.first_token_seconds();
    std::fprintf(stderr, "%zu prompt tokens, first token after %.3f s; %zu tokens (%s), %.1f a second\n",
                 answer.prompt().size(), answer.first_token_seconds(), n, answer.finish_reason().c_str(),
                 n > 1 && rest > 0 ? static_cast<double>(n - 1) / rest : 0.0);
  }
}

void run(const RunFlags &flags) {
  flags.prompts.check();
  const bool single = flags.prompts.file.empty();
  // Everything that can be wrong with the prompts comes out before the weights are loaded.
  const auto plan = plan::LoadedPlan::load(flags.start.plan_path);
  if (!plan->root().limits())
    throw Error("the plan '" + plan->path() + "' has no limits; see llmc verify");
  const auto tokenizer = load_tokenizer(plan->root());
  auto prompts = read_prompts(flags.prompts, plan->root(), tokenizer.get());
  const size_t count = prompts.size();
  if (!flags.dump_logits.empty())
    for (size_t i = 0; i < count; ++i)
      write_npy(logits_path(flags.dump_logits, i, count), {}, 0,
                0);                             // a path that cannot be written fails now
  std::vector<std::unique_ptr<Answer>> answers; // outlive the engine, whose callbacks refer to them
  Started started = start(flags.start, static_cast<uint32_t>(count), flags.verbose);
  const bool streams = single && !flags.json;
  for (auto &ids : prompts)
    answers.push_back(
        std::make_unique<Answer>(std::move(ids), tokenizer, flags.stops,
                                 streams ? print_now : std::function<void(std::string_view)>()));
  auto submit = [&](Answer &answer) {
    answer.submit(*started.engine, flags.sampling.resolve(started.plan->root(), answer.prompt().size()),
                  !flags.dump_logits.empty());
  };
  auto of_prompt = [&](size_t i, auto &&act) {
    try {
      act();
    } catch (const Error &e) {
      throw Error(single ? std::string(e.what()) : "prompt " + std::to_string(i) + ": " + e.what());
    }
  };
  if (!flags.sequential)
    for (size_t i = 0; i < count; ++i)
      of_prompt(i, [&] { submit(*answers[i]); });
  for (size_t i = 0; i < count; ++i) {
    of_prompt(i, [&] {
      if (flags.sequential)
        submit(*answers[i]);
      answers[i]->wait();
    });
    print_answer(flags, *answers[i], streams);
  }
  started.engine.reset();
  if (!flags.dump_logits.empty())
    for (size_t i = 0; i < count; ++i)
      answers[i]->write_logits(logits_path(flags.dump_logits, i, count));
  if (flags.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto &answer : answers)
      out.push_back(answer->to_json());
    // Text from the tokenizer is valid UTF-8; a stop string from the command line may not be.
    print_now((single ? out[0] : out).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
}

} // namespace

void add_run_command(CLI::App &app) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App *command = app.add_subcommand("run", "Answer a prompt on the terminal, once");
  command->footer(
      "The text is printed as it is produced. Sampling options that are not given come from the model's\n"
      "generation_config.json, which the plan carries.\n"
      "\n"
      "Examples:\n"
      "  llmrt run plan.fb --prompt 'The capital of France is' --max-tokens 8\n"
      "  llmrt run plan.fb --chat --prompt 'Name three rivers.' --temperature 0\n"
      "  llmrt run plan.fb --prompt-ids 1,15043,29892 --json\n"
      "  llmrt run plan.fb --prompt-file prompts.json --json --dump-logits logits.npy");
  flags->start.add_to(*command);
  flags->prompts.add_to(*command);
  flags->sampling.add_to(*command);
  command->add_option("--stop", flags->stops, "Text that ends the output; may be given several times")
      ->allow_extra_args(false);
  command->add_flag(
      "--json", flags->json,
      "Print an object with prompt_ids, token_ids, text, finish_reason; with --prompt-file a list of them");
  command->add_flag("--sequential", flags->sequential,
                    "With --prompt-file: one prompt after the other, not in a batch");
  command->add_option("--dump-logits", flags->dump_logits,
                      "Write the logits of each step, float32 [steps, vocabulary]; with --prompt-file "
                      "FILE.0.npy, FILE.1.npy, …");
  command->add_flag("--verbose", flags->verbose, "Print memory and speed to stderr");
  command->callback([flags] { run(*flags); });
}

} // namespace llmrt::tool
