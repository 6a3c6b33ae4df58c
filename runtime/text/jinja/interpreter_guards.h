// Guards that restore the interpreter's state on the way out, for interpreter.cpp and evaluate.cpp.
#pragma once

#include "runtime/text/jinja/interpreter.h"

namespace llmrt::text::jinja {

class Interpreter::ScopeGuard {
public:
  ScopeGuard(Interpreter &i, std::shared_ptr<Scope> scope) : interpreter_(i), saved_(std::move(i.scope_)) {
    i.scope_ = std::move(scope);
  }
  ~ScopeGuard() { interpreter_.scope_ = std::move(saved_); }
  ScopeGuard(const ScopeGuard &) = delete;
  ScopeGuard &operator=(const ScopeGuard &) = delete;

private:
  Interpreter &interpreter_;
  std::shared_ptr<Scope> saved_;
};

class Interpreter::OutputGuard {
public:
  OutputGuard(Interpreter &i, std::string &buffer) : interpreter_(i), saved_(i.out_) { i.out_ = &buffer; }
  ~OutputGuard() { interpreter_.out_ = saved_; }
  OutputGuard(const OutputGuard &) = delete;
  OutputGuard &operator=(const OutputGuard &) = delete;

private:
  Interpreter &interpreter_;
  std::string *saved_;
};

/// Bounds the C++ stack: nodes within nodes, macro calls included.
class Interpreter::DepthGuard {
public:
  explicit DepthGuard(Interpreter &i) : interpreter_(i) {
    constexpr int kMaxDepth = 1000;
    if (++i.depth_ > kMaxDepth) {
      --i.depth_;
      fail("the template recurses deeper than " + std::to_string(kMaxDepth) + " levels");
    }
  }
  ~DepthGuard() { --interpreter_.depth_; }
  DepthGuard(const DepthGuard &) = delete;
  DepthGuard &operator=(const DepthGuard &) = delete;

private:
  Interpreter &interpreter_;
};

inline std::string require_key(const Value &key) {
  if (!key.is_string())
    fail(std::string("a name must be a str, not ") + type_name(key));
  return key.str();
}

} // namespace llmrt::text::jinja
