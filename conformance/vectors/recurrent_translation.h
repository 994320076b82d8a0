// An encoder and a decoder with attention, from source ids to target ids, as one case.
#pragma once

#include "conformance/vectors/recurrent_entry.h"

namespace mulciber::conformance {

/// Networks with the attention of Bahdanau et al. 2015 (arXiv:1409.0473) and Luong et al. 2015
/// (arXiv:1508.04025) and one LSTM cell as the decoder; equations:
/// docs/reference/conformance-vectors.md. The decoder runs twice, fed with recorded ids and with
/// its own choices.
OpCase translation_vector(RecurrentEntry entry);

}  // namespace mulciber::conformance
