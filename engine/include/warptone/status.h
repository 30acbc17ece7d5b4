/// Status codes for programs, one sentence for people.
#ifndef WARPTONE_STATUS_H
#define WARPTONE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

// clang-format off
#define WT_STATUS_LIST(X)                                             \
    X(WT_OK,                "ok")                                     \
    X(WT_ERR_BAD_ARG,       "an argument is out of range")            \
    X(WT_ERR_NO_MEMORY,     "out of host or device memory")           \
    X(WT_ERR_NO_GPU,        "no usable CUDA device")                  \
    X(WT_ERR_NO_NVRTC,      "NVRTC is not available")                 \
    X(WT_ERR_NO_LIBRARY,    "a library or feature is not available")  \
    X(WT_ERR_COMPILE,       "a kernel does not compile")              \
    X(WT_ERR_CUDA,          "a CUDA call failed")                     \
    X(WT_ERR_DEVICE_LOST,   "the device is lost")                     \
    X(WT_ERR_FILE,          "a file cannot be read or written")       \
    X(WT_ERR_FORMAT,        "a file is not in the expected format")   \
    X(WT_ERR_NOT_FOUND,     "nothing has that name")                  \
    X(WT_ERR_STATE,         "not possible in the present state")      \
    X(WT_ERR_FULL,          "no room is left")                        \
    X(WT_ERR_QUOTA,         "a quota or share is exhausted")          \
    X(WT_ERR_REJECTED,      "the request was not admitted")           \
    X(WT_ERR_CANCELLED,     "the work was cancelled")                 \
    X(WT_ERR_TIMEOUT,       "the work did not end in time")           \
    X(WT_ERR_ARMED,         "refused while audio is running")         \
    X(WT_ERR_UNSUPPORTED,   "not supported here")                     \
    X(WT_ERR_LENGTH,        "a signal is too short or too long for this")
// clang-format on

typedef enum wt_status {
#define WT_STATUS_ENUM(code, text) code,
    WT_STATUS_LIST(WT_STATUS_ENUM)
#undef WT_STATUS_ENUM
        WT_N_STATUS
} wt_status;

#if defined(__GNUC__)
#    define WT_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#    define WT_CHECKED                    __attribute__((warn_unused_result))
#else
#    define WT_PRINTF(format_at, args_at)
#    define WT_CHECKED
#endif

/// Marks a function of the audio thread: no lock, memory, file, log or system call (clang 20 checks it).
#if defined(__clang__) && __clang_major__ >= 20
#    define WT_RT __attribute__((nonblocking))
#else
#    define WT_RT
#endif

/// The general meaning of a code, for example "out of host or device memory". Never NULL.  [any]
const char *wt_status_text(wt_status status);

/// The calling thread's last message, "" before the first; borrowed until its next failing call.  [any]
const char *wt_last_error(void);

/// Write the calling thread's message and return `status`. At most 1023 bytes are kept.  [any but rt]
wt_status wt_fail(wt_status status, const char *format, ...) WT_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
