/// A file that is written beside its target and renamed onto it: whoever looks sees the old content or the new one.
#ifndef WT_ATOMIC_FILE_H
#define WT_ATOMIC_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wt__atomic_file {
    int fd;        ///< open for reading and writing
    bool replaces; ///< the target exists; then its device and inode follow
    dev_t device;
    ino_t inode;
    char *target;    ///< links followed
    char *temporary; ///< .NAME.PID-K.part in the same folder
} wt__atomic_file;

/// Errors: WT_ERR_FILE (folder missing or unwritable, the target is a folder or no regular file), WT_ERR_NO_MEMORY. A
/// target that exists lends its mode.  [worker]
WT_CHECKED wt_status wt__atomic_file_open(const char *path, wt__atomic_file *file);

/// Close, rename, and free; `sync` waits for the disk first. On an error the target is as it was.
/// Errors: WT_ERR_FILE.  [worker]
WT_CHECKED wt_status wt__atomic_file_commit(wt__atomic_file *file, bool sync);

/// Remove the temporary file and free; a zeroed or discarded struct is allowed.  [worker]
void wt__atomic_file_discard(wt__atomic_file *file);

/// Remove the temporary files of all threads, before _exit: who begins another waits for ever.  [main]
void wt__atomic_file_abandon_all(void);

#ifdef __cplusplus
}
#endif
#endif
