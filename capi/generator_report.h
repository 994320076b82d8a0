// What generators and batch generators report.
#pragma once

#include <memory>

#include "mulciber/c/generator.h"
#include "mulciber/text_generator.h"

namespace mulciber::c {

/// Sets all fields but the size. Returns the storage that they point to.
std::shared_ptr<const void> fill_report(GeneratorDescription description,
                                        MulciberGeneratorReport& to);

}  // namespace mulciber::c
