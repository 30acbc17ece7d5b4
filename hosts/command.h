/// The commands of the program. A new one is a line in COMMAND_LIST and a file cmd_NAME.c with `int cmd_NAME(int, char
/// **)`.
#ifndef WT_COMMAND_H
#define WT_COMMAND_H

#include "exit_code.h"

#include <warptone/warptone.h>

// clang-format off
#define COMMAND_LIST(X)                                                         \
    X(info,     "what this machine offers: devices, versions, optional parts")  \
    X(kernels,  "list, compile, pack or clear the cached GPU kernels")          \
    X(presets,  "list, show and check presets, and what they are made of")      \
    X(process,  "apply a preset to audio files")                                \
    X(live,     "play through a preset, now: JACK or PortAudio, GPU or CPU")     \
    X(analyze,  "spectrograms, pitch, beats and other features of audio files") \
    X(models,   "what is in a model's files: config, types, tensors")           \
    X(generate, "continue a text with a language model")                        \
    X(chat,     "talk with a language model in the terminal")                   \
    X(simulate, "play a plan of devices and loads in virtual time")             \
    X(top,      "live figures of a running warptone: partitions, tasks, memory") \
    X(doctor,   "what on this machine stands in the way of low latency")
// clang-format on

/// A command gets its own name as argv[0] and returns an exit code. Data goes to stdout, everything else to stderr.
typedef int (*command_function)(int argc, char **argv);

#define COMMAND_DECLARE(name, summary) int cmd_##name(int argc, char **argv);
COMMAND_LIST(COMMAND_DECLARE)
#undef COMMAND_DECLARE

/// Print "warptone NAME: <the thread's last message>" on stderr and return the exit code that fits `status`.
int command_fail(const char *name, wt_status status);

#endif
