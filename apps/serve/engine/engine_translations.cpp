// Translations on the thread of Engine (engine.h): texts of many requests in one running search.
#include <algorithm>
#include <utility>

#include "apps/serve/engine/engine.h"

namespace mulciber::apps::serve {

void Engine::begin_translations(const std::shared_ptr<Task>& task) {
  Translations& asked = *task->translations;
  asked.made.assign(asked.texts.size(), {});
  asked.numbers.clear();
  asked.cancelled = task->cancel;
  translating_.push_back(task);
  // One more, for this call: the last text must not end the task before all are submitted.
  asked.left = 1;
  try {
    if (failed_) throw lost_error();
    for (size_t i = 0; i < asked.texts.size() && !asked.cancelled; ++i) {
      TranslationRequest request = {.text = asked.texts[i], .options = asked.options};
      request.on_end = [this, task, i](const Translation& made) {
        task->translations->made[i] = made;
        if (made.complete) losses_in_a_row_ = 0;
        end_translation(task);
      };
      request.on_error = [this, task](const std::exception&) {
        if (!task->error) task->error = std::current_exception();
        cancel_translations(*task);
        end_translation(task);
      };
      asked.numbers.push_back(asked.model->translations->submit(std::move(request)));
      ++asked.left;
    }
  } catch (...) {
    task->error = std::current_exception();
    cancel_translations(*task);
  }
  end_translation(task);
}

void Engine::end_translation(const std::shared_ptr<Task>& task) {
  if (--task->translations->left > 0) return;
  // The list may hold the only other pointer.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const std::shared_ptr<Task> ended = task;
  std::erase(translating_, ended);
  end_task(*ended);
}

void Engine::cancel_translations(Task& task) {
  Translations& asked = *task.translations;
  if (std::exchange(asked.cancelled, true)) return;
  for (const uint64_t number : asked.numbers) asked.model->translations->cancel(number);
}

}  // namespace mulciber::apps::serve
