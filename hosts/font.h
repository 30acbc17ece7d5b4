/// A small font of our own: 95 glyphs of 5 x 7 nodes with two rows below the baseline. canvas.c joins neighbouring
/// nodes by round strokes, so that it stays smooth at any size.
#ifndef WT_FONT_H
#define WT_FONT_H

enum { WT__FONT_FIRST = ' ', WT__FONT_LAST = '~', WT__FONT_ROWS = 9, WT__FONT_COLUMNS = 5, WT__FONT_BASELINE = 6 };

/// One byte a row from the top; bit 4 is the left column.
extern const unsigned char wt__font[WT__FONT_LAST - WT__FONT_FIRST + 1][WT__FONT_ROWS];

#endif
