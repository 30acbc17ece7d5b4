#include "exit_code.h"
#include "interrupt.h"

#include <signal.h>

int exit_code_of(wt_status status)
{
    switch (status) {
    case WT_OK:
        return EXIT_OK;
    case WT_ERR_BAD_ARG:
        return EXIT_USAGE;
    case WT_ERR_FORMAT:
    case WT_ERR_NOT_FOUND:
    case WT_ERR_LENGTH:
        return EXIT_INPUT;
    case WT_ERR_NO_GPU:
    case WT_ERR_NO_NVRTC:
    case WT_ERR_NO_LIBRARY:
    case WT_ERR_UNSUPPORTED:
        return EXIT_DEVICE;
    case WT_ERR_CANCELLED:
        return EXIT_SIGNAL + (wt_interrupted() ? wt_interrupt_signal() : SIGINT);
    default:
        return EXIT_FAILED;
    }
}
