// Registers the exec dialect; verifiers of its types. Ops' verifiers are in ExecOps.cpp.
#include "dialects/exec/ExecDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::exec;

#include "dialects/exec/ExecDialect.cpp.inc"
#include "dialects/exec/ExecEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/exec/ExecAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/exec/ExecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/ExecOps.cpp.inc"
      >();
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  auto number = dyn_cast<IntegerAttr>(attr.getValue());
  if (attr.getName() != kNumPagesAttr || !isa<ModuleOp>(op) || !number || number.getInt() < 1)
    return op->emitError() << "'" << attr.getName().getValue() << "' is no attribute of the exec dialect: only '"
                           << kNumPagesAttr << "', a positive i64 on a module, is";
  return success();
}

static LogicalResult checkElement(function_ref<InFlightDiagnostic()> emitError, Type element) {
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return emitError() << "elements must be f32, f16 or bf16, not " << element;
  return success();
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, Rows, int64_t cols, Type element) {
  if (cols < 1)
    return emitError() << "a buffer needs at least one column, not " << cols;
  return checkElement(emitError, element);
}

int64_t QuantType::getBlockBytes() const { return getFormat() == QuantFormat::Q8_0 ? 34 : 20; }

LogicalResult WeightType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols, Type element,
                                 Layout layout) {
  if (rows < 1 || cols < 1)
    return emitError() << "a weight needs at least one row and one column, not " << rows << " x " << cols;
  if (mlir::isa<QuantType>(element)) {
    if (layout != Layout::Packed16 || cols % QuantType::kBlock)
      return emitError() << "a quantised weight must be packed16 and have whole blocks of " << QuantType::kBlock
                         << " columns, but has " << cols;
    return success();
  }
  return checkElement(emitError, element);
}

uint64_t WeightType::getBytes() const {
  uint64_t rows = getRows(), cols = getCols();
  if (auto quant = mlir::dyn_cast<QuantType>(getElement()))
    return (rows + 15) / 16 * 16 * (cols / QuantType::kBlock) * quant.getBlockBytes();
  uint64_t size = getElement().getIntOrFloatBitWidth() / 8;
  if (getLayout() == Layout::Packed16) {
    rows = (rows + 15) / 16 * 16;
    if (size == 2)
      cols = (cols + 1) / 2 * 2;
  }
  return rows * cols * size;
}
