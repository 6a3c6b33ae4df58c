// A model for tests of the server: token ids below 256 are bytes, three special tokens follow, and the chat template is
// small and raises an exception for the role "wizard".
#pragma once

#include "runtime/serve/model.h"

namespace llmrt::test {

std::shared_ptr<serve::Model> make_model();

} // namespace llmrt::test
