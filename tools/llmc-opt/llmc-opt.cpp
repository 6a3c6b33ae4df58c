// llmc-opt: runs any pass or pipeline of the compiler over MLIR text. For tests and for those who work on llmc.
#include "compiler/pipeline/registration.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  llmc::registerDialects(registry);
  llmc::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "llmc-opt: the passes of llmc, one by one\n", registry));
}
