/// What a writer asks the reader it takes its defaults from.
#ifndef WT_AUDIO_READER_H
#define WT_AUDIO_READER_H

#include <sys/types.h>
#include <warptone/audio_file.h>

/// Is this the open file? False for standard input.
bool wt__audio_reader_is_file(const wt_audio_reader *reader, dev_t device, ino_t inode);
/// A tag of the file, for example SF_STR_TITLE; NULL = none; borrowed until the reader closes.
const char *wt__audio_reader_tag(const wt_audio_reader *reader, int sndfile_string);

#endif
