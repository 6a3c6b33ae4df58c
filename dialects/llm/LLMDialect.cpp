// Registers the llm dialect and checks its discardable attributes. Ops' verifiers are in LLMOps.cpp.
#include "dialects/llm/LLMDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::llm;

#include "dialects/llm/LLMDialect.cpp.inc"
#include "dialects/llm/LLMEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/llm/LLMAttrs.cpp.inc"

void LLMDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/llm/LLMAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/llm/LLMOps.cpp.inc"
      >();
}

LogicalResult LLMDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == kLayerAttr) {
    auto layer = dyn_cast<IntegerAttr>(attr.getValue());
    if (!layer || !layer.getType().isSignlessInteger(32) || layer.getInt() < 0)
      return op->emitError() << "'" << kLayerAttr << "' must be a non-negative i32, not " << attr.getValue();
    return success();
  }
  if (attr.getName() == kFilesAttr) {
    auto files = dyn_cast<ArrayAttr>(attr.getValue());
    if (!isa<ModuleOp>(op) || !files || !llvm::all_of(files, [](Attribute a) { return isa<DictionaryAttr>(a); }))
      return op->emitError() << "'" << kFilesAttr << "' must be an array of dictionaries on a module";
    return success();
  }
  // Model-wide facts ("llm.model", "llm.text", …) are dictionaries on the module.
  if (!isa<ModuleOp>(op))
    return op->emitError() << "'" << attr.getName().getValue() << "' is allowed on a module only";
  return success();
}

std::optional<int64_t> llmc::llm::getLayer(Operation *op) {
  if (auto layer = op->getAttrOfType<IntegerAttr>(kLayerAttr))
    return layer.getInt();
  return std::nullopt;
}

void llmc::llm::setLayer(Operation *op, std::optional<int64_t> layer) {
  if (layer)
    op->setAttr(kLayerAttr, IntegerAttr::get(IntegerType::get(op->getContext(), 32), *layer));
  else
    op->removeAttr(kLayerAttr);
}
