/// The lists of `warptone info --audio` and `--midi`.
#ifndef WT_CMD_INFO_H
#define WT_CMD_INFO_H

#include <stdbool.h>

/// Print what was asked for; returns an exit code.
int info_ports(bool audio, bool midi, bool json);

#endif
