/// What a terminal shows while a language model is opened.
#ifndef WT_TERMINAL_MODEL_H
#define WT_TERMINAL_MODEL_H

/// "quantising 3 of 29" on stderr, over what it said before; nothing where that is no terminal.
void terminal_model_progress(void *user, int done, int of);

#endif
