// Options of translations in the C interface.
#pragma once

#include "mulciber/c/translator.h"
#include "mulciber/translator.h"

namespace mulciber::c {

HeadMasks head_masks(const MulciberHeadMasks* from);

/// Options of calls that compute and wait.
TranslateOptions translate_options(const MulciberTranslateInfo& info);

/// Options of tasks and requests. Throws SettingError naming a field of mulciber_translate() alone
/// that is set.
TranslateOptions search_options(const MulciberTranslateInfo& info);

/// Throws SettingError where a text is given beside ids in its place.
void require_no_text(const void* texts, const char* name);

}  // namespace mulciber::c
