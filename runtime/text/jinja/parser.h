// Parses a template's source into its syntax tree, with every variable resolved to a slot.
#pragma once

#include "runtime/text/jinja/ast.h"

namespace llmrt::text::jinja {

/// Throws TemplateError with the line of the mistake.
void parse(const std::string &source, Tree &tree);

/// Decides for each variable which scope holds it, by the rules of Jinja's compiler: loops, macros, blocks and `with`
/// have variables of their own, that start out as copies of the outer ones where they are assigned to. Called by parse.
void resolve_variables(Tree &tree);

} // namespace llmrt::text::jinja
