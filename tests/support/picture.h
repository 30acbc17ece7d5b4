/// Pictures as tests look at them.
#ifndef WT_TEST_PICTURE_H
#define WT_TEST_PICTURE_H

/// A PNG file as [height][width][3]; fails the running test when it is none. Caller frees.
unsigned char *picture_read(const char *path, int *width, int *height);

#endif
