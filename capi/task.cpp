// C functions for tasks and their partial results.
#include "mulciber/c/task.h"

#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

/// Storage that a MulciberText points to.
struct ShownText {
  Translation found;
  std::vector<const char*> tokens, source_tokens;
};

Translation text_of(MulciberTask& task) {
  const bool done = task.task->done();
  if (task.translation) {
    Translation found = done ? task.translation->result() : Translation{};
    return found.complete ? found : task.translation->so_far();
  }
  GenerationTask& answer = completion_of(task);
  const Generation found = done ? answer.result() : answer.so_far();
  Translation result = {.text = found.text, .ids = found.ids, .source_ids = found.prompt_ids};
  result.complete = done && found.end != GenerateEnd::kCancelled;
  for (const uint32_t id : result.ids) result.tokens.push_back(answer.token_text(id));
  for (const uint32_t id : result.source_ids)
    result.source_tokens.push_back(id == kNoTokenId ? "" : answer.token_text(id));
  return result;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

void mulciber_destroy_task(MulciberTask* task) { delete task; }

MulciberStatus mulciber_wait(MulciberContext* context, MulciberTask* task) {
  return guarded(context, [&] { given_to(task, "task").task->wait(); });
}

MulciberStatus mulciber_wait_for(MulciberContext* context, MulciberTask* task, uint64_t timeout_ns,
                                 MulciberBool* ended) {
  return guarded(context, [&] {
    given_to(ended, "ended") = 0;
    *ended = given_to(task, "task").task->wait(timeout_ns);
  });
}

MulciberStatus mulciber_run(MulciberContext* context, MulciberTask* task, double budget_us,
                            MulciberBool* done) {
  return guarded(context, [&] {
    given_to(done, "done") = 0;
    FrameTask& of = *given_to(task, "task").task;
    of.step(budget_us);
    of.wait();
    *done = of.done();
  });
}

MulciberBool mulciber_is_done(const MulciberTask* task) { return !task || task->task->done(); }

void mulciber_cancel(MulciberTask* task) {
  if (task) task->task->cancel();
}

MulciberStatus mulciber_text(MulciberContext* context, MulciberTask* task, const char** text) {
  return guarded(context, [&] {
    MulciberTask& of = given_to(task, "task");
    const char*& to = given_to(text, "text");
    const bool done = of.task->done();
    if (of.translation) {
      const Translation found = done ? of.translation->result() : Translation{};
      of.text = found.complete ? found.text : of.translation->text();
    } else if (GenerationTask& answer = completion_of(of); done) {
      of.text = answer.result().text;
    }
    to = of.text.c_str();
  });
}

MulciberStatus mulciber_so_far(MulciberContext* context, MulciberTask* task, MulciberText* text) {
  return guarded(context, [&] {
    give(text, "MulciberText", [&](MulciberText& to) {
      MulciberTask& of = given_to(task, "task");
      auto shown = std::make_shared<ShownText>();
      shown->found = text_of(of);
      const Translation& found = shown->found;
      shown->tokens = pointers(found.tokens);
      shown->source_tokens = pointers(found.source_tokens);
      to.complete = found.complete;
      to.text = found.text.c_str();
      to.score = found.score;
      to.id_count = static_cast<uint32_t>(found.ids.size());
      to.ids = found.ids.data();
      to.tokens = shown->tokens.data();
      to.source_count = static_cast<uint32_t>(found.source_ids.size());
      to.source_ids = found.source_ids.data();
      to.source_tokens = shown->source_tokens.data();
      of.shown = std::move(shown);
    });
  });
}

uint32_t mulciber_steps(const MulciberTask* task) {
  if (task && task->translation) return task->translation->steps();
  if (!task || !task->generation) return 0;
  return static_cast<uint32_t>(task->generation->tokens());
}
