/// Files that are watched for change, by content: a file that was written in place, or replaced by a rename. Any thread
/// may call, but rt.
#ifndef WT_LIVE_WATCH_H
#define WT_LIVE_WATCH_H

#include <stdbool.h>
#include <warptone/status.h>

typedef struct live_watch live_watch;

/// Errors: WT_ERR_STATE (inotify is not to be had), WT_ERR_NO_MEMORY.  [any but rt]
WT_CHECKED wt_status live_watch_open(live_watch **watch);
void live_watch_close(live_watch *watch); ///< NULL is allowed

/// Watch these from now on, and no others; as they are now is how they are known, but for those that were watched
/// before. At most 64, more are left out.
void live_watch_files(live_watch *watch, const char *const *paths, int n_paths);
/// True once after a change, when nothing has moved for 100 ms.
bool live_watch_changed(live_watch *watch);
/// A watched file was changed by ourselves, just now: that is no news.
void live_watch_know(live_watch *watch, const char *path);

#endif
