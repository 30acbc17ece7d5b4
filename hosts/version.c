#include <warptone/warptone.h>

const char *wt_version(void) { return WARPTONE_VERSION; }
