// C functions for LoRA adapters.
#include "mulciber/c/adapter.h"

#include "capi/handles.h"
#include "capi/structures.h"

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_use_adapters(MulciberContext* context, MulciberGenerator* generator,
                                     uint32_t count, const MulciberAdapter* adapters) {
  return guarded(context, [&] {
    std::vector<AdapterScale> wanted;
    for_each_adapter(count, adapters, [&](const MulciberAdapter& adapter) {
      wanted.push_back({&given_to(adapter.name, "name"), adapter.scale});
    });
    given_to(generator, "generator").adapters = std::move(wanted);
  });
}
