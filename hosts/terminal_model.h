/// What a terminal shows while a language model is opened.
#ifndef WT_TERMINAL_MODEL_H
#define WT_TERMINAL_MODEL_H

/// "loading 512 of 15622 MiB" on stderr, over what it said before; nothing where that is no terminal.
void terminal_model_progress(const char *what, int done, int of, const char *unit);

#endif
