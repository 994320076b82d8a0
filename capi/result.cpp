// C functions for results and cancellation.
#include "capi/result.h"

#include "capi/handles.h"
#include "capi/structures.h"

using namespace mulciber::c;

void mulciber_destroy_result(MulciberResult* result) { delete result; }

MulciberStatus mulciber_create_cancel(MulciberContext* context, MulciberCancel** cancel) {
  return guarded(context, [&] {
    given_to(cancel, "cancel") = nullptr;
    *cancel = new MulciberCancel;
  });
}

void mulciber_destroy_cancel(MulciberCancel* cancel) { delete cancel; }

void mulciber_request_cancel(MulciberCancel* cancel) {
  if (cancel) cancel->requested = true;
}

void mulciber_reset_cancel(MulciberCancel* cancel) {
  if (cancel) cancel->requested = false;
}
