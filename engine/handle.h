/// Which handles are live: a double destroy, a handle of another kind and one that was never given are refused before
/// anything behind the pointer is read. A new object may lie where an old one lay; then the old handle is the new
/// one's.
#ifndef WT_HANDLE_H
#define WT_HANDLE_H

#include <stdbool.h>
#include <warptone/status.h>

typedef enum wt__kind {
    WT__A_BUFFER,
    WT__A_STREAM,
    WT__A_LAYOUT,
    WT__A_POOL,
    WT__A_TRANSFER,
    WT__A_DISPATCH,
    WT__A_GRAPH,
    WT__N_HANDLE_KINDS
} wt__kind;

/// Embedded in the object, so that entering it cannot fail.
typedef struct wt__handle {
    struct wt__handle *next;
    const void *object;
    wt__kind kind;
} wt__handle;

/// The object is live from now on.  [any but rt]
void wt__handle_open(wt__handle *handle, const void *object, wt__kind kind);
/// It is live no more. Errors: WT_ERR_BAD_ARG when it was not; of several threads one gets WT_OK.  [any but rt]
wt_status wt__handle_close(const void *object, wt__kind kind);
/// Errors: WT_ERR_BAD_ARG.  [any but rt]
WT_CHECKED wt_status wt__handle_check(const void *object, wt__kind kind);

#endif
