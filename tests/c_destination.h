// An application's destination of results, in the structures of the C interface.
#pragma once

#include "mulciber/mulciber_c.h"
#include "tests/application_destination.h"

namespace mulciber::tests {

inline MulciberApplicationBuffer c_buffer(const Destination& to) {
  MulciberApplicationBuffer buffer = {sizeof(buffer)};
  buffer.buffer = to.buffer.buffer;
  buffer.offset = to.buffer.offset;
  buffer.bytes = to.buffer.size;
  buffer.stages = to.buffer.stages;
  buffer.accesses = to.buffer.accesses;
  return buffer;
}

inline MulciberApplicationImage c_image(const ApplicationImage& to) {
  MulciberApplicationImage image = {sizeof(image)};
  image.image = to.image;
  image.format = to.format;
  image.extent = to.extent;
  image.layout = to.layout;
  image.final_layout = to.final_layout;
  image.stages = to.stages;
  image.accesses = to.accesses;
  return image;
}

}  // namespace mulciber::tests
