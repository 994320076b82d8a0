// A part of a buffer's range.
#pragma once

#include "runtime/tensor.h"

namespace mulciber {

/// `size` bytes of a range from byte `offset` on.
inline BufferView part_of(BufferView view, uint64_t offset, uint64_t size) {
  view.offset += offset;
  if (view.address) view.address += offset;
  if (view.mapped) view.mapped += offset;
  view.size = size;
  return view;
}

}  // namespace mulciber
