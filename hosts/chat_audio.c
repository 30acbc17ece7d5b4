#include "chat_audio.h"

#include <stdio.h>
#include <warptone/arm.h>

wt_status chat_audio_open(const char *preset, bool jack, const char *backend, live_session **audio)
{
    live_session_config config = {.preset = preset, .backend = backend, .watch = true, .host = {.auto_connect = true}};
    config.host_type = jack ? NULL : audio_host_find("portaudio");
    if (!config.host_type) config.host_type = audio_host_find("jack");
    if (!config.host_type)
        return wt_fail(WT_ERR_UNSUPPORTED, "this build has no audio host; `warptone info` says what to install");
    return live_session_open(&config, audio);
}

wt_partition *chat_audio_partition(live_session *audio)
{
    wt_layout *layout = live_session_layout(audio);
    return layout ? wt_layout_find(layout, "llm") : NULL;
}

wt_status chat_audio_quiesce(live_session *audio, wt_status (*function)(void *user), void *user)
{
    wt_partition *partition = chat_audio_partition(audio);
    return partition ? wt_quiesce(wt_partition_device(partition), function, user, 0) : function(user);
}

const char *chat_audio_describe(live_session *audio, char text[512])
{
    live_session_stats s;
    const char *why = NULL;
    live_session_get_stats(audio, &s);
    const bool ended = live_session_ended(audio, &why);
    snprintf(text, 512, "audio: %llu blocks of %d, %llu late, %.1f %% of the time%s%s",
             (unsigned long long)s.live.n_blocks, s.live.block_frames, (unsigned long long)s.live.n_misses,
             100 * s.live.load, ended ? "; ended: " : "", ended ? why : "");
    return text;
}
