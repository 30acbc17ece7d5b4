/// Audio beside a conversation: a live session in the same process, whose GPU the model shares in its own partition.
/// Two processes would take turns on a GPU, some 2.5 ms each, and audio would be late.
#ifndef WT_CHAT_AUDIO_H
#define WT_CHAT_AUDIO_H

#include "live_session.h"

/// A session with a preset through JACK (`jack`) or PortAudio, not started. Errors: those of live_session_open.  [main]
WT_CHECKED wt_status chat_audio_open(const char *preset, bool jack, const char *backend, live_session **audio);

/// Where a model runs beside it; NULL: not on its GPU.  [any but rt]
wt_partition *chat_audio_partition(live_session *audio);

/// Call what takes and gives back memory of the partition, at a safe point of the audio. Errors: those of `function`
/// and wt_quiesce.  [main]
WT_CHECKED wt_status chat_audio_quiesce(live_session *audio, wt_status (*function)(void *user), void *user);

/// "audio: 750 blocks of 64, 0 late, 2.1 % of the time", and why it has ended, to `text`.  [any but rt]
const char *chat_audio_describe(live_session *audio, char text[512]);

#endif
