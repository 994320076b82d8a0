// Names of version 0.1 that are kept for one version more.
#include "mulciber/batch_generator.h"
#include "mulciber/text_generator.h"
#include "tests/catch.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace mulciber;

TEST_CASE("Members of version 0.1 are the members of today") {
  GenerateOptions options;
  options.lookup = 3;
  options.proposals = 5;
  CHECK(options.prompt_lookup == 3);
  CHECK(options.draft_tokens == 5);
  const GenerateOptions given = {.prompt_lookup = 2, .draft_tokens = 4, .cancel = nullptr};
  CHECK(given.lookup == 2);
  CHECK(given.proposals == 4);
  BatchRequest request;
  request.lookup = 2;
  request.proposals = kMostProposals;
  CHECK(request.prompt_lookup == 2);
  CHECK(request.draft_tokens == kMostDraftTokens);
  BatchGeneratorOptions batch;
  batch.proposal_rows = 6;
  CHECK(batch.draft_rows == 6);
  Generation generation;
  generation.draft_tokens = 9;
  CHECK(generation.proposed_tokens == 9);
  GenerateStatistics last;
  last.draft_tokens = 8;
  CHECK(last.proposed_tokens == 8);
  BatchGeneratorStatistics statistics;
  statistics.draft_tokens = 7;
  statistics.preemptions = 1;
  CHECK(statistics.proposed_tokens == 7);
  CHECK(statistics.gave_way == 1);
}
