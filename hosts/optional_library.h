/// Libraries that are opened when they are first needed: the program runs where they are not installed.
#ifndef WT_OPTIONAL_LIBRARY_H
#define WT_OPTIONAL_LIBRARY_H

#include <stdbool.h>
#include <warptone/status.h>

/// One library and the table of its entry points; a static object, zeroed but for the facts.
typedef struct optional_library {
    const char *who;          ///< begins the message: "portaudio"
    const char *const *files; ///< names to try, ends with NULL
    const char *install;      ///< "install PortAudio (Debian: libportaudio2)"
    const char *const *names; ///< of the entry points
    int n_names, n_required;  ///< those behind the first n_required may be missing: NULL in the table
    void *table;              ///< a struct of as many function pointers
    bool tried;
    char why[256]; ///< it cannot be had; "" = it can
} optional_library;

/// Fill the table, once. Errors: WT_ERR_NO_LIBRARY with the loader's words and what to install.  [any but rt]
WT_CHECKED wt_status optional_library_open(optional_library *library);

/// From begin to end nothing that this process writes to its standard error arrives, whichever thread writes it:
/// for calls into libraries that print there by themselves. Calls nest and may overlap between threads.  [any but rt]
void quiet_begin(void);
void quiet_end(void);

#endif
