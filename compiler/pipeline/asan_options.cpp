// AddressSanitizer's defaults for programs that hold the compiler; part of sanitized builds only.
// LLVM's headers, compiled here with the sanitizer, poison the unused rest of an allocator's slab; the distribution's
// libMLIR, compiled without it, hands out memory of the same slabs and never lifts the poison. So that marking is off.
extern "C" const char *__asan_default_options();
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }
