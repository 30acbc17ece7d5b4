/// Exit codes of the program, as `warptone --help` tells them: what a status comes to.
#ifndef WT_EXIT_CODE_H
#define WT_EXIT_CODE_H

#include <warptone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,   ///< some of the work failed, or a file could not be written
    EXIT_USAGE = 2,    ///< the command line, whatever the inputs
    EXIT_INPUT = 3,    ///< a file or preset that was given is not as it should be, or of the wrong length
    EXIT_DEVICE = 4,   ///< no device, driver or feature for it
    EXIT_SIGNAL = 128, ///< and the signal's number: interrupted by it
};

/// Of cancelled work: EXIT_SIGNAL and the signal that came.  [any]
int exit_code_of(wt_status status);

#ifdef __cplusplus
}
#endif
#endif
