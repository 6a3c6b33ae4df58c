// `llmc verify`, `llmc dump` and `llmc explain`: what there is to know about a finished plan.
#include "tools/llmc/commands.h"

#include "compiler/report/explain.h"
#include "compiler/support/error.h"
#include "runtime/plan/dump.h"
#include "runtime/plan/loaded_plan.h"
#include "runtime/plan/verify.h"
#include "tools/llmc/text_check.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

using namespace llmrt::plan;

// Prints the problems; true when there are none.
static bool proven(const std::string &path, const LoadedPlan &plan) {
  std::vector<Problem> problems = verify(plan.root());
  for (const Problem &problem : problems)
    std::fprintf(stderr, "%s: %s\n", path.c_str(), to_string(problem).c_str());
  if (!problems.empty())
    std::fprintf(stderr, "llmc: error: %s is refused: %zu problem%s\n", path.c_str(), problems.size(),
                 problems.size() == 1 ? "" : "s");
  return problems.empty();
}

static void warn(const std::string &text) { std::fprintf(stderr, "llmc: warning: %s\n", text.c_str()); }

static void print(const std::string &text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string llmc::provePlan(const std::vector<uint8_t> &bytes) {
  auto plan = LoadedPlan::from_bytes(bytes);
  if (std::vector<Problem> problems = verify(plan->root()); !problems.empty())
    throw Error("internal: the finished plan is refused by its own verifier, and was not written; please report this:\n" +
                to_string(problems));
  TextCheck text = checkText(plan->root());
  if (!text.error.empty())
    throw Error(text.error);
  if (!text.warning.empty())
    warn(text.warning);
  return report::to_text(report::explain(plan->root()));
}

void llmc::addPlanCommands(CLI::App &app, int &status) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  auto longStrings = std::make_shared<bool>(false);
  auto add = [&](const char *name, const char *help) {
    CLI::App *command = app.add_subcommand(name, help);
    command->add_option("plan", *path, "The plan")->required();
    return command;
  };

  add("verify", "Prove a plan consistent: every weight held once, memory planned, collectives matched\n"
                "\n"
                "Also that llmrt can use its tokenizer. Needs no GPU and no weight files. Problems go to stderr, one a line; exit status 1 if there are any.\n"
                "\n"
                "Example:\n"
                "  llmc verify plan.fb\n")
      ->callback([=, &status] {
        auto plan = LoadedPlan::load(*path);
        status = proven(*path, *plan) ? 0 : 1;
        if (status != 0)
          return;
        TextCheck text = checkText(plan->root());
        if (!text.error.empty())
          throw Error(*path + ": " + text.error);
        if (!text.warning.empty())
          warn(*path + ": " + text.warning);
        std::printf("%s: verified, %u ranks\n", path->c_str(), plan->num_ranks());
      });

  CLI::App *dump = add("dump", "Print a whole plan, as text or JSON\n"
                               "\n"
                               "Examples:\n"
                               "  llmc dump plan.fb | less\n"
                               "  llmc dump --json plan.fb | jq '.programs[0].ledger'\n");
  dump->add_flag("--json", *json, "JSON with the names of plan.fbs");
  dump->add_flag("--long-strings", *longStrings, "Print tokenizer and chat template whole, not as length and hash");
  dump->callback([=] {
    auto plan = LoadedPlan::load(*path);
    DumpOptions options;
    options.long_strings = *longStrings;
    print(*json ? dump_json(plan->root(), options) : dump_text(plan->root(), options));
  });

  CLI::App *explain = add("explain", "Say what a plan means: layout, memory ledger, capacity, traffic\n"
                                     "\n"
                                     "Examples:\n"
                                     "  llmc explain plan.fb\n"
                                     "  llmc explain --json plan.fb | jq .capacity_tokens    # docs/plan-format.md\n");
  explain->add_flag("--json", *json, "JSON, documented in docs/plan-format.md");
  explain->callback([=, &status] {
    auto plan = LoadedPlan::load(*path);
    if (!proven(*path, *plan)) {
      status = 1;
      return;
    }
    auto explanation = report::explain(plan->root());
    print(*json ? report::to_json(explanation) : report::to_text(explanation));
  });
}
