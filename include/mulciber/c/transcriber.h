/* Mulciber for C: speech to text with Whisper. C11. */
#ifndef MULCIBER_C_TRANSCRIBER_H
#define MULCIBER_C_TRANSCRIBER_H

#include "mulciber/c/cancel.h"
#include "mulciber/c/model.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberTranscriber MulciberTranscriber; /* a Whisper model on a device */

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_transcriber(MulciberContext* context,
                                                      MulciberDevice* device,
                                                      const MulciberModel* model,
                                                      const MulciberLoadInfo* info,
                                                      MulciberTranscriber** transcriber);
MULCIBER_API void mulciber_destroy_transcriber(MulciberTranscriber* transcriber);

/* Frees device memory that is kept for later sounds, see Transcriber::trim(). freed: bytes that
 * went back to the driver or the application; may be NULL. */
MULCIBER_API MulciberStatus mulciber_trim_transcriber(MulciberContext* context,
                                                      MulciberTranscriber* transcriber,
                                                      uint64_t* freed);

typedef struct MulciberTranscriberReport {
  uint32_t size;
  uint32_t sample_rate;  /* Hz */
  double window_seconds; /* length of the model's input */
  MulciberBool multilingual;
  uint32_t language_count;
  const char* const* languages; /* codes such as "en"; valid until the transcriber is destroyed */
} MulciberTranscriberReport;

MULCIBER_API MulciberStatus mulciber_describe_transcriber(MulciberContext* context,
                                                          const MulciberTranscriber* transcriber,
                                                          MulciberTranscriberReport* report);

/* Counts and times of the last call, and of loading where marked "load". */
typedef struct MulciberTranscribeStatistics {
  uint32_t size;
  uint32_t windows, fallbacks; /* fallbacks: searches at another temperature than the first */
  uint64_t tokens;             /* tokens of the accepted texts */
  double sound_seconds;
  double load_seconds; /* load: files to device */
  double feature_seconds, encode_seconds, decode_seconds, word_seconds;
  double total_seconds;
  uint64_t weight_bytes; /* load: on the device */
  uint64_t peak_device_bytes;
} MulciberTranscribeStatistics;

MULCIBER_API MulciberStatus
mulciber_transcriber_statistics(MulciberContext* context, const MulciberTranscriber* transcriber,
                                MulciberTranscribeStatistics* statistics);

/* ---- Transcripts ---- */

typedef struct MulciberTranscribedWord {
  uint32_t size;
  const char* text;   /* with the punctuation that follows it */
  double start, end;  /* seconds */
  double probability; /* mean over its tokens, among the ids of text */
} MulciberTranscribedWord;

typedef struct MulciberTranscriptSegment {
  uint32_t size;
  uint32_t id_count;
  const uint32_t* ids; /* timestamps included */
  const char* text;
  double start, end;        /* seconds */
  double temperature;       /* sampling temperature that gave this text */
  double log_probability;   /* mean over the window's tokens */
  double compression_ratio; /* bytes of the window's text over their number after zlib */
  double no_speech;         /* probability that the window holds no speech */
  uint32_t word_count;      /* 0 without MulciberTranscribeInfo::word_times */
  const MulciberTranscribedWord* words; /* stepped through by their size */
} MulciberTranscriptSegment;

typedef struct MulciberTranscript {
  uint32_t size;
  MulciberBool complete; /* false: the call was cancelled, and segments are those before */
  const char* text;
  const char* language;        /* "en" */
  double language_probability; /* if it was detected; else 0 */
  double seconds;              /* length of the recording */
  double missing_seconds;      /* seconds that a truncated file lacks, by its header */
  uint32_t segment_count;
  const MulciberTranscriptSegment* segments; /* stepped through by their size */
} MulciberTranscript;

typedef struct MulciberSpokenLanguage {
  uint32_t size;
  const char* language; /* "en" */
  double probability;   /* among the model's languages */
} MulciberSpokenLanguage;

/* Cross-attention of a window: the audio positions that each token of its text attends to, see
 * SpokenAttention in mulciber/transcriber.h. */
typedef struct MulciberSpokenAttention {
  uint32_t size;
  uint32_t token_count, map_count, positions;
  const char* const* tokens; /* of the window's text, timestamps included */
  const char* const* maps;   /* name of each map: "layer 3, head 1", or a mean of several */
  const float* weights;      /* map_count * token_count * positions probabilities */
  double start, seconds;     /* the window's begin and length */
  double position_seconds;   /* duration of one position */
  uint32_t frame_count, mels;
  const float* features; /* frame_count * mels: log-mel spectrogram, the model's input */
  double frame_seconds;
} MulciberSpokenAttention;

/* Options of a transcript, see TranscribeOptions in mulciber/transcriber.h. What callbacks are
 * given is valid during the call. */
typedef struct MulciberTranscribeInfo {
  uint32_t size;
  uint32_t sample_rate;       /* of samples, Hz, 1000 to 384000; 0: the model's */
  const char* language;       /* "de"; NULL: detected from the first window */
  MulciberBool translate;     /* translate into English */
  MulciberBool no_timestamps; /* a window is one segment */
  MulciberBool word_times;    /* start and end of words, from cross-attention */
  MulciberBool no_follow;     /* a window's text is not the prompt of the next */
  const char* prompt;         /* preceding text, or the spelling of names; NULL: none */
  uint32_t beams;             /* at temperature 0; 1: greedy search; 0: 5 */
  uint32_t candidates;        /* samples drawn at temperatures above 0; 0: 5 */
  /* Temperatures to try in turn while a window's text is too repetitive or too improbable; count 0:
   * 0, 0.2, 0.4, 0.6, 0.8, 1. */
  const double* temperatures;
  uint32_t temperature_count;
  double most_compression;      /* 0: 2.4; HUGE_VAL: no text is too repetitive */
  double least_log_probability; /* mean over the tokens; 0: -1; -HUGE_VAL: none is too improbable */
  double most_no_speech;        /* above it an improbable text counts as silence; 0: 0.6 */
  uint64_t seed;
  MulciberCancel* cancel; /* read between tokens; NULL: none */
  /* Callbacks; each may be NULL. on_language is called once, before any text: probability is 0 for
   * a given language, seconds are the length of the recording. on_segment is called for each
   * segment as it is found, on_text while a window's text grows, on_progress after every window
   * with the seconds done and in total, on_attention after every window that has text, for which an
   * extra pass computes the maps. */
  void (*on_language)(void* user, const char* language, double probability, double seconds);
  void (*on_segment)(void* user, const MulciberTranscriptSegment* segment);
  void (*on_text)(void* user, const char* text, size_t bytes);
  void (*on_progress)(void* user, double done, double total);
  void (*on_attention)(void* user, const MulciberSpokenAttention* attention);
  void* user;
} MulciberTranscribeInfo;

/* Transcribe a recording; submit and wait. Samples are of one channel, full scale 1; none give an
 * empty transcript. Files are WAV, FLAC, Ogg or MP3 of any sample rate, with up to 64 channels and
 * four hours, by path or in memory. name: for messages; may be NULL. info: may be NULL.
 * MULCIBER_ERROR_MODEL for sounds that cannot be read, and for options that do not fit the model.
 */
MULCIBER_API MulciberStatus mulciber_transcribe(MulciberContext* context,
                                                MulciberTranscriber* transcriber, size_t count,
                                                const float* samples,
                                                const MulciberTranscribeInfo* info,
                                                MulciberResult** result,
                                                const MulciberTranscript** transcript);
MULCIBER_API MulciberStatus mulciber_transcribe_file(MulciberContext* context,
                                                     MulciberTranscriber* transcriber,
                                                     const char* path,
                                                     const MulciberTranscribeInfo* info,
                                                     MulciberResult** result,
                                                     const MulciberTranscript** transcript);
MULCIBER_API MulciberStatus mulciber_transcribe_bytes(
    MulciberContext* context, MulciberTranscriber* transcriber, const void* bytes, size_t size,
    const char* name, const MulciberTranscribeInfo* info, MulciberResult** result,
    const MulciberTranscript** transcript);

/* Gives the languages that may be spoken in the first window of a recording, the most probable
 * first; English alone for models that know no other. sample_rate: Hz; 0: the model's. languages: a
 * list, stepped through by MulciberSpokenLanguage::size. MULCIBER_ERROR_MODEL without samples. */
MULCIBER_API MulciberStatus mulciber_detect_language(MulciberContext* context,
                                                     MulciberTranscriber* transcriber, size_t count,
                                                     const float* samples, uint32_t sample_rate,
                                                     MulciberResult** result,
                                                     uint32_t* language_count,
                                                     const MulciberSpokenLanguage** languages);

#ifdef __cplusplus
}
#endif

#endif
