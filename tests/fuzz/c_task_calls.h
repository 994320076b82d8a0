// Calls of the C interface that begin tasks, run them and read their results.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/fuzz/c_run.h"

namespace mulciber::fuzz {

/// Each function reads its arguments from the input, makes one call and checks what it returns.
struct TaskCalls {
  static void begin_translation(Run& r) {
    MulciberTranslateInfo info;
    MulciberTask* task = nullptr;
    const std::string text = r.in.text();
    MulciberTranslator* translator = r.translators.pick(r.in);
    const auto* given = r.translate_info(info);
    r.tasks.add(r.made(mulciber_begin_translation(r.context(), translator,
                                                  r.in.or_null(text.c_str()), given, &task),
                       task));
  }
  static void begin_generation(Run& r) {
    auto info = r.in.structure<MulciberGenerateInfo>();
    MulciberApplicationBuffer rows, logits, states;
    auto outputs = r.in.structure<MulciberGenerationOutputs>();
    const std::string text = r.in.text(), more = r.in.text();
    info.max_new_tokens = r.in.number();
    info.ignore_end = r.in.flag();
    if (r.in.flag()) {
      info.sample = VK_TRUE;
      info.temperature = r.in.single();
      info.top_k = r.in.number();
      info.top_p = r.in.single();
      info.min_p = r.in.single();
      info.seed = r.in.number();
    }
    if (r.in.flag()) info.grammar = r.grammars.pick(r.in);
    if (r.in.flag()) {
      if (r.in.flag()) outputs.logits = r.buffer(logits);
      if (r.in.flag()) outputs.states = r.buffer(states);
      info.outputs = &outputs;
    }
    std::array<MulciberPromptPart, 2> parts = {};
    if (r.in.flag()) {
      // A list is read by the size of its first part.
      parts[0].size = parts[1].size =
          r.in.size_of<MulciberPromptPart>() == 8 ? 8 : sizeof(parts[0]);
      if (r.in.rarely()) parts[0].size = r.in.byte() & 4;
      parts[0].text = r.in.or_null(more.c_str());
      parts[1].tokens = r.in.number();
      parts[1].embeddings = r.buffer(rows);
      if (r.in.rarely()) parts[1].text = more.c_str();
      info.parts = r.in.or_null(parts.data());
      info.part_count = 1 + r.in.flag();
    }
    const char* prompt = info.part_count > 0 && !r.in.rarely() ? nullptr : text.c_str();
    MulciberTask* task = nullptr;
    MulciberGenerator* generator = r.generators.pick(r.in);
    r.tasks.add(r.made(
        mulciber_begin_generation(r.context(), generator, prompt, r.in.or_null(&info), &task),
        task));
  }
  static void begin_embedding(Run& r) {
    MulciberEmbedInfo info;
    MulciberApplicationBuffer rows;
    MulciberTask* task = nullptr;
    const std::string text = r.in.text();
    const auto* given = r.embed_info(info, rows);
    const char* words = given && info.embeddings && !r.in.rarely() ? nullptr : text.c_str();
    MulciberTextEncoder* encoder = r.text_encoders.pick(r.in);
    r.tasks.add(r.made(mulciber_begin_embedding(r.context(), encoder, words, given, &task), task));
  }
  static void begin_image(Run& r) {
    auto image = r.in.structure<MulciberImage>();
    auto info = r.in.structure<MulciberImageInfo>();
    MulciberApplicationBuffer pixels;
    const std::vector<uint8_t> rgb(size_t{48} * 48 * 3, r.in.byte());
    if (r.in.flag()) image.pixels = r.buffer(pixels);
    if (!image.pixels || r.in.rarely()) image.rgb = r.in.or_null(rgb.data());
    // The size of an image in memory is the application's word: never more than there is, unless
    // it is refused for its size alone.
    image.width = r.in.rarely() ? 0x7fffffffu : r.in.byte() % 49;
    image.height = r.in.byte() % 49;
    if (image.width > 48 && image.height > 0) image.height = 0xffffffffu;
    if (r.in.flag()) image.width = image.height = 32;
    info.mean = r.in.flag();
    info.normalize = r.in.flag();
    info.attention = r.in.flag();
    MulciberTask* task = nullptr;
    MulciberImageEncoder* encoder = r.image_encoders.pick(r.in);
    r.tasks.add(r.made(mulciber_begin_image(r.context(), encoder, r.in.or_null(&image),
                                            r.in.or_null(&info), &task),
                       task));
  }
  static void begin_maps(Run& r) {
    auto info = r.in.structure<MulciberAttentionInfo>();
    if (r.in.flag()) info.source_room = r.in.number(), info.room = r.in.number();
    info.translator = r.translators.pick(r.in);
    info.generator = r.generators.pick(r.in);
    MulciberTask *task = nullptr, *text = r.tasks.pick(r.in).handle;
    r.tasks.add(
        r.made(mulciber_begin_attention_maps(r.context(), text, r.in.or_null(&info), &task), task));
  }
  static void restart_maps(Run& r) {
    MulciberTask *task = r.tasks.pick(r.in).handle, *text = r.tasks.pick(r.in).handle;
    r.told(mulciber_restart_attention(r.context(), task, text));
  }

  static void record(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    auto slice = r.in.structure<MulciberSlice>();
    const double budget = r.in.real();
    r.records([&](VkCommandBuffer commands) {
      return mulciber_record(r.context(), task, commands, budget, r.in.or_null(&slice));
    });
    r.tasks.recorded(task, slice.number);
  }
  static void completed(Run& r) {
    const Tasks::Task task = r.tasks.pick(r.in);
    mulciber_wait(r.l.context, task.handle);  // every slice has ended, whatever the number
    r.told(mulciber_completed(r.context(), task.handle,
                              r.in.rarely() ? r.in.number() : task.recorded));
  }
  static void step(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    auto semaphores = r.in.structure<MulciberSemaphores>();
    const VkSemaphore none = VK_NULL_HANDLE;
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    if (r.in.rarely()) {
      semaphores.wait_count = r.in.flag();
      semaphores.waits = r.in.or_null(&none);
      semaphores.wait_stages = r.in.or_null(&stage);
      semaphores.signal_count = r.in.flag();
      semaphores.signals = r.in.or_null(&none);
    }
    auto done = r.in.structure<MulciberStep>();
    const double budget = r.in.real();
    r.told(mulciber_step(r.context(), task, budget, r.in.flag() ? &semaphores : nullptr,
                         r.in.or_null(&done)));
  }
  static void wait(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    r.told(mulciber_wait(r.context(), task));
  }
  static void wait_for(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    MulciberBool ended = 0;
    const uint64_t timeout = r.in.number();
    r.told(mulciber_wait_for(r.context(), task, timeout, r.in.or_null(&ended)));
  }
  static void run(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    MulciberBool done = 0;
    const double budget = r.in.real();
    r.told(mulciber_run(r.context(), task, budget, r.in.or_null(&done)));
  }
  static void finish(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    MulciberContext* c = r.last = r.l.context;
    MulciberStatus status = MULCIBER_OK;
    for (int i = 0; i < 200 && status == MULCIBER_OK && !mulciber_is_done(task); ++i) {
      MulciberStep step = {sizeof(step)};
      status = mulciber_step(c, task, 4000, nullptr, &step);
      if (status == MULCIBER_OK) status = mulciber_wait(c, task);
      r.told(status);
    }
  }
  static void cancel(Run& r) { mulciber_cancel(r.tasks.pick(r.in).handle); }

  static void read(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    auto text = r.in.structure<MulciberText>();
    auto report = r.in.structure<MulciberImageReport>();
    std::vector<float> vector(4096);
    const char* words = nullptr;
    uint32_t count = 0;
    const MulciberBeam* beams = nullptr;
    VkExtent2D extent;
    switch (r.in.byte() % 6) {
      case 0: {
        const MulciberStatus status = mulciber_text(r.context(), task, r.in.or_null(&words));
        r.told(status);
        if (status == MULCIBER_OK) require(words != nullptr, "a text");
        break;
      }
      case 1: r.told(mulciber_so_far(r.context(), task, r.in.or_null(&text))); break;
      case 2: r.told(mulciber_beams(r.context(), task, r.in.or_null(&count), &beams)); break;
      case 3: r.told(mulciber_vector(r.context(), task, r.in.or_null(vector.data()))); break;
      case 4: r.told(mulciber_describe_image(r.context(), task, r.in.or_null(&report))); break;
      default: {
        const MulciberAttentionKind kind = r.kind();
        r.told(mulciber_attention_extent(r.context(), task, kind, r.in.or_null(&extent)));
      }
    }
    for (uint32_t i = 0; i < count; ++i) require(beams[i].text != nullptr, "texts of beams");
  }
  static void count(Run& r) {
    const MulciberTask* task = r.tasks.pick(r.in).handle;
    const MulciberAttentionKind kind = r.kind();
    const bool maps = mulciber_attention_layers(task, kind) > 0;
    require(maps == (mulciber_attention_heads(task, kind) > 0), "layers have heads");
    mulciber_steps(task);
    mulciber_embedding_tokens(task);
    mulciber_is_recorded(task);
    mulciber_is_done(task);
    const MulciberGenerator* generator = r.generators.pick(r.in);
    require((mulciber_vocabulary(generator) > 0) == (generator != nullptr), "a vocabulary");
    require((mulciber_generator_width(generator) > 0) == (generator != nullptr), "a width");
    const MulciberTextEncoder* encoder = r.text_encoders.pick(r.in);
    require((mulciber_vector_width(encoder) > 0) == (encoder != nullptr), "a width of vectors");
    mulciber_embedding_width(encoder);
    mulciber_pipelines_made(r.devices.pick(r.in));
  }

  static void copy(Run& r) {
    MulciberTask* task = r.tasks.pick(r.in).handle;
    MulciberApplicationBuffer buffer;
    MulciberApplicationImage image;
    MulciberAttentionMap map;
    MulciberPatchMap patch;
    const auto* to = r.buffer(buffer);
    const auto* texels = r.image(image);
    const auto* of = r.map(map);
    const auto* of_patch = r.map(patch);
    const uint8_t which = r.in.byte() % 6;
    r.records([&](VkCommandBuffer commands) {
      MulciberContext* c = r.context();
      switch (which) {
        case 0: return mulciber_record_attention_buffer(c, task, commands, to, of);
        case 1: return mulciber_record_attention_image(c, task, commands, texels, of);
        case 2: return mulciber_record_vector(c, task, commands, to);
        case 3: return mulciber_record_states(c, task, commands, to);
        case 4: return mulciber_record_patches_buffer(c, task, commands, to, of_patch);
        default: return mulciber_record_patches_image(c, task, commands, texels, of_patch);
      }
    });
  }
};

}  // namespace mulciber::fuzz
