#include "text/known_templates.h"

namespace mulciber {
namespace {

constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% "
    "endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// Gemma and Mistral have no system role: its text precedes the first question.
constexpr const char* kGemma =
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
    "{% if m.role == 'system' %}{% set ns.system = m.content + '\\n\\n' %}"
    "{% elif m.role == 'user' %}{{ '<start_of_turn>user\\n' + ns.system + m.content | trim + "
    "'<end_of_turn>\\n' }}{% set ns.system = '' %}"
    "{% else %}{{ '<start_of_turn>model\\n' + m.content | trim + '<end_of_turn>\\n' }}{% endif "
    "%}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

constexpr const char* kLlama3 =
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + "
    "'<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% "
    "endif %}";

constexpr const char* kMistral =
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
    "{% if m.role == 'system' %}{% set ns.system = m.content + '\\n\\n' %}"
    "{% elif m.role == 'user' %}{{ '[INST] ' + ns.system + m.content + ' [/INST]' }}{% set "
    "ns.system = '' %}"
    "{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}";

// A base model continues the text that it sees: the examples show the length of answers, that they
// end, and that a question may refer to an earlier one.
constexpr const char* kDialogue =
    "{% if messages and messages[0].role == 'system' %}{{ messages[0].content | trim }}"
    "{% else %}The following is a conversation with an AI assistant. The assistant is helpful, "
    "clever and friendly.{% endif %}"
    "{{ '\\n\\nUser: Hi, I am Tom.\\nAssistant: Hello Tom! How can I help you?\\n"
    "User: Which ocean is the largest?\\nAssistant: The Pacific Ocean.\\nUser: And the "
    "smallest?\\nAssistant: The Arctic Ocean.\\n"
    "User: How can I sleep better?\\nAssistant: Go to bed at the same time every night, and do not "
    "drink coffee in the evening.\\n' }}"
    "{% for m in messages %}{% if m.role == 'user' %}{{ 'User: ' + m.content | trim + '\\n' }}"
    "{% elif m.role != 'system' %}{{ 'Assistant: ' + m.content | trim + '\\n' }}{% endif %}{% "
    "endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}";

constexpr const char* kChatMlStops[] = {"<|im_end|>"};
constexpr const char* kDialogueStops[] = {"\nUser:", "\nAssistant:", "\n\n"};
constexpr const char* kGemmaStops[] = {"<end_of_turn>"};
constexpr const char* kLlama3Stops[] = {"<|eot_id|>"};
constexpr const char* kMistralStops[] = {"[INST]"};

constexpr KnownTemplate kKnown[] = {{"chatml", kChatMl, kChatMlStops},
                                    {kDialogueTemplate, kDialogue, kDialogueStops, true},
                                    {"gemma", kGemma, kGemmaStops},
                                    {"llama3", kLlama3, kLlama3Stops},
                                    {"mistral", kMistral, kMistralStops}};

}  // namespace

std::span<const KnownTemplate> known_templates() { return kKnown; }

std::string known_template_names() {
  std::string names;
  for (const KnownTemplate& known : kKnown)
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

const KnownTemplate* find_known_template(std::string_view name) {
  for (const KnownTemplate& known : kKnown)
    if (known.name == name) return &known;
  return nullptr;
}

}  // namespace mulciber
